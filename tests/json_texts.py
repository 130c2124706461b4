"""Strategies of JSON as text, numbers of any size and form included."""

from __future__ import annotations

import json

from hypothesis import strategies as st

_WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
_NUMBERS = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["1e400", "-1e-400", "0.1000000000000000055511151231257827", "9" * 4100, "2.50", "1E3", "-0", "-0.0"]
    ),
)
_LEAVES = st.one_of(st.sampled_from(["null", "true", "false"]), _NUMBERS, st.builds(json.dumps, _WORDS))


def _array(items: list[str]) -> str:
    return f"[{','.join(items)}]"


def _object(members: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in members.items()) + "}"


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects of these values, no key twice."""
    return st.dictionaries(_WORDS, values, max_size=4).map(_object)


json_texts = st.recursive(
    _LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4).map(_array), objects(inner)), max_leaves=15
)

"""The model's answer, read strictly: one JSON object with one exact offered id, or it is no answer."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from models.language_model import NONE, InvalidChoiceError

KEY = "choice"
"""The one key of an answer."""

MAX_ANSWER_CHARS = 256
"""A longer answer is none: an object with one id takes some thirty characters."""


def answer_schema(ids: Collection[str]) -> dict[str, Any]:
    """The JSON Schema that exactly the valid answers fit.

    >>> answer_schema(["c7"])["properties"]
    {'choice': {'type': 'string', 'enum': ['c7', 'none']}}
    """
    return {
        "type": "object",
        "properties": {KEY: {"type": "string", "enum": [*ids, NONE]}},
        "required": [KEY],
        "additionalProperties": False,
    }


def read_answer(content: object, ids: Collection[str]) -> str | None:
    """The chosen id; None where the model says that none fits.

    Nothing is repaired or guessed: a fence around the object, a word before it, a second object, a second key, the
    same key twice, a place instead of an id (0, 1, "1"), other case or blanks within the id all make it no answer.
    A model that was talked into something rarely keeps to the form, and the local ranking is a good answer too.

    Args:
        content: what the server gave as the message's content.
        ids: those offered.

    Raises:
        InvalidChoiceError: for all else.

    >>> read_answer('{"choice": "c7"}', ["c7", "c9"])
    'c7'
    """
    if not isinstance(content, str):
        raise InvalidChoiceError(f"the answer is {type(content).__name__}, not a text")
    if len(content) > MAX_ANSWER_CHARS:
        raise InvalidChoiceError(f"the answer has {len(content)} characters, at most {MAX_ANSWER_CHARS} are read")
    try:
        pairs = json.loads(content, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        raise InvalidChoiceError("the answer is not one JSON value") from None
    if not isinstance(pairs, _Pairs) or [key for key, _ in pairs] != [KEY]:
        raise InvalidChoiceError(f"the answer is not an object with the one key {KEY!r}")
    chosen = pairs[0][1]
    if chosen == NONE:
        return None
    # a list or an object cannot be looked up in a set, so the type comes first
    if not isinstance(chosen, str) or chosen not in ids:
        raise InvalidChoiceError("the answer is no id that was offered")
    return chosen


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, repeated keys and all; told apart from an array by its class."""

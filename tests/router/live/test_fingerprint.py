from __future__ import annotations

import doctest
import json
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.live import fingerprint as module
from router.live.fingerprint import business_key, canonical, fingerprint
from router.wire import loads
from tests.json_texts import json_texts


def test_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_the_order_of_keys_does_not_matter_at_any_depth() -> None:
    one = {"a": [1, {"x": None, "y": "z"}], "b": True}
    other = {"b": True, "a": [1, {"y": "z", "x": None}]}

    assert fingerprint("default", "i", "u", one) == fingerprint("default", "i", "u", other)


def test_the_order_of_a_list_matters() -> None:
    assert canonical([1, 2]) != canonical([2, 1])


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "1.0", "1e0", "10e-1", "1.00000000000000000000"],
        ["0", "-0", "-0.0", "0e5"],
        ["0.1", "1e-1", "0.1000000000000000000000"],
        ["100000000000000000000", "1e20", "1E+20", "100000000000000000000.0"],
        ["18446744073709551615", "18446744073709551615.0"],
        ["-9223372036854775808", "-9223372036854775808.000"],
        ["1e400", "10e399", "1" + "0" * 400],
        ["1" + "0" * 4100, "1e4100"],
        ["0.0000001", "1e-7"],
        ["1e-400", "0.1e-399"],
    ],
    ids=lambda texts: texts[0][:20],
)
def test_a_number_has_one_form_however_it_is_spelled(texts: list[str]) -> None:
    forms = {canonical({"n": [loads(text.encode())]}) for text in texts}

    assert len(forms) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0.1", "0.1000000000000000055511151231257827"),
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740992.0"),
        ("18446744073709551616", "18446744073709551617"),
        ("1e400", "1e401"),
        ("1e400", "-1e400"),
        ("1e400", '"1e400"'),
        ("1", "true"),
        ("1", '"1"'),
        ("0", "null"),
        ("0", "1e-400"),
        ("{}", "[]"),
        ('{"a":null}', "{}"),
        ('"a"', '"A"'),
    ],
)
def test_different_values_have_different_forms(one: str, other: str) -> None:
    assert canonical(loads(one.encode())) != canonical(loads(other.encode()))


def test_a_text_that_looks_like_a_number_is_left_as_it_is() -> None:
    assert canonical({"id": "3e5a", "v": "1.0"}) == b'{"id":"3e5a","v":"1.0"}'


def exact(text: str) -> Any:
    """The value as Python compares it, numbers as what they are."""

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return ("object", frozenset((key, of(item)) for key, item in value.items()))
        if isinstance(value, list):
            return ("array", tuple(map(of, value)))
        return (type(value).__name__, value)

    return of(json.loads(text, parse_float=Decimal, parse_int=Decimal))


# so few values that many of a pair are equal
NUMBERS = st.from_regex(r"-?(0|1|10|100)(\.0{0,2}[01])?(e[-+]?[012])?", fullmatch=True)
PAIRS = st.lists(NUMBERS, min_size=1, max_size=2).map(lambda numbers: f"[{','.join(numbers)}]")


@settings(max_examples=300, deadline=None)
@given(PAIRS | json_texts, PAIRS | json_texts)
def test_forms_are_equal_where_values_are(one: str, other: str) -> None:
    are_equal = canonical(loads(one.encode())) == canonical(loads(other.encode()))

    assert are_equal is (exact(one) == exact(other))


@settings(max_examples=200, deadline=None)
@given(json_texts)
def test_a_form_means_the_value_it_came_from(text: str) -> None:
    form = canonical(loads(text.encode()))

    assert exact(form.decode()) == exact(text)
    assert canonical(loads(form)) == form


def test_every_part_of_a_request_tells() -> None:
    base: tuple[str, str | None, str | None, Any] = ("default", "i", "u", {"a": 1})
    variants: list[tuple[str, str | None, str | None, Any]] = [
        base,
        ("other", "i", "u", {"a": 1}),
        ("default", "j", "u", {"a": 1}),
        ("default", None, "u", {"a": 1}),
        ("default", "i", None, {"a": 1}),
        ("default", "i", "u2", {"a": 1}),
        ("default", "iu", "", {"a": 1}),
        ("default", "i", "u", None),
    ]

    digests = [fingerprint(*variant) for variant in variants]

    assert len(set(digests)) == len(variants)
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in digests)


def test_every_part_of_a_step_tells() -> None:
    keys = [
        business_key("default", "i", {"a": 1}, "t", 1),
        business_key("other", "i", {"a": 1}, "t", 1),
        business_key("default", "j", {"a": 1}, "t", 1),
        business_key("default", "i", {"a": 2}, "t", 1),
        business_key("default", "i", {"a": 1}, "t2", 1),
        business_key("default", "i", {"a": 1}, "t", 2),
        business_key("default", "i", {"a": 1}, "t", None),
        fingerprint("default", "i", None, {"a": 1}),
    ]

    assert len(set(keys)) == len(keys)
    assert business_key("default", "i", {"a": 1.0}, "t", 1) == keys[0]


def test_digests_are_those_of_a_text_that_anyone_can_write() -> None:
    request = b'["request","default","refund",null,{"a":2.5,"b":1}]'
    step = b'["step","default","refund",{"a":2.5,"b":1},"t",0]'

    assert fingerprint("default", "refund", None, {"b": 1, "a": 2.5}) == sha256(request).hexdigest()
    assert business_key("default", "refund", {"b": 1, "a": 2.5}, "t", 0) == sha256(step).hexdigest()


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        canonical({"a": object()})

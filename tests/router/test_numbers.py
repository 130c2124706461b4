from __future__ import annotations

import doctest
from typing import Any

import pytest

from models.errors import InvalidRequestError
from router import numbers
from router.numbers import EXACT, plain
from router.wire import loads


def test_the_example_holds() -> None:
    assert doctest.testmod(numbers) == (0, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.0", 2), ("-0.0", 0), ("1e2", 100), ("1E300", int(1e300)), ("0.5", 0.5),
        ("0.1234567890123456789", 0.12345678901234568), ("1e-400", 0), ("true", True), ('"2.0"', "2.0"), ("null", None),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("[2.0, {\"a\": [3.0]}]", [2, {"a": [3]}]),
    ],
)  # fmt: skip
def test_whole_numbers_are_integers_and_the_others_floats(text: str, value: Any) -> None:
    found = plain(loads(text.encode()))
    assert found == value
    assert repr(found) == repr(value)


def test_fields_that_stay_exact_stay_as_they_came() -> None:
    body = loads(b'{"payload": {"a": 2.0}, "constraints": {"b": 1e999}, "limit": 2.0, "caller": {"payload": 3.0}}')
    found = plain(body, EXACT)
    assert repr(found["payload"]) == "{'a': 2.0}"
    assert found["constraints"] is body["constraints"]
    assert repr([found["limit"], found["caller"]]) == "[2, {'payload': 3}]"


def test_numbers_beyond_a_float_are_all_named() -> None:
    body = loads(b'{"a": [1, 1e999], "b": {"c": -1e400}, "d": %s}' % (b"9" * 5000))
    with pytest.raises(InvalidRequestError) as caught:
        plain(body)
    assert [(problem.path, problem.message) for problem in caught.value.problems] == [
        ("a[1]", "the number is too large"),
        ("b.c", "the number is too large"),
        ("d", "the number is too large"),
    ]


def test_the_value_itself_is_not_changed() -> None:
    body = {"a": [2.0]}
    plain(body)
    assert repr(body) == "{'a': [2.0]}"

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.errors import MalformedBodyError
from models.request import RouteRequest
from router import answers
from router.wire import MAX_DEPTH, dumps, loads
from tests.builders import capability, card, request, snapshot_of
from tests.json_texts import json_texts, objects
from tests.service_builders import case_of, exact, service_of


def refusal(body: bytes) -> str:
    with pytest.raises(MalformedBodyError) as caught:
        loads(body)
    assert caught.value.code == "malformed_json"
    return caught.value.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty, JSON is needed"),
        (b" \n\t", "the body is empty, JSON is needed"),
        (b"\xef\xbb\xbf", "the body is empty, JSON is needed"),
        (b"utterance=hello", "the body is not JSON: Expecting value at line 1, column 1"),
        (b'{"a": 1,\n "b": }', "the body is not JSON: Expecting value at line 2, column 7"),
        (b'{"a": 1} {}', "the body is not JSON: Extra data at line 1, column 10"),
        (b"[1,]", "the body is not JSON: Expecting value at line 1, column 4"),
        (b"[01]", "the body is not JSON: Expecting ',' delimiter at line 1, column 3"),
        (b'["a\nb"]', "the body is not JSON: Invalid control character at line 1, column 4"),
        (b"[NaN]", "NaN is not a JSON number"),
        (b'{"a": [Infinity]}', "Infinity is not a JSON number"),
        (b"-Infinity", "-Infinity is not a JSON number"),
        (b'{"a": 1, "b": 2, "a": 1}', "the key 'a' stands twice in an object"),
        (b'[{"x": {"\\u0061": 1, "a": 2}}]', "the key 'a' stands twice in an object"),
        (b'{"a": "\xff"}', "the body is not UTF-8: byte 7 cannot be read"),
        (b'"\xed\xa0\x80"', "the body is not UTF-8: byte 1 cannot be read"),
        ('{"a": 1}'.encode("utf-16-le"), "the body is not JSON: Expecting property name enclosed in double quotes"),
        (b"[1e9999999999999999999]", "the number 1e9999999999999999999 is beyond what can be kept"),
    ],
)
def test_a_body_that_is_refused_says_why(body: bytes, message: str) -> None:
    assert refusal(body).startswith(message)


@pytest.mark.parametrize(
    "body",
    [rb'"\ud800"', rb'{"a": ["\uDFFF"]}', rb'{"\ud800": 1}', rb'"\udc00\ud800"', rb'"\ud83d x"', rb'[1e400, "\uD800"]'],
)
def test_half_a_surrogate_pair_is_refused(body: bytes) -> None:
    assert refusal(body) == "a string has half a surrogate pair (\\ud800 to \\udfff alone)"


def test_a_whole_surrogate_pair_and_an_escaped_backslash_are_text() -> None:
    assert loads(rb'["\ud83d\ude00", "\\ud800"]') == ["😀", "\\ud800"]


def nested(opening: str, closing: str, depth: int) -> bytes:
    return (opening * depth + "1" + closing * depth).encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_has_a_limit(opening: str, closing: str) -> None:
    loads(nested(opening, closing, MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 500, 100_000):
        assert refusal(nested(opening, closing, depth)) == "the body is nested more than 100 levels deep"


def test_nesting_near_the_interpreter_s_limit_is_refused_too() -> None:
    for depth in range(900, 1000):
        assert "levels deep" in refusal(b'["\\ud83d\\ude00",' * depth + b"1" + b"]" * depth)


def test_brackets_in_strings_are_no_nesting() -> None:
    assert loads(json.dumps(["[" * 500]).encode()) == ["[" * 500]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert loads(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@given(body=st.binary(max_size=200))
@example(b"\x00")
@example(b"[" * 5000)
@example(b"1" * 5000)
@example(b'{"a"' * 2000)
def test_bytes_are_a_value_or_malformed_and_nothing_else(body: bytes) -> None:
    try:
        value = loads(body)
    except MalformedBodyError as error:
        value = None if error.message else "no message"
    assert value != "no message"


@given(body=st.lists(st.sampled_from([*'[]{}:,"\\ud8e+-.0123 \n', "NaN", "true", "\\ud800"])).map("".join))
def test_near_json_is_a_value_or_malformed_and_nothing_else(body: str) -> None:
    try:
        value = loads(body.encode())
    except MalformedBodyError:
        return
    assert exact(dumps(value)) == exact(body)


@given(text=json_texts)
def test_every_value_goes_through_unchanged(text: str) -> None:
    assert exact(dumps(loads(text.encode()))) == exact(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1),
        ("1.0", 1.0),
        ("1e2", 100.0),
        ("0.30000000000000004", 0.30000000000000004),
        ("0.30000000000000000", 0.3),
        ("0.3000000000000000444", Decimal("0.3000000000000000444")),
        ("1e400", Decimal("1e400")),
        ("1e-400", Decimal("1e-400")),
        ("5e-324", 5e-324),
        ("18446744073709551616", 2**64),
        ("-0", 0),
    ],
)
def test_a_number_is_as_plain_as_its_value_allows(text: str, value: Any) -> None:
    found = loads(text.encode())
    assert (found, type(found)) == (value, type(value))


def test_keys_keep_their_order() -> None:
    assert list(loads(b'{"b": 1, "a": 2}')) == ["b", "a"]
    assert dumps({"b": 10**30, "a": 2}) == b'{"b":1000000000000000000000000000000,"a":2}'


@given(constraints=objects(json_texts), payload=json_texts)
def test_a_request_is_recorded_as_it_came(constraints: str, payload: str) -> None:
    body = f'{{"intent":"x","constraints":{constraints},"payload":{payload}}}'
    asked = RouteRequest.model_validate(loads(body.encode()))
    assert exact(dumps(asked)) == exact(body)


@pytest.mark.parametrize(
    "body",
    [
        '{"utterance":"hé 😀"}',
        '{"intent":"x","payload":null}',
        '{"intent":"x","constraints":{}}',
        '{"intent":"x","caller":{"agent_id":"front"},"exclude":["a"],"cross_namespace":["b"],"dry_run":true}',
    ],
)
def test_a_recorded_request_has_the_fields_that_were_given_and_no_others(body: str) -> None:
    assert json.loads(dumps(RouteRequest.model_validate(json.loads(body)))) == json.loads(body)


@given(constraints=objects(json_texts))
def test_a_decision_tells_the_constraints_as_they_came(constraints: str) -> None:
    asked = RouteRequest(intent="x", constraints=loads(constraints.encode()))
    decision = answers.deny(case_of(asked, snapshot_of([])), 1.0)
    assert exact(dumps(decision))["constraints"] == exact(constraints)


def test_a_decision_in_json_is_the_decision() -> None:
    decision = answers.deny(case_of(request("hello", constraints={"a": 1}), snapshot_of([])), 1.0)
    assert json.loads(dumps(decision)) == decision.model_dump(mode="json", by_alias=True)


async def test_an_explained_decision_in_json_is_what_pydantic_would_say() -> None:
    cards = [card("able", capability("echo", quality=0.9)), card("poor", capability("echo", quality=0.2))]
    desk = service_of([*cards, card("dear", capability("echo", quality=0.9, cost_level=5))])
    decision = await desk.route(request("refund 20 USD tomorrow", intent="echo", exclude=["dear"]), explain=True)
    assert [each.why_not is not None for each in decision.candidates] == [False, True, False]
    assert decision.entities
    assert json.loads(dumps(decision)) == decision.model_dump(mode="json", by_alias=True)


def test_what_has_no_form_in_json_is_an_error() -> None:
    with pytest.raises(TypeError):
        dumps({"a": object()})

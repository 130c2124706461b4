from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.schemas import BUILT_IN, MAX_PAYLOAD_DEPTH, check_schema, compile_schema, payload_problems, resolve

ORDER = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "n": {"type": "integer", "maximum": 5}},
    "required": ["order_id"],
    "additionalProperties": False,
}
TREE = {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}


def told(schema: str | dict[str, Any], payload: Any, limit: int = 10) -> dict[str, str]:
    return {problem.path: problem.message for problem in payload_problems(compile_schema(schema), payload, limit=limit)}


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_text_is_one_text_and_nothing_else() -> None:
    assert told("text", {"text": "hello"}) == {}
    assert told("text", {}) == {"payload.text": "required field is missing"}
    assert told("text", {"text": "a", "more": 1}) == {"payload.more": "unknown field"}
    assert list(told("text", "hello")) == ["payload"]


def test_none_is_an_empty_object() -> None:
    assert told("none", {}) == {}
    assert told("none", {"a": 1}) == {"payload": "no fields are allowed here"}
    assert list(told("none", None)) == ["payload"]


def test_names_resolve_to_built_in_schemas_and_schemas_to_themselves() -> None:
    assert resolve("text") == BUILT_IN["text"]
    assert resolve(ORDER) is ORDER
    with pytest.raises(ValueError, match="there are text, none"):
        resolve("texts")


@pytest.mark.parametrize("schema", [{}, ORDER, TREE, "text", "none", {"$ref": "#"}, {"format": "no-such-format"}])
def test_good_schemas_have_nothing_wrong(schema: str | dict[str, Any]) -> None:
    assert check_schema(schema) is None


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "text"}, "type: 'text' is none of the types array, boolean"),
        ({"properties": {"a": {"minLength": -1}}}, "properties.a.minLength: "),
        ({"properties": {"a": 5}}, "properties.a: "),
        ({"required": "a"}, "required: "),
        ({"pattern": "("}, "pattern: '(' is no pattern"),
        ({"pattern": "(?=a)b"}, "linear time (no look-around"),
        ({"pattern": r"(a)\1"}, "linear time (no look-around"),
        ({"$ref": "#/$defs/none"}, "'/$defs/none' does not exist"),
        ({"$ref": "https://example.org/schema.json"}, "schemas are never fetched"),
        ({"$ref": "file:///etc/passwd"}, "schemas are never fetched"),
        ({"$id": "https://example.org/a", "$ref": "b"}, "schemas are never fetched"),
        ({"required": ["\ud800"]}, "surrogates not allowed"),
        ("texts", "no built-in schema 'texts'"),
    ],
)
def test_what_is_wrong_with_a_schema_is_told(schema: str | dict[str, Any], said: str) -> None:
    assert said in (check_schema(schema) or "nothing")


def test_a_schema_nested_too_deep_is_told() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(20_000):
        schema = {"not": schema}
    assert check_schema(schema) is not None


def test_formats_are_annotations() -> None:
    assert told({"type": "string", "format": "date"}, "tomorrow") == {}


def test_every_fault_of_a_payload_has_its_path() -> None:
    found = told(ORDER, {"n": 7, "order": "x", "o_id": 1})
    assert set(found) == {"payload.n", "payload.order", "payload.o_id", "payload.order_id"}
    assert found["payload.order_id"] == "required field is missing"
    assert found["payload.n"] == "7 is greater than the maximum of 5"
    assert told({"items": ORDER}, [{"order_id": "a"}, {"order_id": 5}]) == {
        "payload[1].order_id": '5 is not of type "string"'
    }


def test_problems_are_limited_and_messages_short() -> None:
    schema = {"items": {"type": "integer"}}
    assert len(told(schema, ["x"] * 100)) == 10
    assert len(told(schema, ["x"] * 100, limit=3)) == 3
    assert len(told(schema, ["x" * 10_000])["payload[0]"]) <= 300


def test_a_very_large_payload_is_answered_with_its_first_fault() -> None:
    started = time.perf_counter()
    assert list(told({"items": {"type": "string"}}, [1] * 200_000)) == ["payload[0]"]
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("number", [10**19, 10**30, 10**308, 10**3999, Decimal("1e400"), Decimal(10**30), 2**64])
def test_numbers_beyond_64_bits_are_compared_rightly(number: Any) -> None:
    assert told({"maximum": 5}, number)
    assert told({"minimum": 5}, number) == {}
    assert told({"type": "integer"}, number) == {}


@pytest.mark.parametrize(
    "number",
    [10**4300, -(10**5000), Decimal("9" * 5000), float("inf"), float("nan"), Decimal("NaN")],
    ids=["4301 digits", "5001 digits", "long decimal", "inf", "nan", "decimal nan"],
)
def test_numbers_the_validator_cannot_take_do_not_fit(number: Any) -> None:
    for payload in (number, {"a": [number]}):
        assert "cannot be checked" in told({}, payload)["payload"]


@pytest.mark.parametrize("payload", ["\ud800", {"\udfff": 1}, [["a\ud800"]]])
def test_lone_surrogates_do_not_fit_where_a_schema_looks_at_them(payload: Any) -> None:
    assert "cannot be checked" in told({"enum": ["a"]}, payload)["payload"]


def test_depth_is_bounded() -> None:
    assert told(TREE, nested(MAX_PAYLOAD_DEPTH)) == {}
    for levels in (MAX_PAYLOAD_DEPTH + 1, 100_000):
        assert told(TREE, nested(levels)) == {"payload": f"nested deeper than {MAX_PAYLOAD_DEPTH} levels"}


def test_patterns_match_in_linear_time() -> None:
    started = time.perf_counter()
    assert told({"pattern": "^(a+)+$"}, "a" * 100_000 + "!")
    assert time.perf_counter() - started < 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.decimals(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_every_json_value_gets_an_answer(payload: Any) -> None:
    schemas: list[dict[str, Any]] = [ORDER, TREE, BUILT_IN["text"], {"not": {}}, {"uniqueItems": True, "multipleOf": 3}]
    for schema in schemas:
        validator = compile_schema(schema)
        problems = payload_problems(validator, payload)
        if not problems:
            assert validator.is_valid(payload)

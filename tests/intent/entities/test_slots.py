from __future__ import annotations

import doctest
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intent.entities import properties, slot_values, slots
from intent.entities.find import find_entities
from intent.entities.properties import properties_of
from intent.entities.slots import fill
from models.entity import Slot

NOW = datetime(2026, 3, 11, 10, 30, tzinfo=timezone(timedelta(hours=8)))
REFUND = {"type": "object", "properties": {"order_amount": {"type": "number"}, "time": {"type": "string"}}}
TEXTS = (
    "has the refund for yesterday's 988 order come through",
    "麻烦看下昨天 988 块的那个订单，退款到了没有",
    "book from March 14 at 5pm to March 16 for 2 adults and 2.5 kg, $20-30, A-1042 and ORD-2024-17, express, a@b.io",
    "call 555-123-4567 or see https://a.io/x about 3 bags, order 48213, 两百三十块, 三天前",
    "nothing here",
)


def filled(text: str, schema: dict[str, Any] | None, hints: dict[str, Any] | None = None) -> dict[str, Slot]:
    return fill(find_entities(text, now=NOW), schema, text, hints)


def values(text: str, hints: dict[str, Any] | None = None, **named: Any) -> dict[str, Any]:
    return {name: slot.value for name, slot in filled(text, {"properties": named}, hints).items()}


def test_the_example_of_the_write_up_comes_out() -> None:
    got = filled("麻烦看下昨天 988 块的那个订单，退款到了没有", REFUND)
    assert set(got) == {"order_amount", "time"}
    assert (got["order_amount"].value, got["order_amount"].text, got["order_amount"].unit) == (988, "988 块", "CNY")
    assert (got["time"].value, got["time"].text, got["time"].resolved) == ("2026-03-10", "昨天", "2026-03-10")


def test_its_english_twin_comes_out() -> None:
    got = filled("has the refund for yesterday's 988 order come through", REFUND)
    assert set(got) == {"order_amount", "time"}
    assert (got["order_amount"].value, got["order_amount"].text) == (988, "988")
    assert (got["time"].value, got["time"].text) == ("2026-03-10", "yesterday")


STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}


@pytest.mark.parametrize("name", ["order_amount", "amount", "totalPrice", "refund_total", "cost", "订单金额"])
def test_words_of_a_name_mean_an_amount(name: str) -> None:
    assert values("3 bags for $20", **{name: NUMBER}) == {name: 20, "quantity": 3}


@pytest.mark.parametrize("name", ["quantity", "number_of_bags", "item_count", "qty", "numGuests", "n_items", "数量"])
def test_words_of_a_name_mean_a_quantity(name: str) -> None:
    assert values("3 bags for $20", **{name: INTEGER}) == {name: 3, "amount": 20}


@pytest.mark.parametrize("name", ["order_id", "invoice_no", "orderId", "tracking_number", "reference", "订单号"])
def test_words_of_a_name_mean_an_id(name: str) -> None:
    assert values("A-1042 of yesterday", **{name: STRING}) == {name: "A-1042", "date": "2026-03-10"}


def test_addresses_go_to_their_names_and_formats() -> None:
    text = "a@b.io, 555-123-4567, https://a.io/x"
    got = values(text, contact_email=STRING, phone_number=STRING, where={"type": "string", "format": "uri"})
    assert got == {"contact_email": "a@b.io", "phone_number": "5551234567", "where": "https://a.io/x"}


def test_a_description_stands_in_for_a_mute_name() -> None:
    assert values("yesterday", x={"type": "string", "description": "the date of the order"}) == {"x": "2026-03-10"}


def test_what_fits_no_property_is_told_under_its_kind() -> None:
    assert values("mail a@b.io and c@d.io", reason=STRING) == {"email": "a@b.io", "email_2": "c@d.io"}
    assert values("mail a@b.io") == {"email": "a@b.io"}
    assert fill(find_entities("$5", now=NOW), None, "$5")["amount"].value == 5


def test_a_kind_never_takes_the_name_of_a_property_that_refused_it() -> None:
    assert values("yesterday", date=INTEGER) == {"date_2": "2026-03-10"}


def test_an_integer_gets_an_int_and_limits_hold() -> None:
    got = values("2.50 dollars and 4.0 dollars", price=INTEGER)
    assert got["price"] == 4
    assert type(got["price"]) is int
    assert values("500 bags", quantity={"type": "integer", "maximum": 100}) == {"quantity_2": 500}
    assert values("3 bags", quantity={"type": "integer", "multipleOf": 2}) == {"quantity_2": 3}


def test_a_format_decides_the_form_of_a_date() -> None:
    assert values("tomorrow at 5pm", day={"type": "string", "format": "date"})["day"] == "2026-03-12"
    assert values("tomorrow at 5pm", at={"type": "string", "format": "date-time"})["at"] == "2026-03-12T17:00:00+08:00"
    assert values("tomorrow at 5pm", at={"type": "string", "format": "time"})["at"] == "17:00:00+08:00"
    assert values("tomorrow", at={"type": "string", "format": "date-time"}) == {"date": "2026-03-12"}


def test_a_pattern_matches_the_whole_value() -> None:
    pattern = {"type": "string", "pattern": r"^[A-Z]{3}-\d{4}-\d{2}$"}
    assert values("ORD-2024-17 and A-1042", order_id=pattern)["order_id"] == "ORD-2024-17"
    assert "order_id" not in values("ORD-2024-178", order_id=pattern)


def test_a_pattern_finds_a_word_that_nothing_else_finds() -> None:
    got = filled("with voucher SAVE.", {"properties": {"x": {"type": "string", "pattern": "^[A-Z]{4}$"}}})
    assert (got["x"].value, got["x"].kind, got["x"].text) == ("SAVE", "pattern", "SAVE")


def test_a_pattern_that_cannot_match_in_linear_time_matches_nothing() -> None:
    assert values("A-1042", order_id={"type": "string", "pattern": "(?=A)A-1042"}) == {"id": "A-1042"}


def test_an_option_of_an_enum_is_taken_from_the_text() -> None:
    shipping = {"enum": ["standard", "express", "next_day"]}
    assert values("EXPRESS please", shipping=shipping) == {"shipping": "express"}
    assert values("send it next-day", shipping=shipping) == {"shipping": "next_day"}
    assert values("an expressive one", shipping=shipping) == {}
    assert values("要红色的", colour={"enum": ["红色", "蓝色"]}) == {"colour": "红色"}
    assert values("I'm sure", size={"enum": ["S", "M", "L"]}) == {}
    assert values("size M", size={"enum": ["S", "M", "L"]}) == {"size": "M"}


def test_a_currency_is_that_of_the_amount() -> None:
    got = values("pay $20", price=NUMBER, currency={"type": "string", "enum": ["USD", "EUR"]})
    assert got == {"price": 20, "currency": "USD"}


def test_two_dates_go_to_the_beginning_and_the_end() -> None:
    dates = {"end_date": {"type": "string", "format": "date"}, "start_date": {"type": "string", "format": "date"}}
    assert values("from March 14 to March 16", **dates) == {"start_date": "2026-03-14", "end_date": "2026-03-16"}
    assert values("until March 16", **dates) == {"end_date": "2026-03-16"}


def test_an_array_takes_all_that_fit() -> None:
    got = filled("A-1042 and A-1043", {"properties": {"order_ids": {"type": "array", "items": STRING}}})
    assert (got["order_ids"].value, got["order_ids"].text) == (["A-1042", "A-1043"], "A-1042, A-1043")


def test_branches_and_local_references_are_followed() -> None:
    schema = {
        "$defs": {"money": {"type": "number", "minimum": 1}},
        "properties": {"price": {"$ref": "#/$defs/money"}, "when": {"anyOf": [{"type": "null"}, STRING]}},
    }
    got = filled("$20 yesterday", schema)
    assert {name: slot.value for name, slot in got.items()} == {"price": 20, "when": "2026-03-10"}


def test_references_in_a_circle_end() -> None:
    circle: dict[str, Any] = {"properties": {"a": {"$ref": "#/properties/a"}, "b": {"anyOf": []}}}
    circle["properties"]["b"]["anyOf"] += [{"$ref": "#/properties/b"}] * 20
    start = time.process_time()
    assert set(filled("$20", circle)) == {"amount"}
    assert time.process_time() - start < 1


def test_a_number_without_a_name_for_it_goes_to_the_only_property_that_takes_numbers() -> None:
    assert values("make it 40", level_x=NUMBER) == {"level_x": 40}
    assert values("make it 40", foo=NUMBER, bar=NUMBER) == {"number": 40}


def test_a_short_number_is_no_id() -> None:
    assert values("a table for 4", user_id=STRING) == {"number": 4}
    assert values("the 48213 one", order_id=STRING) == {"order_id": "48213"}


def test_hints_say_what_names_do_not() -> None:
    assert values("$20", {"foo": "amount"}, foo=NUMBER, bar=NUMBER) == {"foo": 20}
    assert values("yesterday", {"born": {"kind": "date"}}) == {"born": "2026-03-10"}


_NAMES = "order_amount time date order_id quantity email phone url size x y start_date end_date number"
SCHEMAS = st.dictionaries(
    st.sampled_from(_NAMES.split()),
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "number", "integer", "boolean", "array", "null", ["string", "null"]]),
            "format": st.sampled_from(["date", "date-time", "email", "uri"]),
            "pattern": st.sampled_from([r"^A-\d+$", "^[a-z]+$", "("]),
            "enum": st.sampled_from([["express", "standard"], [20, 988], []]),
            "minimum": st.integers(-5, 30),
            "maxLength": st.integers(0, 12),
            "maxItems": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "uniqueItems": st.just(True),
            "items": st.sampled_from([{"type": "string"}, {"type": "integer"}]),
        },
    ),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(SCHEMAS, st.sampled_from(TEXTS))
def test_a_value_never_contradicts_its_schema(named: dict[str, Any], text: str) -> None:
    got = filled(text, {"type": "object", "properties": named})
    assert got == filled(text, {"type": "object", "properties": named})
    for name, slot in got.items():
        if name in named:
            schema = {key: value for key, value in named[name].items() if value != "(" and value != []}
            assert jsonschema_rs.Draft202012Validator(schema).is_valid(slot.value), (name, slot)
        if slot.kind != "enum" and not isinstance(slot.value, list):
            assert text[slot.start : slot.end] == slot.text


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["properties", "type", "enum", "anyOf", "$ref", "items", "format", "a"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_object_for_a_schema_gets_an_answer(schema: Any) -> None:
    if isinstance(schema, dict):
        filled(TEXTS[2], schema)
        properties_of({"properties": schema})


def test_a_large_schema_takes_bounded_time() -> None:
    schema = {"properties": {f"price_{n}": {"enum": [str(m) for m in range(300)]} for n in range(300)}}
    start = time.process_time()
    filled("$5 " * 100, schema)
    assert time.process_time() - start < 3


def test_the_examples_of_the_docstrings_hold() -> None:
    for module in (properties, slot_values, slots):
        assert doctest.testmod(module).failed == 0

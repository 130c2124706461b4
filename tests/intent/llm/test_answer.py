from __future__ import annotations

import doctest
import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intent.llm import answer
from intent.llm.answer import MAX_ANSWER_CHARS, answer_schema, read_answer
from models.language_model import InvalidChoiceError

IDS = ("kzrtw", "bnvcx")

INVALID = {
    "prose": "I would choose kzrtw.",
    "the bare id": "kzrtw",
    "the id as a JSON string": '"kzrtw"',
    "a fence": '```json\n{"choice": "kzrtw"}\n```',
    "two objects": '{"choice": "kzrtw"}\n{"choice": "kzrtw"}',
    "prose before": 'Sure: {"choice": "kzrtw"}',
    "prose after": '{"choice": "kzrtw"} Hope this helps!',
    "an array": '["kzrtw"]',
    "an array of pairs": '[["choice", "kzrtw"]]',
    "an array with the object": '[{"choice": "kzrtw"}]',
    "an id that was not offered": '{"choice": "qqqqq"}',
    "an index from 0": '{"choice": 0}',
    "an index from 1": '{"choice": 1}',
    "an index as a string": '{"choice": "0"}',
    "an index as a string from 1": '{"choice": "1"}',
    "upper case": '{"choice": "KZRTW"}',
    "blanks in the id": '{"choice": " kzrtw "}',
    "a part of the id": '{"choice": "kzrt"}',
    "an empty id": '{"choice": ""}',
    "an extra key": '{"choice": "kzrtw", "reason": "it fits"}',
    "another key": '{"id": "kzrtw"}',
    "no key": "{}",
    "the key twice": '{"choice": "bnvcx", "choice": "kzrtw"}',
    "a list of ids": '{"choice": ["kzrtw"]}',
    "a nested object": '{"choice": {"choice": "kzrtw"}}',
    "null": '{"choice": null}',
    "true": '{"choice": true}',
    "a float": '{"choice": 1.0}',
    "NaN": '{"choice": NaN}',
    "None as Python writes it": '{"choice": None}',
    "None with a capital": '{"choice": "None"}',
    "single quotes": "{'choice': 'kzrtw'}",
    "a trailing comma": '{"choice": "kzrtw",}',
    "a comment": '{"choice": "kzrtw"} // sure',
    "half an object": '{"choice": "kzr',
    "a byte order mark": '\ufeff{"choice": "kzrtw"}',
    "nothing": "",
    "blanks": "   ",
    "a look-alike": '{"choice": "ｋzrtw"}',
    "deep nesting": "[" * MAX_ANSWER_CHARS,
    "too long": '{"choice": "kzrtw"}' + " " * MAX_ANSWER_CHARS,
    "huge": "x" * 10_000_000,
}


@pytest.mark.parametrize("content", ['{"choice": "kzrtw"}', '{"choice":"kzrtw"}', ' {\n"choice" : "kzrtw"\n}\n'])
def test_one_object_with_one_offered_id_is_an_answer(content: str) -> None:
    assert read_answer(content, IDS) == "kzrtw"


def test_none_is_an_answer_too() -> None:
    assert read_answer('{"choice": "none"}', IDS) is None


@pytest.mark.parametrize("content", INVALID.values(), ids=INVALID.keys())
def test_all_else_is_discarded(content: str) -> None:
    with pytest.raises(InvalidChoiceError):
        read_answer(content, IDS)


@pytest.mark.parametrize("content", [None, 1, ["kzrtw"], {"choice": "kzrtw"}, b'{"choice": "kzrtw"}'])
def test_a_content_that_is_no_text_is_discarded(content: object) -> None:
    with pytest.raises(InvalidChoiceError):
        read_answer(content, IDS)


@given(st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_text_yields_an_id_that_was_not_offered(content: str) -> None:
    try:
        found = read_answer(content, IDS)
    except InvalidChoiceError:
        return
    assert found is None or found in IDS


def test_an_error_does_not_quote_the_answer() -> None:
    with pytest.raises(InvalidChoiceError) as caught:
        read_answer('{"choice": "my secret"}', IDS)
    assert "secret" not in str(caught.value)


def test_the_schema_admits_the_ids_and_none_alone() -> None:
    schema = answer_schema(IDS)
    valid = jsonschema_rs.validator_for(schema).is_valid
    assert all(valid({"choice": chosen}) for chosen in (*IDS, "none"))
    wrong: tuple[object, ...] = ({"choice": "qqqqq"}, {"choice": 0}, {"choice": "kzrtw", "a": 1}, {}, [])
    assert not any(valid(value) for value in wrong)


def test_the_examples_in_the_docstrings_hold() -> None:
    failed, tried = doctest.testmod(answer)
    assert (failed, tried > 0) == (0, True)

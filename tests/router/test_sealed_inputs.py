from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from models.events import DecisionRow
from router.sealed_inputs import BASE, FORMAT, OF_SECTIONS
from router.sealed_record import SealedRecord, UnreadableError
from tests.router.replay_history import make_history

Read = dict[str, SealedRecord]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """The records of a history by name."""
    folder: Path = tmp_path_factory.mktemp("history")
    ids = make_history(folder)
    columns = ", ".join(DecisionRow._fields)
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        rows = {row[0]: DecisionRow._make(row) for row in connection.execute(f"SELECT {columns} FROM decisions")}  # noqa: S608
    return {name: SealedRecord.of(rows[decision_id]) for name, decision_id in ids.items()}


def test_the_members_that_others_read_keep_their_names_and_forms(read: Read) -> None:
    inputs = read["thompson 0"].inputs
    assert inputs["format"] == FORMAT == 1
    assert sorted(inputs["digests"]) == [
        "cards", "classifier", "draws", "encoder", "index", "live", "policy", "reading", "request", "weights",
    ]  # fmt: skip
    assert inputs["blend"] == pytest.approx([1.0, 1.0, 1.0, 1.0, 0.1, 0.0, 0.02], abs=0.5)
    assert sorted(inputs["learned"]) == ["alpha", "beta", "floor", "mode", "temperature", "version"]
    assert (inputs["learned"]["mode"], inputs["learned"]["floor"]) == ("explore", 0.02)
    assert [row[0] for row in inputs["contenders"]] == ["default/probed/1.0.0", "default/tried/1.0.0"]
    assert [len(row) for row in inputs["contenders"]] == [7, 7]
    assert len(inputs["learned"]["alpha"]) == len(inputs["propensities"]) == 2
    assert sum(inputs["propensities"]) == pytest.approx(1.0)
    assert inputs["similarity"] == 1.0


def test_a_reading_is_sealed_without_its_text(read: Read) -> None:
    inputs = read["read"].inputs
    assert sorted(inputs["reading"]) == [
        "alternatives", "certainty", "confidence", "degraded", "intent", "language", "preference", "source", "vector",
    ]  # fmt: skip
    reading = read["read"].reading
    assert reading is not None
    assert (reading.text, reading.intent, reading.source) == ("please say it again", "echo", "semantic")
    assert "say it again" not in read["read"].row.inputs


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("selected", {"explain", "contenders", "similarity"}),
        ("no_capable_agent", set()),
        ("leased", {"leased", "contenders", "similarity"}),
        ("quota", {"left_out", "over", "retry_after_ms"}),
        ("breaker_open", {"left_out", "retry_after_ms"}),
        ("queued", {"left_out", "retry_after_ms", "ticket"}),
        ("degraded", {"contenders", "similarity", "stages", "leased"}),
        ("people", {"n_failures"}),
        ("poison_request", {"is_poison"}),
        ("goal_mismatch", {"goal"}),
        ("sticky_session", {"waiting", "contenders", "similarity", "leased"}),
        ("parts", {"parts", "contenders", "similarity", "leased"}),
        ("part of parts", {"part_of", "contenders", "similarity", "leased"}),
        ("share", {"left_out", "contenders", "similarity", "leased"}),
    ],
)
def test_what_others_gave_is_sealed_where_there_is_something_to_tell(read: Read, name: str, members: set[str]) -> None:
    live = set(read[name].live) - {"costs_usd", "timeouts_ms"}
    # whether places are taken for callers without a name depends on whether such ones have posted outcomes
    assert live - {"leased"} == members - {"leased"}


def test_no_section_of_a_record_as_it_was_written_is_altered(read: Read) -> None:
    assert {name: record.altered() for name, record in read.items() if record.altered()} == {}


@pytest.mark.parametrize("name", [*BASE, "seed", "reading", "blend", "learned", "propensities", "contenders"])
def test_a_change_of_any_member_is_in_one_section(read: Read, name: str) -> None:
    record = read["selected"]
    inputs: dict[str, Any] = {**record.inputs, name: "other"}
    row = record.row._replace(inputs=orjson.dumps(inputs).decode())
    if name == "format":
        with pytest.raises(UnreadableError, match="format other"):
            SealedRecord.of(row)
        return
    section = {"seed": "draws", "reading": "reading", "blend": "weights", "learned": "weights", "propensities": "draws"}
    expected = section.get(name, "request" if name in BASE else "live")
    assert SealedRecord.of(row).altered() == [expected]


def test_every_member_is_in_a_section(read: Read) -> None:
    for record in read.values():
        assert set(record.inputs) == {*BASE, *OF_SECTIONS, *record.live}


@pytest.mark.parametrize(
    ("inputs", "request_text", "said"),
    [
        ('{"seed": 7}', "{}", "inputs are not sealed"),
        ("[]", "{}", "inputs are not sealed"),
        ("{", "{}", "cannot be read"),
        ('{"format": 99, "digests": {}}', "{}", "format 99"),
        ('{"format": 1, "digests": {}}', "{", "cannot be read"),
        ('{"format": 1, "digests": {}}', '{"intent": 7}', "intent"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(read: Read, inputs: str, request_text: str, said: str) -> None:
    row = read["selected"].row._replace(inputs=inputs, request=request_text)
    with pytest.raises(UnreadableError, match=said):
        SealedRecord.of(row)


def test_what_is_sealed_of_three_agents_is_small(read: Read) -> None:
    sizes = {name: len(record.row.inputs) for name, record in read.items() if record.inputs.get("contenders")}
    assert max(sizes.values()) < 2000
    assert json.loads(read["selected"].row.inputs) == read["selected"].inputs

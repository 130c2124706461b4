from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from models.decision import Action, Reason
from router.replay_log import follow_chain, replay_log
from router.replayed import PARTS
from router.stores.open import open_store
from tests.router.replay_history import altered, make_history, replayed, replayer

Made = tuple[Path, dict[str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A store with a decision of every kind, and their ids by name; cards and policy have changed since."""
    folder = tmp_path_factory.mktemp("history")
    return folder / "store.db", make_history(folder)


@pytest.fixture
def copied(made: Made, tmp_path: Path) -> Made:
    """A copy of it that a test may spoil."""
    store, ids = made
    shutil.copy(store, tmp_path / "store.db")
    return tmp_path / "store.db", ids


def column(store: Path, decision_id: str, name: str) -> Any:
    with closing(sqlite3.connect(store)) as connection:
        query = f"SELECT {name} FROM decisions WHERE decision_id = ?"  # noqa: S608 - names of this file
        return connection.execute(query, (decision_id,)).fetchone()[0]


def change(store: Path, decision_id: str, name: str, how: Callable[[Any], None]) -> None:
    """Change the JSON text of a column."""
    value = json.loads(column(store, decision_id, name))
    how(value)
    statement = f"UPDATE decisions SET {name} = ? WHERE decision_id = ?"  # noqa: S608 - names of this file
    assert altered(store, statement, json.dumps(value, separators=(",", ":"), ensure_ascii=False), decision_id) == 1


async def test_every_decision_is_equal_after_a_restart_under_other_cards_and_another_policy(made: Made) -> None:
    store, ids = made
    async with replayer(store) as found:
        told = {name: await found.replay(decision_id) for name, decision_id in ids.items()}
    assert {name: each and (each.verdict, each.detail) for name, each in told.items()} == dict.fromkeys(
        ids, ("equal", None)
    )


def test_the_history_holds_every_action_and_reason(made: Made) -> None:
    store, ids = made
    assert {column(store, decision_id, "action") for decision_id in ids.values()} == {str(each) for each in Action}
    assert {column(store, decision_id, "reason") for decision_id in ids.values()} == {str(each) for each in Reason}


async def test_what_was_recomputed_is_told_by_name(made: Made) -> None:
    store, ids = made
    read = await replayed(store, ids["read"])
    assert read.checked == PARTS
    assert read.taken == ()
    given = await replayed(store, ids["selected"])
    assert given.checked == tuple(part for part in PARTS if part != "classifier")
    refused = await replayed(store, ids["not_permitted"])
    assert {"weights", "draws", "plan"}.isdisjoint(refused.checked)
    queued = await replayed(store, ids["queued"])
    assert queued.taken == ("ticket",)


@pytest.mark.parametrize("mode", ["redacted", "digest"])
async def test_without_its_text_a_decision_is_replayed_from_the_reading_that_was_sealed(made: Made, mode: str) -> None:
    store, ids = made
    assert "8841" not in column(store, ids[mode], "request")
    found = await replayed(store, ids[mode])
    assert (found.verdict, found.taken) == ("equal", ("reading",))
    assert "reading" not in found.checked


def test_measured_figures_are_what_was_sealed(made: Made) -> None:
    store, ids = made
    inputs = json.loads(column(store, ids["measured"], "inputs"))
    assert inputs["timeouts_ms"]["default/old/1.0.0"] == pytest.approx(2 * 4028 + 500, abs=5)
    assert inputs["contenders"][0][-1] == pytest.approx(4014.5, abs=1)
    late = json.loads(column(store, ids["too slow"], "inputs"))
    assert late["left_out"] == [["default/old/1.0.0", "deadline"]]
    assert late["timeouts_ms"] == inputs["timeouts_ms"]


def first_card(store: Path) -> tuple[str, bytes]:
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT digest, body FROM generations WHERE kind = 'card'").fetchall()
    return next((digest, body) for digest, body in rows if b'"dear"' in body)


async def test_one_altered_card_is_named(copied: Made) -> None:
    store, ids = copied
    digest, body = first_card(store)
    worse = body.replace(b'"quality":0.9', b'"quality":0.1')
    assert worse != body
    altered(store, "UPDATE generations SET body = ? WHERE digest = ?", worse, digest)
    found = await replayed(store, ids["preferred_cheaper"])
    assert (found.verdict, found.part) == ("differs", "cards")
    assert "default/dear/1.0.0" in (found.detail or "")


@pytest.mark.parametrize(
    ("kind", "part"), [("card", "cards"), ("cards", "cards"), ("policy", "policy")], ids=["card", "cards", "policy"]
)
async def test_an_archive_that_lacks_something_cannot_be_replayed_from(copied: Made, kind: str, part: str) -> None:
    store, ids = copied
    altered(store, "DELETE FROM generations WHERE kind = ?", kind)
    found = await replayed(store, ids["selected"])
    assert (found.verdict, found.part) == ("not_replayable", None)
    assert f"does not hold the {kind}" in (found.detail or "")


async def test_an_altered_policy_is_named(copied: Made) -> None:
    store, ids = copied
    altered(store, "UPDATE generations SET body = replace(body, '0.1', '0.2') WHERE kind = 'policy'")
    found = await replayed(store, ids["selected"])
    assert (found.verdict, found.part) == ("differs", "policy")


async def test_altered_vectors_of_the_cards_are_named(copied: Made) -> None:
    store, ids = copied
    said, other = (sha256(text.encode()).hexdigest() for text in ("say it again please", "return the order number"))
    vector_of = "(SELECT vector FROM vectors WHERE digest = ?)"
    assert altered(store, f"UPDATE vectors SET vector = {vector_of} WHERE digest = ?", other, said) == 1  # noqa: S608
    found = await replayed(store, ids["read"])
    assert (found.verdict, found.part) == ("differs", "index")


def _seed(inputs: Any) -> None:
    inputs["seed"] += 1


def _alpha(inputs: Any) -> None:
    inputs["learned"]["alpha"][0] += 1e-9


def _health(inputs: Any) -> None:
    inputs["contenders"][0][3] -= 1e-9


def _propensity(inputs: Any) -> None:
    inputs["propensities"].reverse()


def _confidence(inputs: Any) -> None:
    inputs["reading"]["confidence"] -= 1e-9


def _grants(inputs: Any) -> None:
    inputs["grants"]["permissions"] = ["user:erase"]


@pytest.mark.parametrize(
    ("name", "where", "how", "part"),
    [
        ("selected", "inputs", _seed, "draws"),
        ("shared 0", "inputs", _propensity, "draws"),
        ("thompson 0", "inputs", _alpha, "weights"),
        ("selected", "inputs", _health, "live"),
        ("read", "inputs", _confidence, "reading"),
        ("selected", "inputs", _grants, "request"),
        ("read", "request", lambda value: value.update(utterance="please say it againn"), "request"),
        ("selected", "request", lambda value: value.update(preference="best"), "request"),
        ("selected", "answer", lambda value: value["target"].update(agent_id="worse"), "answer"),
        ("selected", "answer", lambda value: value["plan"][0].update(timeout_ms=1), "answer"),
        ("selected", "answer", lambda value: value.update(elapsed_ms=1e6), "answer"),
    ],
    ids=["seed", "draw", "weight", "live", "reading", "grants", "text", "request", "target", "plan", "time"],
)
async def test_what_was_altered_in_a_record_is_named(
    copied: Made, name: str, where: str, how: Callable[[Any], None], part: str
) -> None:
    store, ids = copied
    assert (await replayed(store, ids[name])).verdict == "equal"
    change(store, ids[name], where, how)
    found = await replayed(store, ids[name])
    assert (found.verdict, found.part) == ("differs", part)
    assert "altered after it was sealed" in (found.detail or "")
    # and nothing else is
    assert (await replayed(store, ids["after"])).verdict == "equal"


@pytest.mark.parametrize("name", ["action", "reason", "intent", "agent_id", "asker", "trace_id"])
async def test_an_altered_column_is_found(copied: Made, name: str) -> None:
    store, ids = copied
    statement = f"UPDATE decisions SET {name} = 'other' WHERE decision_id = ?"  # noqa: S608 - names of this file
    altered(store, statement, ids["selected"])
    found = await replayed(store, ids["selected"])
    assert (found.verdict, found.part) == ("differs", "answer")


async def test_inputs_that_cannot_be_used_any_more_are_found_too(copied: Made) -> None:
    store, ids = copied
    altered(store, "UPDATE decisions SET inputs = '{}' WHERE decision_id = ?", ids["selected"])
    altered(store, "UPDATE decisions SET request = '{' WHERE decision_id = ?", ids["read"])
    for name in ("selected", "read"):
        found = await replayed(store, ids[name])
        assert (found.verdict, found.part) == ("differs", "record")


async def test_a_record_put_in_the_place_of_another_is_found(copied: Made) -> None:
    store, ids = copied
    altered(store, "DELETE FROM decisions WHERE decision_id = ?", ids["selected"])
    columns = "trace_id, caller, namespace, action, reason, intent, agent_id, request, answer, inputs, happened_at"
    statement = (
        f"INSERT INTO decisions (decision_id, {columns}) SELECT ?, {columns} FROM decisions WHERE decision_id = ?"  # noqa: S608
    )
    altered(store, statement, ids["selected"], ids["wish"])
    assert (await replayed(store, ids["selected"])).verdict == "differs"
    altered(store, statement, "forged", ids["wish"])
    forged = await replayed(store, "forged")
    assert (forged.verdict, forged.part) == ("differs", "answer")
    assert "no seal" in (forged.detail or "")


async def test_a_seal_that_was_altered_breaks_the_chain_there(copied: Made) -> None:
    store, ids = copied
    altered(store, "UPDATE seals SET chain = digest WHERE decision_id = ?", ids["selected"])
    found = await replayed(store, ids["selected"])
    assert (found.verdict, found.part) == ("differs", "record")
    assert "does not follow" in (found.detail or "")
    async with open_store(f"sqlite:///{store}") as opened:
        report = await follow_chain(opened.seals, progress=lambda done, n: None)
    assert report.broken is not None
    assert report.broken.decision_id == ids["selected"]
    assert report.n_seals == report.broken.sequence - 1


async def test_an_erased_record_says_so_and_the_chain_holds(copied: Made) -> None:
    store, ids = copied
    when = "UPDATE seals SET salt = NULL, erased_at = 1764522000000 WHERE decision_id = ?"
    altered(store, when, ids["selected"])
    altered(store, "DELETE FROM decisions WHERE decision_id = ?", ids["selected"])
    found = await replayed(store, ids["selected"])
    assert (found.verdict, found.part) == ("erased", None)
    assert found.detail == "erased, or dropped at its age, at 2025-11-30T17:00:00+00:00"
    async with open_store(f"sqlite:///{store}") as opened:
        report = await follow_chain(opened.seals, progress=lambda done, n: None)
    assert (report.broken, report.n_erased) == (None, 1)


async def test_a_record_that_is_noted_as_erased_and_is_there_was_tampered_with(copied: Made) -> None:
    store, ids = copied
    altered(store, "UPDATE seals SET salt = NULL, erased_at = 5 WHERE decision_id = ?", ids["selected"])
    found = await replayed(store, ids["selected"])
    assert (found.verdict, found.part) == ("differs", "record")
    assert "noted as erased" in (found.detail or "")


async def test_a_record_that_is_gone_without_a_note_is_found(copied: Made) -> None:
    store, ids = copied
    altered(store, "DELETE FROM decisions WHERE decision_id = ?", ids["selected"])
    found = await replayed(store, ids["selected"])
    assert (found.verdict, found.part) == ("differs", "record")


INSERT_OLD = """INSERT INTO decisions SELECT ?, trace_id, caller, namespace, action, reason, intent, agent_id, request,
    answer, ?, ?, session_id, asker FROM decisions WHERE decision_id = ?"""


async def test_a_record_of_before_inputs_were_sealed_is_not_replayable(copied: Made) -> None:
    store, ids = copied
    altered(store, INSERT_OLD, "old", '{"seed": 7}', 5, ids["selected"])
    found = await replayed(store, "old")
    assert (found.verdict, found.part) == ("not_replayable", None)


async def test_a_record_without_a_seal_that_is_not_of_before_was_slipped_in(copied: Made) -> None:
    store, ids = copied
    altered(store, INSERT_OLD, "late", '{"seed": 7}', 2**50, ids["selected"])
    found = await replayed(store, "late")
    assert (found.verdict, found.part) == ("differs", "record")
    assert "it has no seal" in (found.detail or "")


async def test_records_without_a_seal_are_counted_apart_and_those_that_lost_it_differ(copied: Made) -> None:
    store, ids = copied
    for name, inputs, at_ms in (("old1", "{}", 5), ("old2", "no JSON", 6), ("late", "{}", 2**50)):
        altered(store, INSERT_OLD, name, inputs, at_ms, ids["selected"])
    async with open_store(f"sqlite:///{store}") as opened, replayer(store) as found:
        report = await replay_log(opened.seals, found, limit=3, progress=lambda done, n: None)
    assert report.unsealed.told() == {"n_before_seals": 2, "n_lost": 1, "examples": ["old1", "old2"]}
    assert (report.counts, report.parts) == ({"equal": 3, "differs": 1}, {"record": 1})
    assert [each.decision_id for each in report.examples] == ["late"]
    assert report.chain.broken is None


async def test_seals_that_were_all_taken_away_without_a_trace_are_missed(copied: Made) -> None:
    store, _ = copied
    n = altered(store, "DELETE FROM seals")
    altered(store, "DELETE FROM sqlite_sequence WHERE name = 'seals'")
    async with open_store(f"sqlite:///{store}") as opened, replayer(store) as found:
        report = await replay_log(opened.seals, found, limit=None, progress=lambda done, n: None)
    assert report.chain.broken is None
    assert (report.counts, report.unsealed.n_lost) == ({"differs": n}, n)


async def test_a_seal_that_was_taken_away_breaks_the_chain_whatever_is_made_of_its_record(copied: Made) -> None:
    store, ids = copied
    altered(store, "DELETE FROM seals WHERE decision_id = ?", ids["selected"])
    altered(store, "UPDATE decisions SET inputs = '{}', happened_at = 5 WHERE decision_id = ?", ids["selected"])
    async with open_store(f"sqlite:///{store}") as opened, replayer(store) as found:
        report = await replay_log(opened.seals, found, limit=None, progress=lambda done, n: None)
    assert report.unsealed.n_before_seals == 1
    assert report.chain.broken is not None


async def test_there_is_no_replay_of_a_decision_that_never_was(made: Made) -> None:
    async with replayer(made[0]) as found:
        assert await found.replay("never") is None


async def test_a_part_whose_sentence_is_gone_is_replayed_from_the_reading_that_was_sealed(copied: Made) -> None:
    store, ids = copied
    part = ids["part of parts"]
    assert (await replayed(store, part)).taken == ()
    altered(store, "DELETE FROM decisions WHERE decision_id = ?", ids["parts"])
    found = await replayed(store, part)
    assert (found.verdict, found.taken) == ("equal", ("reading",))


async def test_a_sentence_whose_part_is_gone_is_not_replayable(copied: Made) -> None:
    store, ids = copied
    altered(store, "DELETE FROM decisions WHERE decision_id = ?", ids["part of parts"])
    found = await replayed(store, ids["parts"])
    assert found.verdict == "not_replayable"
    assert ids["part of parts"] in (found.detail or "")


async def test_all_on_record_is_replayed_in_the_order_of_its_seals(copied: Made) -> None:
    store, ids = copied
    seen: list[tuple[int, int]] = []
    async with open_store(f"sqlite:///{store}") as opened, replayer(store) as found:
        whole = await replay_log(opened.seals, found, limit=None, progress=lambda done, n: seen.append((done, n)))
        n = whole.chain.n_seals
        newest = await replay_log(opened.seals, found, limit=3, progress=lambda done, n: None)
    assert whole.counts == {"equal": n}
    assert whole.taken["reading"] == 4
    assert seen[-1] == (n, n)
    assert newest.counts == {"equal": 3}
    change(store, ids["selected"], "inputs", _seed)
    async with open_store(f"sqlite:///{store}") as opened, replayer(store) as found:
        spoilt = await replay_log(opened.seals, found, limit=None, progress=lambda done, n: None)
    assert (spoilt.counts["differs"], spoilt.parts) == (1, {"draws": 1})
    assert [each.decision_id for each in spoilt.examples] == [ids["selected"]]
    assert spoilt.chain.broken is not None

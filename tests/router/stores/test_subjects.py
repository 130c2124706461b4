from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy.dialects import sqlite

from models.events import DecisionRow, EventRow, GoalRow, OutcomeRow, RepeatRow, ReviewRow, ShadowRow, UsageRow
from models.key import Key
from models.queue import TicketRow, TicketState
from models.review import ReviewFilter
from models.subject import ERASED_CALLER, Subject
from router.seals import GENESIS, first_break
from router.spans import span_row
from router.stores.open import Store
from router.stores.subject_queries import ids_query

UTTERANCE = "my dog Bello ate the invoice"
SESSION, AGENT, KEY = "s-4711", "front_desk", "key-4711"
CONFIGURATION = {"keys", "cards", "policies", "generations"}


def decided(number: int, session_id: str | None = SESSION, asker: str = AGENT, caller: str = KEY) -> DecisionRow:
    span = f"span-{number}"
    request = {"utterance": UTTERANCE, "task_id": f"{session_id}/{number}", "caller": {"session_id": session_id}}
    answer = {"span_id": span, "text": UTTERANCE, "queue": {"ticket": f"ticket-{number}"}, "plan": []}
    return DecisionRow(
        f"d{number}", f"trace-{session_id}", caller, "shop", "invoke", "selected", "refund", "refunds",
        json.dumps(request), json.dumps(answer), '{"seed":1}', 1000 + number, session_id, asker,
    )  # fmt: skip


def about(row: DecisionRow, number: int) -> list[Any]:
    """All kinds of rows that may hang on a decision."""
    span = span_row(
        row.trace_id, f"span-{number}", None, "router", [("read", "sure", {"t": 1}, 0, 0.0)], 1000, row.caller
    )
    return [
        row,
        span,
        EventRow(row.trace_id, "span-of-others", None, "router", "route", None, "{}", 0, 0.0, 1000, "other"),
        OutcomeRow(row.decision_id, 1, f"{row.session_id}-key", row.asker, '{"status":"failed"}', "agent", 1000),
        ReviewRow(f"r{number}", row.decision_id, row.asker, "shop", UTTERANCE, "refund", "billing", 1000),
        GoalRow("shop", f"{row.session_id}/{number}", "hash", 1000),
        RepeatRow(row.caller, f"{row.session_id}/{number}", "0" * 64, row.decision_id, 1000),
        ShadowRow(row.decision_id, 1, json.dumps({"text": UTTERANCE}), 1000),
        UsageRow(1, row.asker, "team", "shop", "refunds", 1, 1, 1, 10, 0.5, 1, 100.0),
    ]  # fmt: skip


def ticket(row: DecisionRow, number: int) -> TicketRow:
    return TicketRow(
        f"ticket-{number}", "shop", "refund", row.decision_id, row.trace_id, row.caller, TicketState.WAITING,
        0, None, None, None, 1000, 9_000_000_000_000, None, f"about {row.session_id}",
    )  # fmt: skip


async def fill(store: Store, *rows: DecisionRow) -> None:
    for row in rows:
        number = int(row.decision_id[1:])
        await store.records.append(about(row, number))
        assert await store.tickets.put(ticket(row, number), json.dumps({"utterance": UTTERANCE}), 100)


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """(table, value) of all columns of all tables that hold no configuration."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            if name not in CONFIGURATION:
                for row in connection.execute(f'SELECT * FROM "{name}"'):  # noqa: S608 - names of our own tables
                    yield from ((name, str(value)) for value in row)


def holding(path: Path, word: str) -> set[str]:
    return {table for table, value in texts(path) if word in value}


def n_in_files(path: Path, word: str) -> int:
    """How often a word stands in the store's files, whatever they say is deleted."""
    return sum(each.read_bytes().count(word.encode()) for each in path.parent.glob(f"{path.name}*"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def erase(store: Store, subject: Subject, limit: int = 2) -> list[int]:
    """Decisions erased in each step."""
    steps = []
    while (n := (await store.subjects.erase_records(subject, 5000, limit)).decisions) > 0:
        steps.append(n)
    await store.subjects.erase_name(subject)
    return steps


async def add_key(store: Store, name: str = KEY) -> None:
    await store.keys.add_key(Key(key_id="0" * 16, name=name, secret_sha256="0" * 64, created_at=1))


@pytest.mark.parametrize("name", [SESSION, AGENT, KEY])
async def test_after_erasure_no_table_holds_the_name_or_the_utterance(store: Store, path: Path, name: str) -> None:
    await add_key(store)
    await fill(store, *(decided(number) for number in range(5)))
    assert {"decisions", "tickets", "reviews", "shadows"} <= holding(path, UTTERANCE)
    assert len(holding(path, name)) >= 4
    assert await erase(store, Subject(name)) == [2, 2, 1]
    assert (holding(path, UTTERANCE), holding(path, name)) == (set(), set())


async def test_neither_does_the_file(store: Store, path: Path) -> None:
    await add_key(store)
    await fill(store, *(decided(number) for number in range(20)))
    await store.subjects.give_back()
    assert n_in_files(path, UTTERANCE) > 20
    await erase(store, Subject(SESSION))
    await store.subjects.give_back()
    assert (n_in_files(path, UTTERANCE), n_in_files(path, SESSION)) == (0, 0)


async def test_erasure_leaves_the_rest_and_its_seals(store: Store, path: Path) -> None:
    other = decided(7, "s-8", "bot", "key-8")
    await fill(store, decided(1), other, decided(2))
    await erase(store, Subject(SESSION))
    assert await store.records.decision("d1") is None
    assert await store.records.decision("d7") == other
    assert len(await store.records.outcomes_of("d7")) == 1
    assert [row.review_id for row in await store.reviews.page(ReviewFilter(), "", 9)] == ["r7"]
    assert (await store.tickets.get("ticket-7")) is not None
    assert await store.tickets.get("ticket-1") is None
    seals = [seal for seal, _ in await store.seals.page(0, 10)]
    assert [(seal.decision_id, seal.salt is None, seal.erased_at) for seal in seals] == [
        ("d1", True, 5000), ("d7", False, None), ("d2", True, 5000)
    ]  # fmt: skip
    assert holding(path, "span-of-others") == {"events"}


async def test_the_chain_still_verifies(store: Store) -> None:
    await fill(store, *(decided(number, session_id=f"s-{number % 3}") for number in range(9)))
    await erase(store, Subject("s-1"))
    at, wrong = first_break((0, GENESIS), await store.seals.page(0, 100))
    assert (at[0], wrong) == (9, None)


async def test_sums_of_usage_stay_under_no_name(store: Store, path: Path) -> None:
    await fill(store, decided(1), decided(2), decided(3, asker="bot"))
    assert (await store.subjects.erase_name(Subject(AGENT))).usage == 1
    await store.records.append([UsageRow(1, AGENT, "team", "shop", "refunds", 1, 1, 0, 5, 0.25, 0, 0.0)])
    await store.subjects.erase_name(Subject(AGENT))
    assert (await store.subjects.erase_name(Subject(ERASED_CALLER))).usage == 0
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT caller, n_decisions, tokens, cost_usd FROM usage ORDER BY caller").fetchall()
    assert found == [(ERASED_CALLER, 3, 25, 1.25), ("bot", 1, 10, 0.5)]


async def test_a_key_erases_only_what_was_asked_with_it(store: Store) -> None:
    await fill(store, decided(1), decided(2, caller="key-8"))
    assert await erase(store, Subject(SESSION, "key-8")) == [1]
    assert await store.records.decision("d1") is not None
    assert Subject(SESSION, KEY).is_whole is False
    assert (Subject(KEY, KEY).is_whole, Subject(SESSION).is_whole) == (True, True)


@pytest.mark.parametrize(
    ("subject", "told"),
    [(Subject(SESSION), KEY), (Subject(AGENT), KEY), (Subject(SESSION, KEY), KEY), (Subject(KEY), None)],
)
async def test_the_seal_of_an_erased_record_tells_its_key_unless_that_is_what_was_erased(
    store: Store, subject: Subject, told: str | None
) -> None:
    await fill(store, decided(1), decided(2, "s-8", "bot", "key-8"))
    await erase(store, subject)
    [seal, other] = [seal for seal, _ in await store.seals.page(0, 10)]
    assert (seal.erased_at, seal.caller) == (5000, told)
    assert (other.erased_at, other.caller) == (None, None)


async def test_a_key_that_is_erased_later_is_taken_off_the_seals_too(store: Store, path: Path) -> None:
    await fill(store, decided(1), decided(2), decided(3, caller="key-8"), decided(4, caller=""))
    await erase(store, Subject(SESSION))
    assert [seal.caller for seal, _ in await store.seals.page(0, 10)] == [KEY, KEY, "key-8", None]
    await erase(store, Subject(KEY))
    assert [seal.caller for seal, _ in await store.seals.page(0, 10)] == [None, None, "key-8", None]
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT sequence FROM seals WHERE caller = ? LIMIT 9", ("a",))
        assert "seals_caller" in str(plan.fetchall())


async def test_erasing_again_erases_nothing(store: Store) -> None:
    await fill(store, decided(1))
    await erase(store, Subject(SESSION))
    assert set(await store.subjects.erase_records(Subject(SESSION), 6000, 10)) == {0}
    assert set(await store.subjects.erase_name(Subject(SESSION))) == {0}
    [(seal, _)] = await store.seals.page(0, 10)
    assert seal.erased_at == 5000


async def test_a_subject_is_shown_with_all_that_hangs_on_its_decisions(store: Store) -> None:
    rows = [decided(1), decided(2)]
    await fill(store, *rows, decided(3, "s-8", "bot", "key-8"))
    records = await store.subjects.records(Subject(SESSION), "", 10)
    assert [record.decision for record in records] == rows
    first = records[0]
    assert [outcome.body for outcome in first.outcomes] == ['{"status":"failed"}']
    assert [review.correct_intent for review in first.reviews] == ["billing"]
    assert [(event.event_type, event.payload) for event in first.events] == [("read", '{"t":1}')]
    assert [(row.ticket, text) for row, text in first.tickets] == [("ticket-1", json.dumps({"utterance": UTTERANCE}))]
    assert [record.decision for record in await store.subjects.records(Subject(SESSION), "d1", 10)] == rows[1:]
    assert [record.decision for record in await store.subjects.records(Subject(KEY), "", 1)] == rows[:1]


async def test_sums_are_shown_under_the_name_of_a_caller(store: Store) -> None:
    await fill(store, decided(1), decided(2))
    sums = await store.subjects.sums(Subject(AGENT), 10)
    assert [(row.hour, row.n_decisions, row.tokens) for row in sums.usage] == [(1, 2, 20)]
    assert list((await store.subjects.sums(Subject(SESSION), 10)).usage) == []


def plan(path: Path, subject: Subject) -> str:
    text = str(ids_query(subject, "", 10).compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"))


async def test_a_subject_is_found_through_indexes(store: Store, path: Path) -> None:
    await fill(store, decided(1))
    assert "SCAN decisions" not in plan(path, Subject(SESSION))


@pytest.mark.parametrize("seed", range(4))
async def test_of_any_subjects_exactly_what_is_theirs_goes(store: Store, seed: int) -> None:
    rng = Random(seed)
    left = {
        row.decision_id: row
        for row in (
            decided(
                number, rng.choice(["s-1", "s-2", "web", None]), rng.choice(["web", "bot"]), rng.choice(["k", "web"])
            )
            for number in range(30)
        )
    }
    await fill(store, *left.values())
    for name in rng.sample(["s-1", "s-2", "web", "k"], 3):
        subject = Subject(name, rng.choice([None, "k"]))
        await erase(store, subject, limit=rng.randint(1, 9))
        for row in list(left.values()):
            if name in (row.session_id, row.asker, row.caller) and subject.key in (None, row.caller):
                del left[row.decision_id]
        page = await store.seals.page(0, 100)
        assert {row.decision_id: row for _, row in page if row is not None} == left
        assert {seal.decision_id for seal, _ in page if seal.erased_at is None} == set(left)
        assert first_break((0, GENESIS), page) == ((30, page[-1][0].chain), None)

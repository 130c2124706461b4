from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Select
from sqlalchemy.dialects import sqlite

from models.events import DecisionRow, EventRow, GoalRow, OutcomeRow, RepeatRow, UsageRow
from router.stores import tables
from router.stores.open import Store
from router.stores.records import callers_query, first_query, outcomes_query, range_query, trace_query, window_query
from tests.router.stores.samples import decision, event, outcome, repeat, span


def plan(path: Path, query: Select[Any]) -> str:
    # SQLite says how it would run a statement for the parameters of this very statement
    text = str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"))


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (EventRow, tables.events),
        (DecisionRow, tables.decisions),
        (GoalRow, tables.goals),
        (OutcomeRow, tables.outcomes),
        (RepeatRow, tables.repeats),
        (UsageRow, tables.usage),
    ],
)
def test_rows_have_the_columns_of_their_table_in_order(kind: type[EventRow], table: Any) -> None:
    assert [column.name for column in table.columns if column.name != "sequence"] == list(kind._fields)


async def test_events_come_back_equal_in_the_order_given(store: Store) -> None:
    rows = [event(span_id=f"s{n}", payload='{"text": "订单 ü"}') for n in range(50)]
    await store.records.append([*rows[:20], decision(), *rows[20:]])
    found = await store.records.trace("t1", 100)
    assert [row for _, row in found] == rows
    assert [sequence for sequence, _ in found] == sorted(sequence for sequence, _ in found)
    assert await store.records.decision("d1") == decision()


async def test_a_trace_is_cut_at_its_limit_and_knows_only_its_own(store: Store) -> None:
    await store.records.append([event("t1", "a"), event("t2", "b"), event("t1", "c"), event("t1", "d")])
    assert [row.span_id for _, row in await store.records.trace("t1", 2)] == ["a", "c"]
    assert await store.records.trace("t3", 2) == []


async def test_the_first_decision_and_the_first_goal_of_a_key_win(store: Store) -> None:
    await store.records.append([decision(answer="1"), GoalRow("default", "task", "one", 1)])
    await store.records.append([decision(answer="2"), GoalRow("default", "task", "two", 2), event()])
    await store.records.append([GoalRow("other", "task", "three", 3), GoalRow("other", "task", "four", 3)])
    record = await store.records.decision("d1")
    assert record is not None
    assert record.answer == "1"
    assert await store.records.goal("default", "task") == "one"
    assert await store.records.goal("other", "task") == "three"
    assert await store.records.goal("other", "unknown") is None
    assert len(await store.records.trace("t1", 10)) == 1


@pytest.mark.parametrize(
    "times",
    [
        list(range(500)),
        list(range(500, 0, -1)),
        [n * 37 % 500 for n in range(500)],
        [120, *range(500), 130, *[900] * 500, 140],
        [900] * 2000,
        [],
    ],
    ids=["rising", "falling", "jumping", "scattered", "none within", "none at all"],
)
async def test_events_of_a_time_are_paged_by_sequence(store: Store, times: list[int]) -> None:
    await store.records.append([event(span_id=str(n), happened_at=time) for n, time in enumerate(times)])
    wanted = [n for n, time in enumerate(times) if 100 <= time < 350]
    for limit in (1, 7, 100, 1000):
        got: list[int] = []
        after = 0
        while page := await store.records.events(100, 350, after, limit):
            assert len(page) <= limit
            got += [int(row.span_id) for _, row in page]
            after = page[-1][0]
        assert got == wanted


async def test_the_events_of_a_span_come_back_one_by_one_with_numbers_of_their_own(store: Store) -> None:
    await store.records.append([event(), span(3, span_id="a"), event(span_id="b"), span(2, span_id="c")])
    await store.records.append([span(4, span_id="d")])
    found = await store.records.trace("t1", 100)
    assert [sequence for sequence, _ in found] == list(range(1, 12))
    assert [row.span_id for _, row in found] == ["s1", *"aaa", "b", *"cc", *"dddd"]
    assert found[3][1] == event(span_id="a", payload='{"n":2}')._replace(cost_tokens=2, latency_ms=1.0)
    assert await store.records.events(0, 2000, 0, 100) == found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
async def test_pages_and_limits_end_within_spans_as_anywhere_else(store: Store, limit: int) -> None:
    times = [n * 37 % 100 for n in range(60)]
    await store.records.append([span(1 + n % 4, span_id=str(n), happened_at=time) for n, time in enumerate(times)])
    wanted = [(str(n), k) for n, time in enumerate(times) if 20 <= time < 70 for k in range(1 + n % 4)]
    got: list[tuple[str, int]] = []
    sequences: list[int] = []
    while page := await store.records.events(20, 70, sequences[-1] if sequences else 0, limit):
        assert len(page) <= limit
        got += [(row.span_id, row.cost_tokens) for _, row in page]
        sequences += [sequence for sequence, _ in page]
    assert got == wanted
    assert sequences == sorted(set(sequences))
    everything = await store.records.trace("t1", 1000)
    assert await store.records.trace("t1", limit) == everything[:limit]


async def test_a_row_that_cannot_be_held_keeps_its_whole_batch_out(store: Store) -> None:
    for bad in (event(payload="\ud800"), event()._replace(cost_tokens=2**70), event()._replace(node_id=None)):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="cannot hold this"):
            await store.records.append([event(), decision(), bad])
    assert await store.records.trace("t1", 10) == []
    assert await store.records.decision("d1") is None


async def test_no_sequence_is_given_twice_after_the_newest_events_were_erased(store: Store, tmp_path: Path) -> None:
    await store.records.append([event(), event()])
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("DELETE FROM events")
    await store.records.append([event(), span(2)])
    assert [sequence for sequence, _ in await store.records.trace("t1", 10)] == [3, 4, 5]


async def test_no_query_of_events_scans_or_sorts_the_table(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    trace = plan(path, trace_query("t1", 10))
    assert "USING INDEX events_trace_id" in trace
    window = plan(path, window_query(1, 2, 5, 10))
    assert "USING INTEGER PRIMARY KEY" in window
    first = plan(path, first_query(1, 2, 5))
    assert "USING COVERING INDEX events_happened_at" in first
    within = plan(path, range_query(1, 2, 5, 10))
    assert "USING COVERING INDEX events_happened_at" in within
    for text in (trace, window, first, within):
        assert "SCAN events" not in text
    for text in (trace, window, first):
        assert "TEMP B-TREE" not in text


async def test_outcomes_of_a_decision_come_back_in_the_order_given(store: Store) -> None:
    rows = [outcome(attempt=2, body='{"n":1}'), outcome(body='{"n":2}'), outcome(attempt=2, body='{"n":1}')]
    await store.records.append([outcome("d2"), rows[0], event(), rows[1]])
    await store.records.append([rows[2]])
    assert await store.records.outcomes_of("d1") == rows
    assert await store.records.outcomes_of("d3") == []


async def test_callers_that_posted_an_outcome_are_known_once_each(store: Store) -> None:
    assert await store.records.known_callers(10) == []
    await store.records.append([outcome(caller=caller) for caller in ("web", "", "bot", "web", "bot", "web")])
    await store.records.append([decision()])
    assert await store.records.known_callers(10) == ["", "bot", "web"]
    assert await store.records.known_callers(2) == ["", "bot"]


async def test_the_first_decision_of_a_key_stays_until_it_is_forgotten(store: Store) -> None:
    await store.records.append([repeat(decision_id="d1"), repeat(decision_id="d2"), repeat(caller="bot")])
    await store.records.append([repeat(decision_id="d3", created_at=9000), repeat("k2", created_at=2000)])
    assert await store.records.repeat("web", "k1") == repeat()
    assert await store.records.repeat("bot", "k1") == repeat(caller="bot")
    assert await store.records.repeat("web", "k3") is None
    assert await store.records.forget_repeats(2000) == 2
    assert await store.records.repeat("web", "k1") is None
    assert await store.records.repeat("web", "k2") == repeat("k2", created_at=2000)


async def test_neither_outcomes_nor_callers_are_found_by_scanning_or_sorting(store: Store, tmp_path: Path) -> None:
    found = plan(tmp_path / "store.db", outcomes_query("d1"))
    assert "USING INDEX outcomes_decision_id" in found
    callers = plan(tmp_path / "store.db", callers_query(10))
    assert callers.count("USING COVERING INDEX outcomes_caller") == 2
    for text in (found, callers):
        assert "TEMP B-TREE" not in text

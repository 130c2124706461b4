from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from models.errors import OverloadedError, StoreError
from models.events import DecisionRow, EventRow, OutcomeRow, RepeatRow, Row, UsageQuery, UsageRow
from router.journal import Journal
from router.stores.open import open_store
from tests.router.stores.samples import ROOT, FakeClock, decision, event, outcome, repeat, span, url_of


class ListRecords:
    """A `RecordStore` in memory, which can be told to fail or to wait."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.sizes: list[int] = []
        self.n_failures_left = 0
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.has_begun = asyncio.Event()

    async def append(self, rows: Sequence[Row]) -> None:
        self.has_begun.set()
        await self.may_write.wait()
        if self.n_failures_left:
            self.n_failures_left -= 1
            raise StoreError("the disk is full")
        if any(isinstance(row, EventRow) and row.payload == "poison" for row in rows):
            raise ValueError("cannot hold this")
        self.rows += rows
        self.sizes.append(len(rows))

    async def decision(self, decision_id: str) -> DecisionRow | None:
        found = (row for row in self.rows if isinstance(row, DecisionRow) and row.decision_id == decision_id)
        return next(found, None)

    async def trace(self, trace_id: str, limit: int) -> Sequence[tuple[int, EventRow]]:
        found = [(n, row) for n, row in enumerate(self.rows, 1) if isinstance(row, EventRow)]
        return [(n, row) for n, row in found if row.trace_id == trace_id][:limit]

    async def events(self, from_ms: int, to_ms: int, after: int, limit: int) -> Sequence[tuple[int, EventRow]]:
        raise NotImplementedError

    async def goal(self, namespace: str, task_id: str) -> str | None:
        raise NotImplementedError

    async def outcomes_of(self, decision_id: str) -> Sequence[OutcomeRow]:
        return [row for row in self.rows if isinstance(row, OutcomeRow) and row.decision_id == decision_id]

    async def known_callers(self, limit: int) -> Sequence[str]:
        return sorted({row.caller for row in self.rows if isinstance(row, OutcomeRow)})[:limit]

    async def repeat(self, caller: str, idempotency_key: str) -> RepeatRow | None:
        repeats = (row for row in self.rows if isinstance(row, RepeatRow))
        return next((row for row in repeats if row[:2] == (caller, idempotency_key)), None)

    async def forget_repeats(self, before_ms: int) -> int:
        kept = [row for row in self.rows if not isinstance(row, RepeatRow) or row.created_at >= before_ms]
        n_gone = len(self.rows) - len(kept)
        self.rows[:] = kept
        return n_gone

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        raise NotImplementedError


class Pauses:
    """Notes how long the journal would have slept, and goes on at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def journal_on(store: ListRecords, clock: FakeClock | None = None, pauses: Pauses | None = None) -> Journal:
    return Journal(
        store, max_rows=100, batch=10, wait_ms=1, clock=clock or FakeClock(), sleep=pauses or Pauses(), max_chars=10_000
    )


@asynccontextmanager
async def running(journal: Journal) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(journal.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def numbered(n_rows: int, trace_id: str = "t1") -> list[EventRow]:
    return [event(trace_id, span_id=str(n)) for n in range(n_rows)]


async def test_rows_are_written_in_order_and_in_bounded_batches() -> None:
    store = ListRecords()
    journal = journal_on(store)
    rows = numbered(95)
    async with running(journal):
        for start in range(0, 95, 7):
            journal.put(rows[start : start + 7])
        await journal.flush(10_000)
    assert store.rows == rows
    assert max(store.sizes) <= 10
    assert (journal.n_written, journal.n_pending) == (95, 0)


async def test_what_was_put_together_is_stored_together_as_far_as_a_batch_holds_it() -> None:
    store = ListRecords()
    journal = journal_on(store)
    for n_rows in (4, 4, 4, 10, 1, 25, 2):
        journal.put(numbered(n_rows))
    await journal.flush(10_000)
    assert store.sizes == [8, 4, 10, 1, 10, 10, 7]


async def test_run_writes_without_being_flushed() -> None:
    store = ListRecords()
    journal = journal_on(store)
    async with running(journal):
        journal.put(numbered(3))
        await store.has_begun.wait()
        await journal.flush(10_000)
    assert store.sizes == [3]


async def test_a_full_queue_holds_requests_back_until_there_is_room() -> None:
    store = ListRecords()
    store.may_write.clear()
    journal = journal_on(store)
    async with running(journal):
        await journal.room(0)
        journal.put(numbered(100))
        waiting = asyncio.create_task(journal.room(10_000))
        await store.has_begun.wait()
        assert not waiting.done()
        store.may_write.set()
        await waiting
        assert journal.n_pending < 100


async def test_a_queue_that_stays_full_is_an_overload_with_a_time_to_come_back() -> None:
    journal = journal_on(ListRecords())
    journal.put(numbered(100))
    with pytest.raises(OverloadedError, match="100 rows wait") as caught:
        await journal.room(1)
    assert caught.value.retry_after_ms > 0
    assert journal.n_pending == 100


async def test_much_text_holds_requests_back_as_many_rows_do() -> None:
    store = ListRecords()
    journal = journal_on(store)
    journal.put([event(payload="x" * 6000), decision(answer="x" * 6000)])
    with pytest.raises(OverloadedError):
        await journal.room(0)
    await journal.flush(10_000)
    await journal.room(0)


async def test_a_store_that_fails_and_recovers_loses_nothing_and_keeps_the_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, pauses = ListRecords(), Pauses()
    journal = journal_on(store, pauses=pauses)
    store.n_failures_left = 12
    rows = numbered(40)
    with caplog.at_level(logging.WARNING):
        async with running(journal):
            journal.put(rows[:25])
            while store.n_failures_left > 3:
                assert journal.n_written == 0
                store.has_begun.clear()
                await store.has_begun.wait()
            journal.put(rows[25:])
            assert journal.is_failing
            store.has_begun.clear()
            await store.has_begun.wait()
            while journal.n_pending:
                store.has_begun.clear()
                await store.has_begun.wait()
                await journal.flush(10_000)
    assert store.rows == rows
    assert journal.n_failures == 12
    assert not journal.is_failing
    assert pauses.seconds[:8] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert max(pauses.seconds) == 5.0
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


async def test_a_row_that_can_never_be_stored_does_not_keep_back_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = ListRecords()
    journal = journal_on(store)
    rows = numbered(8)
    journal.put([*rows[:4], event(payload="poison"), *rows[4:]])
    await journal.flush(10_000)
    assert store.rows == rows
    assert (journal.n_refused, journal.n_written, journal.n_pending) == (1, 8, 0)
    assert "poison" in caplog.text


async def test_cancelling_run_in_the_middle_of_a_write_stores_each_row_once() -> None:
    store = ListRecords()
    store.may_write.clear()
    journal = journal_on(store)
    rows = numbered(25)
    async with running(journal):
        journal.put(rows)
        await store.has_begun.wait()
    assert journal.n_pending == 25
    store.may_write.set()
    await journal.aclose(10_000)
    assert store.rows == rows


async def test_a_closed_journal_takes_no_rows() -> None:
    journal = journal_on(ListRecords())
    await journal.aclose()
    with pytest.raises(StoreError, match="3 rows cannot be written"):
        journal.put(numbered(3))


async def test_closing_over_a_dead_store_ends_in_time_and_tells_how_many_rows_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = ListRecords()
    store.may_write.clear()
    journal = journal_on(store)
    journal.put(numbered(7))
    with pytest.raises(StoreError, match="7 rows"):
        await journal.aclose(1)
    assert "7 rows" in caplog.text
    assert journal.n_pending == 7
    store.may_write.set()
    await journal.flush(10_000)
    assert store.rows == numbered(7)


async def test_ones_own_writes_can_be_read_before_they_are_stored() -> None:
    store = ListRecords()
    journal = journal_on(store)
    mine = numbered(3)
    journal.put([decision("d1"), *mine, event("t2")])
    assert journal.pending_decision("d1") == decision("d1")
    assert journal.pending_decision("d2") is None
    assert journal.pending_trace("t1", 2) == mine[:2]
    assert await journal.decision("d1") == decision("d1")
    assert await journal.trace("t1", 10) == [(None, row) for row in mine]
    await journal.flush(10_000)
    assert journal.pending_decision("d1") is None
    assert journal.pending_trace("t1", 2) == []
    assert await journal.decision("d1") == decision("d1")
    assert [row for _, row in await journal.trace("t1", 10)] == mine


async def test_the_events_of_a_span_are_told_while_they_wait_and_are_not_told_twice(tmp_path: Path) -> None:
    async with open_store(url_of(tmp_path / "store.db")) as store:
        journal = Journal(store.records, max_rows=100, batch=100, wait_ms=1)
        rows: list[Row] = [span(3, span_id="a"), event(span_id="b"), span(2, trace_id="t2"), span(4, span_id="c")]
        journal.put(rows)
        assert [(event.span_id, event.cost_tokens) for event in journal.pending_trace("t1", 5)] == [
            *(("a", n) for n in range(3)),
            ("b", 0),
            ("c", 0),
        ]
        # the store has some already, the journal has not yet been told
        await store.records.append(rows[:2])
        trace = await journal.trace("t1", 100)
        assert [sequence for sequence, _ in trace] == [1, 2, 3, 4, None, None, None, None]
        assert [row for _, row in trace] == journal.pending_trace("t1", 100)
        assert await journal.trace("t1", 2) == trace[:2]


async def test_a_row_stored_while_a_trace_is_read_is_not_told_twice() -> None:
    store = ListRecords()
    journal = journal_on(store)
    rows = numbered(4)
    journal.put(rows)
    # the store has them already, the journal has not yet been told
    store.rows += rows[:2]
    assert await journal.trace("t1", 10) == [(1, rows[0]), (2, rows[1]), (None, rows[2]), (None, rows[3])]


async def test_the_oldest_wait_is_that_of_the_first_row_not_stored() -> None:
    clock = FakeClock()
    journal = journal_on(ListRecords(), clock=clock)
    assert journal.oldest_wait_ms == 0
    journal.put(numbered(1))
    clock.ms += 30
    journal.put(numbered(1))
    clock.ms += 12
    assert journal.oldest_wait_ms == 42
    await journal.flush(10_000)
    assert journal.oldest_wait_ms == 0


async def test_many_writers_on_a_real_store_lose_nothing_and_keep_each_traces_order(tmp_path: Path) -> None:
    async with open_store(url_of(tmp_path / "store.db")) as store:
        journal = Journal(store.records, max_rows=200, batch=64, wait_ms=1)

        async def request(trace_id: str) -> None:
            for row in numbered(20, trace_id):
                await journal.room(10_000)
                journal.put([row])
                await asyncio.sleep(0)

        async with running(journal):
            await asyncio.gather(*(request(f"t{n}") for n in range(50)))
        await journal.aclose()
        for n in range(50):
            assert [row for _, row in await store.records.trace(f"t{n}", 100)] == numbered(20, f"t{n}")


async def test_those_who_wait_for_the_store_share_a_write() -> None:
    store = ListRecords()
    journal = Journal(store, max_rows=100, batch=100, wait_ms=1)
    order: list[int] = []

    async def post(n: int) -> None:
        journal.put([outcome(f"d{n}")])
        await journal.stored(10_000)
        assert outcome(f"d{n}") in store.rows
        order.append(n)

    async with running(journal):
        await asyncio.gather(*(post(n) for n in range(50)))
    assert store.sizes == [50]
    assert order == list(range(50))


async def test_once_all_are_back_whom_the_last_write_let_go_the_next_one_begins() -> None:
    store = ListRecords()
    journal = Journal(store, max_rows=1000, batch=1000, wait_ms=600_000, clock=FakeClock())

    async def post(n: int) -> None:
        for turn in range(5):
            journal.put([outcome(f"d{turn}", n)])
            await journal.stored(10_000)

    async with running(journal), asyncio.timeout(20):
        await asyncio.gather(*(post(n) for n in range(1, 21)))
    # until a write has let twenty go, eight are enough
    assert sum(store.sizes) == 100
    assert len(store.sizes) <= 7
    assert store.sizes[-1] == 20


async def test_one_alone_waits_for_others_as_long_as_rows_may_gather() -> None:
    store, clock = ListRecords(), FakeClock()
    journal = Journal(store, max_rows=1000, batch=1000, wait_ms=600_000, clock=clock)
    async with running(journal):
        for _ in range(7):
            journal.put([outcome()])
            with pytest.raises(StoreError):
                await journal.stored(1)
        assert store.sizes == []
        assert journal.pending_outcomes("d1") == [outcome()] * 7


async def test_nobody_waits_for_rows_that_came_after() -> None:
    store = ListRecords()
    journal = journal_on(store)
    await journal.stored(0)
    journal.put(numbered(10))
    waiting = asyncio.create_task(journal.stored(10_000))
    await asyncio.sleep(0)
    journal.put(numbered(3))
    async with running(journal):
        await waiting
        assert store.sizes == [10]


async def test_what_came_during_a_write_does_not_gather_anew() -> None:
    store, clock = ListRecords(), FakeClock()
    store.may_write.clear()
    journal = Journal(store, max_rows=100, batch=100, wait_ms=600_000, clock=clock)
    async with running(journal):
        journal.put(numbered(100))
        await store.has_begun.wait()
        journal.put(numbered(2))
        clock.ms += 600_000
        store.may_write.set()
        await journal.stored(10_000)
    assert store.sizes == [100, 2]


async def test_a_store_that_does_not_write_in_time_is_an_error_and_the_rows_still_wait() -> None:
    store = ListRecords()
    store.may_write.clear()
    journal = journal_on(store)
    async with running(journal):
        journal.put([outcome()])
        for _ in range(3):
            with pytest.raises(StoreError, match="1 rows wait"):
                await journal.stored(1)
        assert journal.pending_outcomes("d1") == [outcome()]
        store.may_write.set()
        await journal.stored(10_000)
    assert store.rows == [outcome()]


async def test_a_row_that_can_never_be_stored_is_not_acknowledged() -> None:
    journal = journal_on(ListRecords())
    async with running(journal):
        journal.put([event(payload="poison")])
        with pytest.raises(StoreError, match="never hold"):
            await journal.stored(10_000)
        journal.put([outcome()])
        await journal.stored(10_000)


async def test_outcomes_and_repeats_are_seen_while_they_wait_and_once_only() -> None:
    store = ListRecords()
    journal = journal_on(store)
    rows = [outcome(body="1"), outcome("d2"), outcome(body="2"), outcome(body="1")]
    journal.put([*rows[:3], repeat(), repeat(decision_id="d2"), rows[3]])
    mine = [rows[0], rows[2], rows[3]]
    assert journal.pending_outcomes("d1") == mine
    assert await journal.repeat("web", "k1") == repeat()
    assert await journal.repeat("web", "k2") is None
    assert await journal.outcomes("d1") == mine
    # the store has some already, the journal has not yet been told
    store.rows += rows[:2]
    assert await journal.outcomes("d1") == mine
    store.rows.clear()
    await journal.flush(10_000)
    assert journal.pending_outcomes("d1") == []
    assert await journal.outcomes("d1") == mine
    assert await journal.repeat("web", "k1") == repeat()


async def test_the_text_of_outcomes_counts_as_that_of_events_does() -> None:
    journal = journal_on(ListRecords())
    journal.put([outcome(body="x" * 10_000)])
    with pytest.raises(OverloadedError):
        await journal.room(0)
    await journal.flush(10_000)
    await journal.room(0)


CHILD = """
import asyncio, sys
from router.journal import Journal
from router.stores.open import open_store
from tests.router.stores.samples import outcome, used

async def main():
    async with open_store(sys.argv[1]) as store:
        journal = Journal(store.records, max_rows=10_000, batch=100, wait_ms=5)
        task = asyncio.create_task(journal.run())

        async def post(caller):
            for number in range(10**9):
                journal.put([outcome(f"d{number}", caller=caller), used(1, caller)])
                await journal.stored(10_000)
                print(caller, number, flush=True)

        await asyncio.gather(*(post(f"c{n}") for n in range(16)))

asyncio.run(main())
"""


async def test_what_was_acknowledged_outlives_a_kill_with_its_usage_counted_once(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")

    def kill_at_work() -> list[bytes]:
        with subprocess.Popen([sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            told = [child.stdout.readline() for _ in range(400)]
            child.send_signal(signal.SIGKILL)
            return told + child.stdout.read().splitlines(keepends=True)

    told = await asyncio.to_thread(kill_at_work)
    acknowledged = [line.decode().split() for line in told if line.endswith(b"\n")]
    n_acknowledged = {caller: int(number) + 1 for caller, number in acknowledged}
    assert len(n_acknowledged) == 16
    async with open_store(url) as store:
        usage = await store.records.usage(UsageQuery(0, 9, "agent_id", by_hour=False))
        n_used = {row.agent_id: row.n_calls for row in usage}
        for caller, n_calls in n_acknowledged.items():
            # at most one was stored whose acknowledgement was on its way
            assert n_calls <= n_used[caller] <= n_calls + 1
            for number in range(n_calls):
                rows = await store.records.outcomes_of(f"d{number}")
                assert [row.caller for row in rows].count(caller) == 1

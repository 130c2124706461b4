"""Journal: rows on their way to the store, written in batches and in order, off the request path."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from models.errors import OverloadedError, StoreError
from models.events import DecisionRow, EventRow, OutcomeRow, RepeatRow, Row
from models.ports import Clock, RecordStore
from router.clock import SystemClock
from router.count_waiters import CountWaiters
from router.pending_rows import PendingRows, not_among

log = logging.getLogger(__name__)

_FIRST_BACKOFF_MS, _MAX_BACKOFF_MS = 50, 5000
_LEAST_RETRY_MS = 100
_LEAST_GROUP = 8
"""From so many waiters of a write on, as many for the next one are not kept waiting for more to come."""


class Journal:
    """A bounded queue before a `RecordStore`.

    Rows leave the queue once the store has them, so neither a failing store nor a cancelled task loses any. There is
    one queue and one write at a time: rows are stored in the order in which they were put.

    Args:
        store: where the rows go.
        max_rows: with so many rows waiting, `room` holds requests back.
        batch: most rows in one write.
        wait_ms: how long rows gather before a write, counted from the oldest of them.
        max_chars: with so much text waiting, `room` holds requests back.
        clock: measures how long rows wait; None takes the system's.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        max_rows: int,
        batch: int,
        wait_ms: int,
        max_chars: int = 256 * 1024 * 1024,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._max_rows = max_rows
        self._max_chars = max_chars
        self._batch = batch
        self._wait_ms = wait_ms
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._rows = PendingRows()
        self._waiters = CountWaiters()
        self._n_woken = 0
        self._backoff_ms = 0
        self._n_written = self._n_refused = self._n_failures = 0
        self._is_closed = False
        self._arrived = asyncio.Event()
        self._is_due = asyncio.Event()
        self._settled = asyncio.Event()
        self._writing: asyncio.Task[bool] | None = None

    @property
    def n_pending(self) -> int:
        """Rows that the store does not have yet."""
        return len(self._rows)

    @property
    def n_written(self) -> int:
        """Rows that the store has taken."""
        return self._n_written

    @property
    def n_refused(self) -> int:
        """Rows that the store can never hold; each one was logged."""
        return self._n_refused

    @property
    def n_failures(self) -> int:
        """Writes that failed and were tried again."""
        return self._n_failures

    @property
    def is_failing(self) -> bool:
        """Whether the last write failed."""
        return self._backoff_ms > 0

    @property
    def oldest_wait_ms(self) -> float:
        """How long the oldest row has waited; 0 where none waits."""
        oldest_ms = self._rows.oldest_ms
        return 0.0 if oldest_ms is None else self._clock.monotonic_ms() - oldest_ms

    def put(self, rows: Sequence[Row]) -> None:
        """Take rows, without waiting.

        Never refuses for want of room, since what has happened must be written down: a request awaits `room` before
        it begins, so the queue exceeds its bound by no more than the requests in flight write.

        Raises:
            StoreError: after `aclose`.
        """
        if self._is_closed:
            raise StoreError(f"the journal is closed: {len(rows)} rows cannot be written")
        if not rows:
            return
        self._rows.put(rows, self._clock.monotonic_ms())
        self._arrived.set()
        self._mark_due()

    async def room(self, timeout_ms: float) -> None:
        """Wait until the queue is below its bounds.

        Raises:
            OverloadedError: where it is not so within `timeout_ms`.
        """
        if self._has_room():
            return
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not self._has_room():
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            raise OverloadedError(
                f"{len(self._rows)} rows wait to be written, {self._max_rows} may",
                retry_after_ms=max(_LEAST_RETRY_MS, self._backoff_ms),
            ) from None

    async def stored(self, timeout_ms: float) -> None:
        """Wait until the store has all rows put so far.

        No write is made for one alone, who waits for others, for `wait_ms` at most; but once as many wait as the last
        write let go, they wait for nobody.

        Raises:
            StoreError: it takes longer than `timeout_ms` (the rows still wait), or a row met with can never be held.
        """
        if self._rows.n_dropped == self._rows.n_put:
            return
        n_refused = self._n_refused
        waiter = self._waiters.add(self._rows.n_put)
        self._mark_due()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await waiter
        except TimeoutError:
            raise StoreError(f"{len(self._rows)} rows wait that were not written within {timeout_ms} ms") from None
        if self._n_refused > n_refused:
            raise StoreError("the store can never hold one of the rows that were written meanwhile")

    def pending_decision(self, decision_id: str) -> DecisionRow | None:
        """The decision, if it still waits. Ask here first and the store after: the other way round may miss it."""
        return self._rows.decision(decision_id)

    def pending_outcomes(self, decision_id: str) -> list[OutcomeRow]:
        """The outcomes of a decision that still wait, oldest first."""
        return self._rows.outcomes(decision_id)

    def pending_trace(self, trace_id: str, limit: int) -> list[EventRow]:
        """At most `limit` events of a trace that still wait, oldest first; looks at each row that waits."""
        return self._rows.trace(trace_id, limit)

    async def decision(self, decision_id: str) -> DecisionRow | None:
        """The decision, stored or still waiting."""
        return self.pending_decision(decision_id) or await self._store.decision(decision_id)

    async def outcomes(self, decision_id: str) -> list[OutcomeRow]:
        """The outcomes of a decision, stored or still waiting, in the order in which they were put."""
        waiting = self.pending_outcomes(decision_id)
        known = await self._store.outcomes_of(decision_id)
        return [*known, *not_among(known, waiting)]

    async def repeat(self, caller: str, idempotency_key: str) -> RepeatRow | None:
        """What the caller's key stands for, stored or still waiting."""
        return self._rows.repeat(caller, idempotency_key) or await self._store.repeat(caller, idempotency_key)

    async def trace(self, trace_id: str, limit: int) -> list[tuple[int | None, EventRow]]:
        """(sequence, event) of a trace, oldest first; those that still wait have no sequence yet."""
        waiting = self.pending_trace(trace_id, limit)
        events: list[tuple[int | None, EventRow]] = list(await self._store.trace(trace_id, limit))
        events += ((None, event) for event in not_among([event for _, event in events], waiting))
        return events[:limit]

    async def run(self) -> None:
        """Write what is put, until cancelled; the caller supervises it. Cancelling it loses nothing."""
        while True:
            await self._arrived.wait()
            await self._gather()
            if not await self._write():
                await self._sleep(self._backoff_ms / 1000)

    async def flush(self, timeout_ms: float) -> None:
        """Write all that has been put so far.

        Raises:
            StoreError: where that takes longer than `timeout_ms`; the rows still wait.
        """
        until = self._rows.n_put
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while self._rows.n_dropped < until:
                    if not await self._write():
                        await self._sleep(_FIRST_BACKOFF_MS / 1000)
        except TimeoutError:
            raise StoreError(
                f"{until - self._rows.n_dropped} rows could not be written within {timeout_ms} ms"
            ) from None

    async def aclose(self, timeout_ms: float = 5000) -> None:
        """Take no more rows and write those that wait.

        Raises:
            StoreError: where that takes longer than `timeout_ms`; also logged, with the number of rows.
        """
        self._is_closed = True
        try:
            await self.flush(timeout_ms)
        except StoreError as error:
            log.error("the journal is closed with rows unwritten: %s", error)
            raise

    def _has_room(self) -> bool:
        return len(self._rows) < self._max_rows and self._rows.n_chars < self._max_chars

    def _mark_due(self) -> None:
        if len(self._rows) >= self._batch or len(self._waiters) >= max(self._n_woken, _LEAST_GROUP):
            self._is_due.set()

    async def _gather(self) -> None:
        # what came during the last write has waited already
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._wait_ms - self.oldest_wait_ms) / 1000):
                await self._is_due.wait()

    async def _write(self) -> bool:
        # a write under way is joined, and is not ended by the end of a caller: whether half of a transaction came to
        # be stored could not be known, and its rows would be stored twice or not at all
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_batch())
        return await asyncio.shield(self._writing)

    async def _write_batch(self) -> bool:
        rows = self._rows.head(self._batch)
        if not rows:
            return True
        try:
            try:
                await self._store.append(rows)
                self._settle(len(rows), n_refused=0)
            except ValueError:
                await self._write_singly(rows)
        except StoreError as error:
            self._fail(error)
            return False
        if self._backoff_ms:
            log.warning("the store takes rows again, %d wait", len(self._rows))
        self._backoff_ms = 0
        return True

    async def _write_singly(self, rows: Sequence[Row]) -> None:
        """One row that the store can never hold must not keep back all that follow it."""
        for row in rows:
            n_refused = 0
            try:
                await self._store.append([row])
            except ValueError as error:
                log.error("a row of the kind %s is lost: %s: %.2000r", type(row).__name__, error, row)
                n_refused = 1
            self._settle(1, n_refused)

    def _settle(self, n_rows: int, n_refused: int) -> None:
        self._rows.drop(n_rows)
        self._n_refused += n_refused
        self._n_written += n_rows - n_refused
        self._n_woken = self._waiters.reach(self._rows.n_dropped)
        if not self._rows:
            self._arrived.clear()
        self._is_due.clear()
        self._mark_due()
        self._settled.set()

    def _fail(self, error: StoreError) -> None:
        self._n_failures += 1
        if not self._backoff_ms:
            log.error("the store does not take rows, they are kept and tried again: %s", error)
        self._backoff_ms = min(_MAX_BACKOFF_MS, max(_FIRST_BACKOFF_MS, self._backoff_ms * 2))

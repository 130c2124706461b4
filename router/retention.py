"""Retention: once an hour, what has reached the age that the policy sets is dropped, a little at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from models.learning_policy import RetentionPolicy
from models.ports import Clock
from models.retention import Dropped, RetentionStore

log = logging.getLogger(__name__)

EVERY_S = 3600.0
BATCH = 1000
"""Rows of one write: other writes wait for no more than these."""

PAUSE_S = 0.05
"""Between two batches, so that the journal is written meanwhile."""

DAY_MS = 86_400_000.0
_N_PAGES = 2000
_SPARE_PAGES = 1000
"""So many free pages stay in the file: they are needed again within the hour."""

Batch = Callable[[], Awaitable[int]]


class Retention:
    """Drops what is old.

    Args:
        store: where it is.
        forget_generations: drops what was last in use before an instant (epoch, milliseconds).
        policy: gives the rules in force.
        clock: the time.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        store: RetentionStore,
        forget_generations: Callable[[int], Awaitable[int]],
        policy: Callable[[], RetentionPolicy],
        clock: Clock,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._forget_generations = forget_generations
        self._policy = policy
        self._clock = clock
        self._sleep = sleep

    async def run(self) -> None:
        """Drop what is due once an hour, until cancelled."""
        while True:
            dropped = await self.drop()
            if any(dropped):
                log.info("dropped by age: %s", ", ".join(f"{n} {name}" for name, n in dropped._asdict().items() if n))
            await self._sleep(EVERY_S)

    async def drop(self) -> Dropped:
        """Drop all that is due now, and give back the room; how much it was.

        Raises:
            StoreError: the store does not do it.
        """
        store, rules, now_ms = self._store, self._policy(), int(self._clock.now_ms())
        decisions, outcomes, events = (
            _instant(now_ms, days) for days in (rules.decisions_days, outcomes_days(rules), rules.events_days)
        )
        dropped = Dropped(
            decisions=await self._all(lambda: store.drop_decisions(decisions, now_ms, BATCH)),
            outcomes=await self._all(lambda: store.drop_outcomes(outcomes, BATCH)),
            events=await self._all(lambda: store.drop_events(events, BATCH)),
            # an accepted correction is an example for training, and lasts as long as outcomes do
            reviews=await self._all(lambda: store.drop_reviews(decisions, outcomes, BATCH)),
            tickets=0 if rules.utterances == "full" else await self._all(lambda: store.compact_tickets(BATCH)),
            generations=await self._generations(now_ms, rules),
        )
        if any(dropped):
            await self._give_back()
        return dropped

    async def _all(self, batch: Batch) -> int:
        total = 0
        while True:
            n = await batch()
            total += n
            if n < BATCH:
                return total
            await self._sleep(PAUSE_S)

    async def _generations(self, now_ms: int, rules: RetentionPolicy) -> int:
        """Those that are old and were last in use before the oldest decision that is kept."""
        if rules.generations_days is None:
            return 0
        oldest = await self._store.oldest_decision()
        before_ms = _instant(now_ms, rules.generations_days)
        # when something was last in use is known to the hour
        return await self._forget_generations(before_ms if oldest is None else min(before_ms, oldest - int(DAY_MS)))

    async def _give_back(self) -> None:
        n_free = await self._store.give_back(_N_PAGES)
        while n_free > _SPARE_PAGES:
            await self._sleep(PAUSE_S)
            n_left = await self._store.give_back(_N_PAGES)
            if n_left >= n_free:  # more became free meanwhile than was given back: the next hour goes on
                return
            n_free = n_left


def _instant(now_ms: int, days: float | None) -> int:
    """What happened before this instant is too old; 0 where nothing is.

    >>> _instant(100_000_000, 1.0), _instant(100_000_000, None)
    (13600000, 0)
    """
    return 0 if days is None else max(0, now_ms - int(days * DAY_MS))


def outcomes_days(rules: RetentionPolicy) -> float | None:
    """Age at which outcomes go: never before their decisions, as one that is told again replaces what it finds.

    >>> outcomes_days(RetentionPolicy(outcomes_days=30, decisions_days=90))
    90.0
    >>> outcomes_days(RetentionPolicy(outcomes_days=400, decisions_days=None)) is None
    True
    """
    both = (rules.outcomes_days, rules.decisions_days)
    return None if None in both else max(days for days in both if days is not None)

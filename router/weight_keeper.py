"""WeightKeeper: snapshots of the weights, and the way back to one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from feedback.lessons import pack, unpack
from models.errors import NotFoundError
from models.events import Row
from models.policy import Policy
from models.ports import Clock, StoredSnapshot, WeightStore
from router.journal import Journal
from router.learning import Learning

NEWEST = 20
"""So many of the newest snapshots are kept; of those before, one an hour for two days, one a day for 90 days."""

BEFORE = "before a rollback"
"""Why a snapshot was taken that only takes a rollback back: none that goes back by itself leads there."""

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
STORED_MS = 5000.0
_TICK_S = 1.0
_BACK = "rollback to version "


class WeightKeeper:
    """Takes snapshots as the policy says, and puts back, freezes or thaws what is learned.

    Args:
        learning: what is kept.
        weights: where snapshots are.
        journal: where differences go, in the order in which they were learned.
        policy: gives the policy in force.
        clock: stamps snapshots.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        learning: Learning,
        weights: WeightStore,
        journal: Journal,
        policy: Callable[[], Policy],
        clock: Clock,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._learning = learning
        self._weights = weights
        self._journal = journal
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._n_kept = learning.n_learned
        self._back_at: tuple[int, int] | None = None

    async def run(self) -> None:
        """Look once a second, until cancelled."""
        await self.resume()
        while True:
            await self.tick()
            await self._sleep(_TICK_S)

    async def resume(self) -> None:
        """Go on from the newest snapshot: with counting, and with going back.

        Raises:
            StoreError: the snapshots cannot be read.
        """
        kept = await self._weights.snapshots()
        newest = kept[0].version if kept else 0
        if kept and newest == self._learning.learner.version and kept[0].reason.startswith(_BACK):
            self._back_at = (newest, int(kept[0].reason.removeprefix(_BACK)))
        # versions rise with every outcome, and now and then besides: a snapshot that is early does no harm
        self._n_kept = self._learning.n_learned - max(0, self._learning.learner.version - newest)

    async def tick(self) -> None:
        """Apply what decays by itself, and take a snapshot where one is due."""
        policy = self._policy()
        self._put(self._learning.due(policy, self._now_ms()))
        if self._learning.n_learned - self._n_kept >= policy.learning.snapshot_every:
            await self.take("as often as the policy says")

    async def take(self, reason: str) -> int:
        """Take a snapshot; its version.

        Raises:
            StoreError: it cannot be stored.
        """
        learner = self._learning.learner
        version, source, now_ms = learner.version, learner.snapshot_source(), self._now_ms()
        self._n_kept = self._learning.n_learned
        body = await asyncio.to_thread(pack, *source)
        await self._weights.save_snapshot(StoredSnapshot(version, reason, body, now_ms))
        kept = [(each.version, each.created_at) for each in await self._weights.snapshots()]
        await self._weights.drop_snapshots(too_many(kept, now_ms))
        return version

    async def snapshots(self) -> Sequence[StoredSnapshot]:
        """Those that are kept, newest first, without their bodies."""
        return await self._weights.snapshots()

    async def roll_back(self, version: int | None) -> int:
        """Put the weights of a snapshot in force again, as a new version; durable on return. The new version.

        What is in force is kept as a snapshot too, so that this can be taken back.

        Args:
            version: of the snapshot; None means the newest before what is in force.

        Raises:
            NotFoundError: there is no such snapshot.
            StoreError: the store does not take it.
        """
        learner = self._learning.learner
        before = learner.version
        if self._back_at is not None and self._back_at[0] == before:
            before = self._back_at[1]  # nothing was learned since the last one: this one goes further back
        found = await self._weights.snapshot(version, before, passing_over=BEFORE)
        if found is None:
            what = "no snapshot of earlier weights" if version is None else f"no snapshot of version {version}"
            raise NotFoundError(f"there is {what}; GET /weights lists those that are kept")
        parts = await asyncio.to_thread(unpack, found.body)
        await self.take(BEFORE)
        self._put(learner.restore_parsed(parts, self._now_ms()).rows)
        self._back_at = (learner.version, found.version)
        await self._journal.stored(STORED_MS)
        await self.take(f"{_BACK}{found.version}")
        return learner.version

    async def freeze(self, reason: str) -> None:
        """Learn nothing from now on; durable on return."""
        self._put(self._learning.learner.freeze(reason, self._now_ms()).rows)
        await self._journal.stored(STORED_MS)

    async def thaw(self) -> None:
        """Learn again; durable on return."""
        self._put(self._learning.thaw(self._now_ms()))
        await self._journal.stored(STORED_MS)

    def _put(self, rows: Sequence[Row]) -> None:
        self._journal.put(rows)

    def _now_ms(self) -> int:
        return int(self._clock.now_ms())


def too_many(kept: Sequence[tuple[int, int]], now_ms: int) -> list[int]:
    """Versions of the snapshots that need not be kept any longer.

    Args:
        kept: (version, instant at which it was taken) of all, newest first.
        now_ms: epoch.

    >>> too_many([(version, 0) for version in range(25, 0, -1)], now_ms=0)
    [4, 3, 2, 1]
    """
    dropped, held = [], set[tuple[str, int]]()
    for version, created_at in kept[NEWEST:]:
        age_ms = now_ms - created_at
        slot = ("hour", created_at // _HOUR_MS) if age_ms < 2 * _DAY_MS else ("day", created_at // _DAY_MS)
        if slot in held or age_ms > 90 * _DAY_MS:
            dropped.append(version)
        held.add(slot)
    return dropped

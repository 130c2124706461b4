"""WeightKeeper: snapshots of the weights, and the way back to one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from models.errors import NotFoundError
from models.events import Row
from models.policy import Policy
from models.ports import Clock, StoredSnapshot, WeightStore
from router.journal import Journal
from router.learning import Learning

KEEP_SNAPSHOTS = 100
"""So many are kept, the newest."""

STORED_MS = 5000.0
_TICK_S = 1.0


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
        self._kept = learning.learner.version

    async def run(self) -> None:
        """Look once a second, until cancelled."""
        while True:
            await self.tick()
            await self._sleep(_TICK_S)

    async def tick(self) -> None:
        """Apply what decays by itself, and take a snapshot where one is due."""
        policy = self._policy()
        self._put(self._learning.due(policy, self._now_ms()))
        if self._learning.learner.version - self._kept >= policy.learning.snapshot_every:
            await self.take("as often as the policy says")

    async def take(self, reason: str) -> int:
        """Take a snapshot; its version.

        Raises:
            StoreError: it cannot be stored.
        """
        learner = self._learning.learner
        version, body = learner.version, learner.snapshot()
        self._kept = version
        await self._weights.save_snapshot(StoredSnapshot(version, reason, body, self._now_ms()), KEEP_SNAPSHOTS)
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
        found = await self._weights.snapshot(version, learner.version)
        if found is None:
            what = "no snapshot of earlier weights" if version is None else f"no snapshot of version {version}"
            raise NotFoundError(f"there is {what}; GET /weights lists those that are kept")
        await self.take("before a rollback")
        self._put(learner.restore(found.body, self._now_ms()).rows)
        await self._journal.stored(STORED_MS)
        await self.take(f"rollback to version {found.version}")
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

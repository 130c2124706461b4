"""Beats: health follows the cards in force, and the last heartbeats outlive a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from models.card import AgentKey
from models.ports import Clock, HeartbeatStore, StoredHeartbeat
from router.live.health import Health

SAVE_S = 5.0
"""How often heartbeats are stored: a restart counts from its own start anyway."""


class Beats:
    """Heartbeats on their way to the store, at most one of each agent version.

    Args:
        health: follows and restores.
        store: where the last heartbeat of each agent is.
        clock: the time.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        health: Health,
        store: HeartbeatStore,
        clock: Clock,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._health = health
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._unsaved: dict[AgentKey, StoredHeartbeat] = {}
        self._before: dict[AgentKey, StoredHeartbeat] = {}

    async def load(self) -> None:
        """Read what an earlier run has stored; `follow` gives it to the agents whose cards come."""
        self._before = {(row.namespace, row.agent_id, row.version): row for row in await self._store.load()}

    def follow(self, digests: Mapping[AgentKey, str]) -> None:
        """These are the digests of the cards in force."""
        now_ms, wall_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        self._health.follow(digests, now_ms)
        for agent in self._before.keys() & digests.keys():
            row = self._before.pop(agent)
            self._health.restore(agent, row.digest, max(0.0, wall_ms - row.happened_at), now_ms)

    def note(self, agent: AgentKey, digest: str) -> None:
        """A heartbeat came; it is stored within `SAVE_S`."""
        self._unsaved[agent] = StoredHeartbeat(*agent, digest, int(self._clock.now_ms()))

    async def run(self) -> None:
        """Store heartbeats until cancelled; those that could not be stored are tried again."""
        while True:
            await self._sleep(SAVE_S)
            await self.save()

    async def save(self) -> None:
        """Store what waits."""
        rows, self._unsaved = self._unsaved, {}
        try:
            await self._store.save(list(rows.values()))
        except BaseException:
            self._unsaved = {**rows, **self._unsaved}
            raise

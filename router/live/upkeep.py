"""Upkeep: what time does to live state: leases that run out, breakers that turn half open, agents that fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from models.card import AgentKey
from models.events import EventType, Row
from models.ports import Clock
from router.journal import Journal
from router.live.change_events import readmitted, step_of
from router.live.effects import Effects
from router.live.live import Live
from router.live.vitals import HealthState
from router.snapshot import Snapshot
from router.spans import Step, span_row

TICK_S = 1.0
_SWEEP_TICKS = 60
_NODE = "router"


class Upkeep:
    """Runs once a second.

    Args:
        live: the state.
        cards: gives the snapshot in force.
        journal: takes the events.
        clock: the time.
        new_id: ids of the traces of changes that no request caused.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        live: Live,
        cards: Callable[[], Snapshot],
        journal: Journal,
        clock: Clock,
        new_id: Callable[[], str],
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._live = live
        self._cards = cards
        self._states: dict[AgentKey, HealthState] = {}
        self._effects = Effects(live)
        self._journal = journal
        self._clock = clock
        self._new_id = new_id
        self._sleep = sleep
        self._n_ticks = 0

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self.tick()
            await self._sleep(TICK_S)

    def tick(self) -> None:
        """Do what is due."""
        now_ms = self._clock.monotonic_ms()
        self._live.health.ticked(now_ms)
        rows = self._missing(now_ms)
        steps = [step_of(change) for change in (*self._live.told_changes(), *self._live.breakers.due(now_ms))]
        steps += [readmitted(ejection) for ejection in self._live.outliers.due(now_ms)]
        steps += self._health(now_ms)
        if steps:
            rows.append(self._span(self._new_id(), steps))
        if rows:
            self._journal.put(rows)
        self._n_ticks += 1
        if self._n_ticks % _SWEEP_TICKS == 0:
            self._live.quotas.sweep(now_ms)

    def _health(self, now_ms: float) -> list[Step]:
        """Agents whose health has another state than a second ago."""
        snapshot = self._cards()
        steps: list[Step] = []
        states: dict[AgentKey, HealthState] = {}
        for card in snapshot.cards:
            policy = snapshot.policy.of(card.namespace).health
            now = states[card.key] = self._live.health.state(card.key, card.heartbeat_s, now_ms, policy)
            before = self._states.get(card.key, HealthState.UNKNOWN)
            if now is not before:
                told = {"before": str(before), "namespace": card.namespace, "agent_id": card.agent_id}
                steps.append((EventType.STATE.value, str(now), {**told, "version": card.version}, 0, 0.0))
        self._states = states
        return steps

    def _missing(self, now_ms: float) -> list[Row]:
        """Leases that ended without an outcome."""
        rows: list[Row] = []
        for lease, opened in self._effects.expire(now_ms):
            told = {"decision_id": lease.lease_id, "agent_id": lease.agent[1], "version": lease.agent[2]}
            trace_id = self._new_id() if opened is None else opened.trace_id
            rows.append(self._span(trace_id, [(EventType.STATE.value, "missing", told, 0, 0.0)]))
        return rows

    def _span(self, trace_id: str, steps: list[Step]) -> Row:
        return span_row(trace_id, self._new_id()[16:], None, _NODE, steps, int(self._clock.now_ms()), "")

"""Prober: probes every agent whose card asks for it, each in its own rhythm."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import NamedTuple

import httpx
import numpy as np

from models.card import AgentCard, AgentKey, Probe
from models.ports import Clock
from router.live.health import Health
from router.live.health_score import ProbeResult
from router.live.probe import Probed, probe_client, send_probe
from router.live.probe_hosts import ProbeHosts

log = logging.getLogger(__name__)

JITTER = (0.9, 1.1)
"""The interval is multiplied by a factor from this range, so that agents of one interval drift apart."""

FIRST_WITHIN_S = 10.0
"""The first probe of an agent comes within this time, or within its interval if that is less."""

_LOOK_S = 0.25
"""How often the schedule and the cards are looked at: intervals are of a second at least."""


class _Aim(NamedTuple):
    """What of a card its probes depend on; where it changes they begin anew."""

    endpoint: str
    probe: Probe


class _Target:
    """An agent that is probed; `due_ms` is when the next probe begins."""

    def __init__(self, agent: AgentKey, aim: _Aim, client: httpx.AsyncClient, due_ms: float) -> None:
        self.agent = agent
        self.aim = aim
        self.client = client
        self.due_ms = due_ms
        self.task: asyncio.Task[None] | None = None
        self.last: ProbeResult | None = None


class Prober:
    """Probes the enabled agents of protocol `http` that have a `probe`, and tells their health the results.

    An agent's next probe is due an interval after the last one has ended, so there is never more than one. Where more
    than `max_at_once` are due the others wait for their turn. What is kept is a client for each agent probed, closed
    when its card goes or asks for no probe any more.

    Args:
        cards: gives the cards in force; asked again and again.
        health: is told.
        hosts: where to probe at all.
        clock: measures, and tells the agents the time.
        random: spreads the probes, and makes the nonces.
        max_at_once: probes of all agents together.
        sleep: waits that many seconds; tests pass one that does not.
    """

    def __init__(
        self,
        cards: Callable[[], Iterable[AgentCard]],
        health: Health,
        hosts: ProbeHosts,
        clock: Clock,
        random: np.random.Generator,
        *,
        max_at_once: int = 16,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._cards = cards
        self._health = health
        self._hosts = hosts
        self._clock = clock
        self._random = random
        self._turns = asyncio.Semaphore(max_at_once)
        self._sleep = sleep
        self._trusted = ssl.create_default_context()
        self._seen: Iterable[AgentCard] | None = None
        self._targets: dict[AgentKey, _Target] = {}

    async def run(self) -> None:
        """Probe until cancelled; then no probe runs and no client is open any more."""
        try:
            while True:
                await self._follow()
                self._begin()
                await self._sleep(_LOOK_S)
        finally:
            targets, self._targets, self._seen = list(self._targets.values()), {}, None
            await self._end(targets)

    async def _follow(self) -> None:
        """Take over what has changed on the cards."""
        cards = self._cards()
        if cards is self._seen:
            return
        wanted = {card.key: _Aim(card.endpoint, card.probe) for card in cards if _is_probed(card) and card.probe}
        gone = [target for agent, target in self._targets.items() if wanted.get(agent) != target.aim]
        for target in gone:
            del self._targets[target.agent]
        await self._end(gone)
        for target in gone:
            self._health.unprobed(target.agent)
        for agent, aim in wanted.items():
            if agent not in self._targets:
                wait_s = min(FIRST_WITHIN_S, aim.probe.interval_s) * self._random.random()
                due_ms = self._clock.monotonic_ms() + wait_s * 1000
                self._targets[agent] = _Target(agent, aim, probe_client(self._trusted), due_ms)
        self._seen = cards

    def _begin(self) -> None:
        """Begin the probes that are due, and raise what nobody expected of one that has ended."""
        now_ms = self._clock.monotonic_ms()
        for target in self._targets.values():
            if target.task is not None and target.task.done():
                target.task.result()
                target.task = None
            if target.task is None and target.due_ms <= now_ms:
                target.task = asyncio.create_task(self._probe(target), name=f"probe {target.agent[1]}")

    async def _probe(self, target: _Target) -> None:
        async with self._turns:
            nonce = self._random.bytes(16).hex()
            endpoint, probe = target.aim
            probed = await send_probe(target.client, endpoint, probe, self._hosts, nonce=nonce, clock=self._clock)
        now_ms = self._clock.monotonic_ms()
        self._health.probed(target.agent, probed.result, probed.latency_ms, now_ms)
        target.due_ms = now_ms + probe.interval_s * 1000 * self._random.uniform(*JITTER)
        self._tell(target, probed)

    def _tell(self, target: _Target, probed: Probed) -> None:
        if probed.result is not target.last:
            level = logging.INFO if probed.result is ProbeResult.OK else logging.WARNING
            note = f" ({probed.note})" if probed.note else ""
            log.log(level, "probe of %s in %s: %s%s", target.agent[1], target.agent[0], probed.result, note)
        target.last = probed.result

    async def _end(self, targets: Iterable[_Target]) -> None:
        """Cancel the probes that run, wait for their end, and close the clients."""
        async with AsyncExitStack() as stack:
            running = []
            for target in targets:
                stack.push_async_callback(target.client.aclose)
                if target.task is not None:
                    target.task.cancel()
                    running.append(target.task)
            await asyncio.gather(*running, return_exceptions=True)


def _is_probed(card: AgentCard) -> bool:
    return card.enabled and card.protocol == "http"

"""What live state adds to a decision: the same decisions with it and without it, in turns, in one process."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from math import ceil
from random import Random
from time import perf_counter

from benchmarks.live_desk import Desk, desk_of
from benchmarks.report import Goal, Quantiles, Report
from models.card import AgentCard, Capability, RateLimit
from models.decision import RouteDecision
from models.heartbeat import Heartbeat
from models.live_policy import Quota
from models.outcome import Outcome, OutcomeError, OutcomeStatus
from models.policy import Policy
from models.ports import Clock
from models.request import RouteRequest
from router.app import calm_collector
from router.clock import SystemClock
from router.permit import OPEN
from router.service import RouteService

ADDED = {24: Goal("<=", 0.15), 1000: Goal("<=", 1.0)}
"""Number of agents → what may be added to the p50, in ms."""
_INTENT = "billing"
_N_CALLERS = 8
_BLOCK = 25
"""So many decisions of one kind, then as many of the other: both meet the same noise of the machine."""
_FAILING = 0.04
"""Share of agents that ask half of the callers to stay away, whose breakers are open then."""
_N_FAILURES = _N_CALLERS // 2
_N_SUCCESSES = 25
_BUSY = OutcomeError(class_="busy", retry_after_ms=3_600_000)
_BEATS = 0.01
"""Share of agents that send a heartbeat in a block: it takes far less than the 150 ms in which so many are due."""
_HELD = 0.25
"""Share of agents with places held throughout."""


def live_desk(n_agents: int, clock: Clock | None = None) -> Desk:
    """Agents of one intent, with dependencies, backups and quotas; None takes the system's clock."""
    draw = Random(2)
    cards = [
        AgentCard(
            agent_id=f"agent-{number}",
            version="1.0.0",
            idempotent=True,
            backup_agent_id=f"agent-{(number + 1) % n_agents}",
            depends_on=[f"store-{number % 5}"] if number % 3 == 0 else [],
            rate_limit=RateLimit(window_ms=1000, max_calls=100_000) if number % 5 == 0 else None,
            capabilities=[
                # not all as good as each other: a draw among a thousand would cost one kind more than the other
                Capability(intent=_INTENT, quality=draw.uniform(0.5, 0.95), input_schema="text", output_schema="text"),
                # for the warm-up, in which a decision among all would take long
                Capability(intent=f"own-{number}", input_schema="text", output_schema="text"),
            ],
        )
        for number in range(n_agents)
    ]
    quotas = [
        Quota(per_caller=True, window_ms=3_600_000, max_calls=100_000_000),
        Quota(caller="caller-1", window_ms=60_000, max_tokens=1_000_000_000),
    ]
    return desk_of(cards, Policy(quotas=quotas), SystemClock() if clock is None else clock)


async def warmed(desk: Desk) -> None:
    """Heartbeats of all, outcomes of all, breakers of some open, places held at some."""
    draw, cards = Random(3), desk.snapshot.cards
    _beat(desk, cards, draw)
    n_failing = max(1, round(_FAILING * len(cards)))
    for number in range(len(cards)):
        for nth in range(_N_FAILURES if number < n_failing else _N_SUCCESSES):
            decision = await desk.route(_request(nth, f"caller-{nth % _N_CALLERS}", intent=f"own-{number}"))
            await desk.settle([_outcome(decision, draw, _BUSY if number < n_failing else None)])
    now_ms = desk.clock.monotonic_ms()
    for number, card in enumerate(cards):
        if number % round(1 / _HELD) == 0:
            desk.live.leases.take(f"held-{number}", card.key, None, now_ms + 3_600_000, now_ms)


async def added(report: Report, n_agents: int, n_calls: int, n_repeats: int) -> None:
    """Measure and report.

    Args:
        n_agents: all of one intent, each a candidate of every decision.
        n_calls: decisions of each kind and repeat.
    """
    desk = live_desk(n_agents)
    await warmed(desk)
    draw = Random(5)
    await _repeat(desk, 2 * _BLOCK, draw)
    thresholds = gc.get_threshold()
    calm_collector()  # as it is served
    repeats = [await _repeat(desk, n_calls, draw) for _ in range(n_repeats)]
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    with_it = Quantiles.of([each for each, _ in repeats])
    without = Quantiles.of([each for _, each in repeats])
    told = f"{n_agents:,} agents of one intent"
    report.add_latency(f"{told}, live state left out", without)
    report.add_latency(f"{told}, with live state", with_it, note=_state_told(desk))
    more_ms = with_it.p50 - without.p50
    report.add(f"{told}, added to the p50", more_ms, "ms", ADDED.get(n_agents))


async def _repeat(desk: Desk, n_calls: int, draw: Random) -> tuple[list[float], list[float]]:
    """(latencies with live state, without it), in ms."""
    with_it: list[float] = []
    without: list[float] = []
    while len(without) < n_calls:
        _beat(desk, draw.sample(desk.snapshot.cards, k=ceil(len(desk.snapshot.cards) * _BEATS)), draw)
        requests = [_request(draw.randrange(1000), f"caller-{draw.randrange(_N_CALLERS)}") for _ in range(_BLOCK)]
        decisions = await _block(desk.service, requests, with_it)
        await desk.settle([_outcome(decision, draw) for decision in decisions if decision.plan])
        await _block(desk.without_live, requests, without)
        await desk.flush()
    return with_it, without


async def _block(service: RouteService, requests: Sequence[RouteRequest], took_ms: list[float]) -> list[RouteDecision]:
    decisions = []
    for request in requests:
        began = perf_counter()
        decision, _ = await service.route(request, OPEN)
        took_ms.append((perf_counter() - began) * 1000)
        decisions.append(decision)
        await asyncio.sleep(0)
    return decisions


def _beat(desk: Desk, cards: Sequence[AgentCard], draw: Random) -> None:
    now_ms = desk.clock.monotonic_ms()
    for card in cards:
        beat = Heartbeat(digest=desk.snapshot.digest_of[card.key], load=draw.random() / 2, queue_depth=0)
        desk.live.health.beat(card.key, beat, card.heartbeat_s, now_ms, desk.snapshot.policy.defaults.health)


def _request(number: int, caller: str, **more: object) -> RouteRequest:
    fields = {"intent": _INTENT, "payload": {"text": f"request {number}"}, "caller": {"agent_id": caller}, **more}
    return RouteRequest.model_validate(fields)


def _outcome(decision: RouteDecision, draw: Random, error: OutcomeError | None = None) -> Outcome:
    return Outcome(
        decision_id=decision.decision_id,
        status=OutcomeStatus.SUCCEEDED if error is None else OutcomeStatus.FAILED,
        latency_ms=draw.lognormvariate(5, 0.3),
        tokens=100,
        error=error,
    )


def _state_told(desk: Desk) -> str:
    live, now_ms = desk.live, desk.clock.monotonic_ms()
    breakers, n_ejected = live.breakers.listed(now_ms), len(live.outliers.listed(now_ms))
    n_open = sum(view.state != "closed" for view in breakers)
    return f"{len(live.leases)} places held, {n_open} breakers open, {n_ejected} agents ejected"

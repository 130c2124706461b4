"""What the learner adds to a decision: the same requests with it and without it, in turns, in one process.

Routers over the same cards, one in mode `observe`, in which posteriors are kept and declared quality decides, the
others in the modes that are measured; the intent is given. In `explore` the propensities of 256 draws of every
candidate are in the figure. Draws are shared until an outcome changes what they are made from, so it is measured twice:
with an outcome between any two decisions, where nothing can be shared, and with the outcomes of 20 decisions posted
together. Settling is not timed.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from random import Random
from time import perf_counter

from benchmarks import learning_goals as goals
from benchmarks.live_desk import Desk, desk_of
from benchmarks.report import Quantiles, Report
from models.card import AgentCard, Capability
from models.learning_policy import LearningMode, LearningPolicy
from models.outcome import Outcome, OutcomeStatus
from models.policy import Policy
from models.request import Caller, RouteRequest
from router.app import calm_collector
from router.clock import SystemClock
from router.permit import OPEN

_INTENT = "billing"
_BLOCK = 20
_N_CALLERS = 8
_MODES: tuple[LearningMode, ...] = ("explore", "exploit")


def added_row(report: Report, *, is_quick: bool, n_repeats: int = 3) -> None:
    """For 3 and 24 candidates."""
    n_calls = 400 if is_quick else 2000
    for n_together in (_BLOCK, 1):
        when = "between any two" if n_together == 1 else f"of {n_together} decisions together"
        report.section(f"what the learner adds to a decision, in process, outcomes {when}")
        for n_agents in goals.ADDED_MS:
            asyncio.run(added(report, n_agents, n_calls, n_repeats, n_together))


def mode_desk(n_agents: int, mode: LearningMode) -> Desk:
    """Agents of one intent, near each other in quality."""
    draw = Random(2)
    cards = [
        AgentCard(
            agent_id=f"agent-{number}",
            version="1.0.0",
            capabilities=[
                Capability(intent=_INTENT, quality=draw.uniform(0.7, 0.9), input_schema="text", output_schema="text")
            ],
        )
        for number in range(n_agents)
    ]
    return desk_of(cards, Policy(learning=LearningPolicy(mode=mode)), SystemClock())


async def added(report: Report, n_agents: int, n_calls: int, n_repeats: int, n_together: int) -> None:
    """Measure and report.

    Args:
        n_calls: decisions of each router and repeat.
        n_together: outcomes that are posted at once.
    """
    desks = {mode: mode_desk(n_agents, mode) for mode in ("observe", *_MODES)}
    draw = Random(5)
    await _repeat(desks, 200, n_together, draw)
    thresholds = gc.get_threshold()
    calm_collector()  # as it is served
    repeats = [await _repeat(desks, n_calls, n_together, draw) for _ in range(n_repeats)]
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    told = f"{n_agents} candidates"
    found = {mode: Quantiles.of([repeat[mode] for repeat in repeats]) for mode in desks}
    for mode, quantiles in found.items():
        report.add_latency(f"{told}, {mode}", quantiles)
    for mode in _MODES:
        more_ms = found[mode].p50 - found["observe"].p50
        report.add(f"{told}, {mode}: added to the p50 of observe", more_ms, "ms", goals.ADDED_MS[n_agents])


async def _repeat(
    desks: dict[LearningMode, Desk], n_calls: int, n_together: int, draw: Random
) -> dict[LearningMode, list[float]]:
    """Mode → latencies in ms."""
    took_ms: dict[LearningMode, list[float]] = {mode: [] for mode in desks}
    while len(took_ms["observe"]) < n_calls:
        requests = [_request(draw) for _ in range(_BLOCK)]
        for mode, desk in desks.items():
            for first in range(0, _BLOCK, n_together):
                await _some(desk, requests[first : first + n_together], took_ms[mode], draw)
    return took_ms


async def _some(desk: Desk, requests: Sequence[RouteRequest], took_ms: list[float], draw: Random) -> None:
    """Decide, then tell all outcomes."""
    outcomes = []
    for request in requests:
        began = perf_counter()
        decision, _ = await desk.service.route(request, OPEN)
        took_ms.append((perf_counter() - began) * 1000)
        status = OutcomeStatus.SUCCEEDED if draw.random() < 0.8 else OutcomeStatus.LOW_CONFIDENCE
        outcomes.append(
            Outcome(decision_id=decision.decision_id, status=status, latency_ms=draw.lognormvariate(5, 0.3))
        )
    await desk.settle(outcomes)


def _request(draw: Random) -> RouteRequest:
    return RouteRequest(
        intent=_INTENT,
        payload={"text": f"request {draw.randrange(1000)}"},
        caller=Caller(agent_id=f"caller-{draw.randrange(_N_CALLERS)}"),
    )

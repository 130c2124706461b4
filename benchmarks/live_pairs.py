"""Pairs of a decision and its outcome, as many as a day brings: at their end nothing is held any more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import perf_counter

from benchmarks.live_desk import Desk, SteppedClock, desk_of
from benchmarks.processes import resident_mb
from benchmarks.report import Goal, Report
from models.card import AgentCard, Capability, RateLimit
from models.decision import RouteDecision
from models.live_policy import Quota
from models.outcome import Outcome, OutcomeStatus
from models.policy import Policy
from models.request import Caller, RouteRequest

ZERO = Goal("<=", 0)
_N_AGENTS = 24
_N_CALLERS = 16
_BATCH = 100
_STEP_MS = 2.0
"""Between decisions: a million pairs are half an hour of the router's time."""
_HOUR_MS = 3_600_000
_STATUSES = ("succeeded", "failed", "timed_out", "unreachable", "schema_mismatch", "rejected", "cancelled")
_SHARES = (93, 2, 1, 1, 1, 1, 1)
_MISSING = 0.01
_AGAIN = 0.02


def pairs_desk(clock: SteppedClock) -> Desk:
    """Agents of four intents with backups, a dependency and a rate limit here and there; quotas of all kinds."""
    cards = [
        AgentCard(
            agent_id=f"agent-{number}",
            version="1.0.0",
            max_inflight=64,
            idempotent=number % 2 == 0,
            backup_agent_id=f"agent-{(number + 4) % _N_AGENTS}",
            depends_on=["crm"] if number % 6 == 0 else [],
            rate_limit=RateLimit(window_ms=1000, max_calls=200) if number % 5 == 0 else None,
            capabilities=[Capability(intent=f"intent-{number % 4}", input_schema="text", output_schema="text")],
        )
        for number in range(_N_AGENTS)
    ]
    quotas = [
        Quota(per_caller=True, window_ms=60_000, max_calls=1_000_000, max_tokens=1_000_000_000),
        Quota(per_agent=True, window_ms=10_000, max_calls=20_000),
        Quota(per_caller=True, per_agent=True, window_ms=1000, max_tokens=1_000_000),
    ]
    return desk_of(cards, Policy(quotas=quotas), clock)


async def pairs(report: Report, n_pairs: int) -> None:
    """Measure and report."""
    report.section(f"{n_pairs:,} decisions with their outcomes in process, records thrown away")
    clock, draw, n_invoked, took_s = SteppedClock(), Random(7), 0, 0.0
    desk = pairs_desk(clock)
    before_mb = resident_mb(Path("/proc/self/status"))
    for first in range(0, n_pairs, _BATCH):
        requests = [_request(number) for number in range(first, min(first + _BATCH, n_pairs))]
        began = perf_counter()
        n_invoked += await some(desk, clock, requests, draw)
        took_s += perf_counter() - began
        if first == n_pairs // 5 // _BATCH * _BATCH:
            before_mb = resident_mb(Path("/proc/self/status"))
    after_mb = resident_mb(Path("/proc/self/status"))
    report.add("pairs a second", n_pairs / took_s, "pairs/s", None, f"{n_invoked:,} decisions named an agent")
    if before_mb is not None and after_mb is not None:
        report.add("resident memory at the end", after_mb, "MB", None, f"{before_mb:,.1f} MB after a fifth")
    for name, n_left in (await left_over(desk, clock)).items():
        report.add(name, n_left, "", ZERO)


async def left_over(desk: Desk, clock: SteppedClock) -> dict[str, int]:
    """What is still held once all leases and windows are over."""
    n_leased = len(desk.live.leases)
    clock.ms += _HOUR_MS
    desk.upkeep.tick()
    await desk.flush()
    live, now_ms = desk.live, clock.monotonic_ms()
    live.quotas.sweep(now_ms)
    return {
        f"leases ({n_leased:,} whose outcome never came have run out)": len(live.leases),
        "in flight at all agents": sum(live.leases.in_flight(card.key) for card in desk.snapshot.cards),
        "reservations of quotas": live.quotas.n_open,
        "windows of quotas that hold anything": live.quotas.n_windows,
    }


async def some(
    desk: Desk, clock: SteppedClock, requests: Sequence[RouteRequest], draw: Random, missing: float = _MISSING
) -> int:
    """Route them, tell their outcomes in another order; how many got an agent.

    Args:
        missing: share of the decisions of which nothing is told.
    """
    outcomes: list[Outcome] = []
    n_invoked = 0
    for request in requests:
        clock.ms += _STEP_MS
        decision = await desk.route(request)
        n_invoked += bool(decision.plan)
        if decision.plan and draw.random() >= missing:
            outcomes += _outcomes(decision, draw)
    draw.shuffle(outcomes)
    await desk.settle(outcomes)
    desk.upkeep.tick()
    return n_invoked


def _request(number: int) -> RouteRequest:
    return RouteRequest(
        intent=f"intent-{number % 4}",
        payload={"text": f"request {number}"},
        caller=Caller(agent_id=f"caller-{number % _N_CALLERS}"),
        budget_tokens=500,
    )


def _outcomes(decision: RouteDecision, draw: Random) -> list[Outcome]:
    """Of the plan's steps as far as it was followed; some come twice, or are amended."""
    found: list[Outcome] = []
    status = ""
    for attempt, step in enumerate(decision.plan, start=1):
        if attempt > 1 and status not in step.on:
            continue
        status = draw.choices(_STATUSES, _SHARES)[0]
        found.append(_outcome(decision, attempt, status, draw))
    if draw.random() < _AGAIN:
        found.append(found[-1])
    if draw.random() < _AGAIN:
        found.append(_outcome(decision, 1, "succeeded", draw))
    return found


def _outcome(decision: RouteDecision, attempt: int, status: str, draw: Random) -> Outcome:
    return Outcome(
        decision_id=decision.decision_id,
        attempt=attempt,
        status=OutcomeStatus(status),
        latency_ms=draw.lognormvariate(5, 0.5),
        tokens=draw.randrange(1000),
    )

"""The two arms of a scene: callers that retry by a fixed rule, and callers that do what the router plans."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Any, NamedTuple

from benchmarks.live_desk import Desk, SteppedClock, desk_of
from benchmarks.scenes import Scene, Task, agent_id, tasks_of
from benchmarks.simulation import Agent, Call, Caller, Reply, Simulation, Wait
from models.decision import RouteDecision
from models.heartbeat import Heartbeat
from models.outcome import Outcome, OutcomeStatus
from models.policy import Policy
from models.ports import RecordStore
from models.request import Caller as Asking
from models.request import RouteRequest

_TICK_MS = 1000.0


class TaskEnd(NamedTuple):
    """How a task ended.

    Attributes:
        took_ms: from its arrival.
        arrived_ms: when that was.
        why: the reason of the router's last answer where that named nobody, else the last call's status.
    """

    number: int
    arrived_ms: float
    took_ms: float
    succeeded: bool
    why: str


@dataclass(slots=True)
class Run:
    """What came of one arm.

    Attributes:
        calls_ms: agent → instants at which calls came to it.
        router_s: processor time of this process in decisions and settlements.
        n_decisions: how many decisions.
    """

    ends: list[TaskEnd] = field(default_factory=list)
    calls_ms: dict[str, list[float]] = field(default_factory=dict)
    router_s: float = 0.0
    n_decisions: int = 0
    n_outcomes: int = 0


async def run_fixed(scene: Scene, seed: int) -> Run:
    """Without a router."""
    simulation, run = Simulation(SteppedClock(), scene.agents()), Run()
    for task in tasks_of(scene, seed):
        simulation.begin(task.at_ms, _fixed(scene, seed, task, simulation, run))
    await simulation.run()
    return _done(simulation, run)


async def run_routed(scene: Scene, seed: int, policy: Policy, records: RecordStore | None = None) -> Run:
    """With the router; None as store keeps no records."""
    clock = SteppedClock()
    desk = desk_of(scene.cards(), policy, clock, records, seed)
    simulation, run = Simulation(clock, scene.agents()), Run()
    arm = _Routed(scene, seed, desk, simulation, run)
    for task in tasks_of(scene, seed):
        simulation.begin(task.at_ms, arm.caller(task))
    simulation.every(_TICK_MS, desk.upkeep.tick)
    simulation.every(scene.heartbeat_s * 1000, arm.beat)
    arm.beat()
    await simulation.run()
    return _done(simulation, run)


def _done(simulation: Simulation, run: Run) -> Run:
    run.calls_ms = {name: agent.calls_ms for name, agent in simulation.agents.items()}
    run.ends.sort()
    return run


def _fixed(scene: Scene, seed: int, task: Task, simulation: Simulation, run: Run) -> Caller:
    rule, status = scene.without_router, ""
    for hop, intent in enumerate(task.intents):
        agent = agent_id(intent, task.number % scene.agents_per_intent)
        for nth in range(1 + rule.retries):
            if nth:
                yield Wait(rule.backoff_ms)
            reply: Reply = yield Call(agent, rule.timeout_ms, (seed, task.number, hop, nth))
            status = reply.status
            if status == "succeeded":
                break
        if status != "succeeded":
            break
    run.ends.append(_end(task, simulation, status))


def _end(task: Task, simulation: Simulation, status: str) -> TaskEnd:
    return TaskEnd(task.number, task.at_ms, simulation.now_ms - task.at_ms, status == "succeeded", status)


class _Routed:
    """Callers that ask for each hop, follow the plan, and tell what came of each call."""

    def __init__(self, scene: Scene, seed: int, desk: Desk, simulation: Simulation, run: Run) -> None:
        self._scene = scene
        self._seed = seed
        self._desk = desk
        self._simulation = simulation
        self._run = run

    def caller(self, task: Task) -> Caller:
        """Of one task."""
        status = ""
        for hop, intent in enumerate(task.intents):
            status = yield from self._hop(task, hop, intent)
            if status != "succeeded":
                break
        self._run.ends.append(_end(task, self._simulation, status))

    def beat(self) -> None:
        """All agents tell that they live, how full they are and how many calls wait."""
        live, now_ms = self._desk.live, self._desk.clock.monotonic_ms()
        for card in self._desk.snapshot.cards:
            agent = self._simulation.agents[card.agent_id]
            if _is_silent(agent, self._simulation.now_ms / 1000):
                continue
            beat = Heartbeat(
                digest=self._desk.snapshot.digest_of[card.key],
                load=min(1.0, (agent.n_busy + len(agent.queue)) / card.max_inflight),
                queue_depth=len(agent.queue),
            )
            health = self._desk.snapshot.policy.of(card.namespace).health
            live.health.beat(card.key, beat, card.heartbeat_s, now_ms, health)

    def _hop(self, task: Task, hop: int, intent: int) -> Generator[Any, Any, str]:
        request = RouteRequest(
            intent=f"intent-{intent}",
            payload={"text": f"task {task.number}, hop {hop}"},
            trace_id=f"task-{task.number}",
            step_index=hop,
            caller=Asking(agent_id=f"caller-{task.number % self._scene.callers}"),
        )
        decision: RouteDecision = yield self._timed(self._desk.route(request))
        self._run.n_decisions += 1
        status, nth = str(decision.reason), 0
        for attempt, step in enumerate(decision.plan, start=1):
            if nth and status not in step.on:
                continue
            if step.backoff_ms:
                yield Wait(step.backoff_ms)
            work = (self._seed, task.number, hop, nth)
            reply: Reply = yield Call(step.target.agent_id, step.timeout_ms, work)
            status, nth = reply.status, nth + 1
            outcome = Outcome(
                decision_id=decision.decision_id,
                attempt=attempt,
                status=OutcomeStatus(reply.status),
                latency_ms=reply.latency_ms,
            )
            yield self._timed(self._desk.settle([outcome]))
            self._run.n_outcomes += 1
        return status

    async def _timed(self, work: Coroutine[Any, Any, Any]) -> Any:
        began_s = process_time()
        try:
            return await work
        finally:
            self._run.router_s += process_time() - began_s


def _is_silent(agent: Agent, seconds: float) -> bool:
    fault = agent.fault_at(seconds)
    return fault is not None and fault.kind in ("hang", "unreachable")


def calls_between(run: Run, agents: Sequence[str], from_s: float, to_s: float) -> int:
    """How many calls came to these agents in a time.

    >>> calls_between(Run(calls_ms={"a": [100.0, 2500.0], "b": [2600.0]}), ["a"], 2, 3)
    1
    """
    return sum(from_s * 1000 <= at_ms < to_s * 1000 for name in agents for at_ms in run.calls_ms[name])


def both(scene: Scene, seed: int, policy: Policy) -> tuple[Run, Run]:
    """Both arms, for whom no event loop runs."""
    return asyncio.run(run_fixed(scene, seed)), asyncio.run(run_routed(scene, seed, policy))

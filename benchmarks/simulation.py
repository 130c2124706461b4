"""A discrete-event simulation of agents with places and queues, and of callers written as generators."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, NamedTuple, TypeAlias

from benchmarks.live_desk import SteppedClock

_REFUSED_MS = 5.0
"""So soon a caller learns that an agent cannot be reached."""


class Call(NamedTuple):
    """A caller calls an agent; it is sent a Reply.

    Attributes:
        work: what is asked; the same work at the same agent takes as long in every run.
    """

    agent_id: str
    timeout_ms: float
    work: tuple[int, ...]


class Wait(NamedTuple):
    """A caller waits; it is sent None."""

    ms: float


class Reply(NamedTuple):
    """How a call ended; `status` is one of an outcome."""

    status: str
    latency_ms: float


Caller: TypeAlias = Generator[Call | Wait | Awaitable[Any], Any, None]
"""What it yields as an awaitable takes no simulated time, and it is sent its result."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with an agent for a while.

    Attributes:
        kind: `slow` takes `mean_ms` and fails by `failed_share`; `wrong` answers what fits no schema, by that share;
            `hang` never answers; `unreachable` refuses at once.
        from_s: when it begins, in seconds of the run.
    """

    agent_id: str
    kind: str
    from_s: float
    to_s: float
    mean_ms: float = 0.0
    failed_share: float = 0.0


@dataclass(slots=True)
class _Job:
    call: Call
    arrived_ms: float
    reply: Callable[[Reply], None]


@dataclass(slots=True)
class Agent:
    """An agent with `n_places` calls at work and all others in a queue, in which calls stay that were given up.

    Attributes:
        n_calls: instants at which calls came.
    """

    agent_id: str
    n_places: int
    mean_ms: float
    spread: float
    faults: Sequence[Fault] = ()
    calls_ms: list[float] = field(default_factory=list)
    n_busy: int = 0
    queue: deque[_Job] = field(default_factory=deque)

    def fault_at(self, seconds: float) -> Fault | None:
        """What is wrong then."""
        return next((each for each in self.faults if each.from_s <= seconds < each.to_s), None)

    def work(self, call: Call, fault: Fault | None) -> tuple[float, str]:
        """(how long it takes in ms, how it ends); drawn from the work and nothing else."""
        draw = Random(hash(call.work))
        mean_ms = fault.mean_ms if fault is not None and fault.mean_ms else self.mean_ms
        # of this mean: a lognormal variable's is exp(mu + sigma^2 / 2)
        took_ms = mean_ms * draw.lognormvariate(-(self.spread**2) / 2, self.spread)
        if fault is not None and draw.random() < fault.failed_share:
            return took_ms, "schema_mismatch" if fault.kind == "wrong" else "failed"
        return took_ms, "succeeded"


class Simulation:
    """Runs events in the order of their instants; ties in the order in which they were planned."""

    def __init__(self, clock: SteppedClock, agents: Sequence[Agent]) -> None:
        self.clock = clock
        self.agents = {agent.agent_id: agent for agent in agents}
        self.n_callers = 0
        self._start_ms = clock.ms
        self._events: list[tuple[float, int, Callable[[], Awaitable[None] | None]]] = []
        self._numbers = count()

    @property
    def now_ms(self) -> float:
        """Since the start."""
        return self.clock.ms - self._start_ms

    def at(self, ms: float, act: Callable[[], Awaitable[None] | None]) -> None:
        """Plan an act for an instant since the start."""
        heappush(self._events, (ms, next(self._numbers), act))

    def every(self, ms: float, act: Callable[[], None]) -> None:
        """Act again and again, as long as there are callers."""

        def again() -> None:
            act()
            if self.n_callers:
                self.at(self.now_ms + ms, again)

        self.at(ms, again)

    def begin(self, ms: float, caller: Caller) -> None:
        """Let a caller begin at an instant."""
        self.n_callers += 1
        self.at(ms, lambda: self._step(caller, None))

    async def run(self) -> None:
        """Until nothing is planned any more."""
        while self._events:
            ms, _, act = heappop(self._events)
            self.clock.ms = self._start_ms + ms
            if (awaited := act()) is not None:
                await awaited

    async def _step(self, caller: Caller, sent: Any) -> None:
        while True:
            try:
                wanted = caller.send(sent)
            except StopIteration:
                self.n_callers -= 1
                return None
            if isinstance(wanted, Wait):
                return self.at(self.now_ms + wanted.ms, lambda: self._step(caller, None))
            if isinstance(wanted, Call):
                return self._call(wanted, caller)
            sent = await wanted

    def _call(self, call: Call, caller: Caller) -> None:
        began_ms, is_over = self.now_ms, False

        def reply(found: Reply) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self.at(self.now_ms, lambda: self._step(caller, found))

        self.at(began_ms + call.timeout_ms, lambda: reply(Reply("timed_out", call.timeout_ms)))
        agent = self.agents[call.agent_id]
        agent.calls_ms.append(began_ms)
        fault = agent.fault_at(began_ms / 1000)
        if fault is not None and fault.kind == "unreachable":
            self.at(began_ms + _REFUSED_MS, lambda: reply(Reply("unreachable", _REFUSED_MS)))
        elif fault is None or fault.kind != "hang":
            agent.queue.append(_Job(call, began_ms, reply))
            self._serve(agent)

    def _serve(self, agent: Agent) -> None:
        while agent.queue and agent.n_busy < agent.n_places:
            job = agent.queue.popleft()
            took_ms, status = agent.work(job.call, agent.fault_at(self.now_ms / 1000))
            agent.n_busy += 1
            self.at(self.now_ms + took_ms, lambda job=job, status=status: self._end(agent, job, status))  # type: ignore[misc]

    def _end(self, agent: Agent, job: _Job, status: str) -> None:
        agent.n_busy -= 1
        job.reply(Reply(status, self.now_ms - job.arrived_ms))
        self._serve(agent)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from router.readiness import Readiness
from router.supervisor import FIRST_WAIT_S, MAX_WAIT_S, Supervisor


@dataclass
class Night:
    """A sleep and a clock in the test's hands: each sleep is noted and lasts until `wake`."""

    now_s: float = 1000.0
    waits: list[float] = field(default_factory=list)
    asleep: asyncio.Event = field(default_factory=asyncio.Event)
    awake: asyncio.Event = field(default_factory=asyncio.Event)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.asleep.set()
        await self.awake.wait()
        self.awake.clear()

    async def wake(self) -> None:
        """Wait until something sleeps, and let it go on."""
        await self.asleep.wait()
        self.asleep.clear()
        self.awake.set()


@dataclass
class Work:
    """Work that fails the first `n_failures` times, then runs until it is cancelled, or returns."""

    n_failures: int = 0
    returns: bool = False
    n_starts: int = 0
    lasts_s: float = 0.0
    night: Night | None = None
    running: asyncio.Event = field(default_factory=asyncio.Event)
    was_cancelled: bool = False

    async def __call__(self) -> None:
        self.n_starts += 1
        if self.n_starts <= self.n_failures:
            if self.night is not None:
                self.night.now_s += self.lasts_s
            raise OSError(f"failure {self.n_starts}")
        self.running.set()
        if self.returns:
            return
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


@pytest.fixture
def readiness() -> Readiness:
    return Readiness()


@pytest.fixture
def night() -> Night:
    return Night()


@pytest.fixture
async def supervisor(readiness: Readiness, night: Night) -> AsyncIterator[Supervisor]:
    async with Supervisor(readiness, sleep=night.sleep, now_s=lambda: night.now_s) as opened:
        yield opened


async def test_work_that_raises_is_shown_waited_for_and_started_again(
    supervisor: Supervisor, readiness: Readiness, night: Night, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(n_failures=1)
    supervisor.start("journal", work)
    await night.asleep.wait()
    assert readiness.problems == {"journal": "OSError: failure 1"}
    assert "journal stopped; it starts again in 0.5 s" in caplog.text
    assert work.n_starts == 1
    await night.wake()
    await work.running.wait()
    assert work.n_starts == 2


async def test_work_that_runs_again_is_no_problem_any_more_although_it_never_returns(
    supervisor: Supervisor, readiness: Readiness, night: Night
) -> None:
    work = Work(n_failures=1)
    supervisor.start("watch cards", work)
    await night.wake()
    await work.running.wait()
    assert readiness.problems == {}


async def test_each_failure_in_a_row_doubles_the_wait_up_to_the_longest(supervisor: Supervisor, night: Night) -> None:
    work = Work(n_failures=9)
    supervisor.start("journal", work)
    for _ in range(9):
        await night.wake()
    await work.running.wait()
    assert night.waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert (night.waits[0], night.waits[-1]) == (FIRST_WAIT_S, MAX_WAIT_S)


async def test_after_a_long_healthy_run_the_wait_is_short_again(supervisor: Supervisor, night: Night) -> None:
    work = Work(n_failures=3, night=night, lasts_s=MAX_WAIT_S + 1)
    supervisor.start("journal", work)
    for _ in range(3):
        await night.wake()
    await work.running.wait()
    assert night.waits == [FIRST_WAIT_S] * 3


async def test_work_that_returns_is_done(supervisor: Supervisor, readiness: Readiness, night: Night) -> None:
    work = Work(returns=True)
    supervisor.start("cards", work)
    await work.running.wait()
    await asyncio.sleep(0)
    assert (work.n_starts, night.waits, readiness.problems) == (1, [], {})


async def test_one_failing_task_leaves_the_others_alone(
    supervisor: Supervisor, readiness: Readiness, night: Night
) -> None:
    good, bad = Work(), Work(n_failures=1)
    supervisor.start("good", good)
    supervisor.start("bad", bad)
    await night.asleep.wait()
    assert (good.n_starts, good.was_cancelled) == (1, False)
    assert set(readiness.problems) == {"bad"}


async def test_leaving_cancels_what_runs_and_what_waits(readiness: Readiness, night: Night) -> None:
    running, waiting = Work(), Work(n_failures=1)
    async with Supervisor(readiness, sleep=night.sleep) as supervisor:
        supervisor.start("running", running)
        supervisor.start("waiting", waiting)
        await running.running.wait()
        await night.asleep.wait()
    assert running.was_cancelled
    assert waiting.n_starts == 1
    assert {task.get_name() for task in asyncio.all_tasks()}.isdisjoint({"running", "waiting"})


async def test_leaving_waits_for_the_end_of_what_it_cancels(readiness: Readiness) -> None:
    steps: list[str] = []
    begun = asyncio.Event()

    async def careful() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    async with Supervisor(readiness) as supervisor:
        supervisor.start("careful", careful)
        await begun.wait()
    steps.append("left")
    assert steps == ["cleaned up", "left"]

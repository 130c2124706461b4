from __future__ import annotations

from typing import Any

import pytest

from benchmarks.live_desk import SteppedClock
from benchmarks.simulation import Agent, Call, Caller, Fault, Reply, Simulation, Wait


def agent(*faults: Fault, n_places: int = 1) -> Agent:
    return Agent("a", n_places, mean_ms=100.0, spread=0.0, faults=faults)


async def replies(of: Agent, *calls: tuple[float, float]) -> list[tuple[float, Reply]]:
    """(instant, reply) of calls at these instants with these timeouts, in the order of the calls."""
    simulation = Simulation(SteppedClock(), [of])
    found: dict[int, tuple[float, Reply]] = {}

    def caller(number: int, timeout_ms: float) -> Caller:
        reply = yield Call("a", timeout_ms, (number,))
        found[number] = (simulation.now_ms, reply)

    for number, (at_ms, timeout_ms) in enumerate(calls):
        simulation.begin(at_ms, caller(number, timeout_ms))
    await simulation.run()
    assert simulation.n_callers == 0
    return [found[number] for number in range(len(calls))]


async def test_calls_beyond_the_places_wait_in_the_queue() -> None:
    one, two, three = await replies(agent(n_places=2), (0, 1000), (0, 1000), (50, 1000))
    assert (one, two) == ((100.0, Reply("succeeded", 100.0)), (100.0, Reply("succeeded", 100.0)))
    assert three == (200.0, Reply("succeeded", 150.0))


async def test_work_that_was_given_up_is_done_all_the_same() -> None:
    given_up, waiting = await replies(agent(), (0, 30), (40, 1000))
    assert given_up == (30.0, Reply("timed_out", 30))
    assert waiting == (200.0, Reply("succeeded", 160.0))


@pytest.mark.parametrize(
    ("fault", "reply"),
    [
        (Fault("a", "slow", 0, 10, mean_ms=400, failed_share=1.0), Reply("failed", 400.0)),
        (Fault("a", "wrong", 0, 10, failed_share=1.0), Reply("schema_mismatch", 100.0)),
        (Fault("a", "hang", 0, 10), Reply("timed_out", 1000)),
        (Fault("a", "unreachable", 0, 10), Reply("unreachable", 5.0)),
        (Fault("a", "unreachable", 5, 10), Reply("succeeded", 100.0)),
    ],
)
async def test_a_fault_shows_while_it_lasts(fault: Fault, reply: Reply) -> None:
    [(_, found)] = await replies(agent(fault), (0, 1000))
    assert found == reply


def test_the_same_work_takes_as_long_whoever_asks_and_whenever() -> None:
    of = Agent("a", 1, mean_ms=100.0, spread=0.5)
    works = [Call("a", 1000, (1, number)) for number in range(50)]
    took = [of.work(call, None) for call in works]
    assert [of.work(call, None) for call in reversed(works)] == took[::-1]
    assert 80 < sum(ms for ms, _ in took) / len(took) < 120
    assert len({ms for ms, _ in took}) == 50


async def test_what_a_caller_awaits_takes_no_simulated_time() -> None:
    simulation = Simulation(SteppedClock(), [])
    seen: list[tuple[float, Any]] = []

    async def told() -> str:
        return "now"

    def caller() -> Caller:
        yield Wait(10)
        seen.append((simulation.now_ms, (yield told())))

    simulation.begin(5, caller())
    await simulation.run()
    assert seen == [(15.0, "now")]


async def test_what_recurs_ends_with_the_last_caller() -> None:
    simulation, ticks = Simulation(SteppedClock(), []), list[float]()

    def caller() -> Caller:
        yield Wait(25)

    simulation.begin(0, caller())
    simulation.every(10, lambda: ticks.append(simulation.now_ms))
    await simulation.run()
    assert ticks == [10.0, 20.0, 30.0]

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from models.card import AgentCard, Probe
from models.live_policy import HealthPolicy
from router.card_digest import card_digest
from router.clock import SystemClock
from router.live.health import Health
from router.live.health_score import ProbeResult
from router.live.probe_hosts import ProbeHosts
from router.live.prober import Prober
from tests.router.live.agent_server import serving
from tests.router.waiting import eventually

POLICY = HealthPolicy()


def card(name: str, *, path: str = "/probe", interval_s: float = 10.0, **fields: Any) -> AgentCard:
    probe = Probe(path=path, interval_s=interval_s, timeout_ms=600_000)
    return AgentCard.model_validate({"agent_id": name, "endpoint": f"http://{name}.test", "probe": probe, **fields})


class World:
    """Time that passes only as the prober sleeps, and names that do not resolve: the result is `unreachable`.

    Attributes:
        looked_up: (seconds, host) of every look-up.
        held: hosts of which a look-up has not ended.
        most_held: how many of them there were at once.
        may_end: look-ups end while it is set.
    """

    def __init__(self, cards: Callable[[float], Sequence[AgentCard]], until_s: float) -> None:
        self.ms = 0.0
        self.looked_up: list[tuple[float, str]] = []
        self.held: list[str] = []
        self.most_held = 0
        self.n_cancelled = 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.health = Health()
        self._cards = cards
        self._until_s = until_s
        self._is_over = asyncio.Event()

    def now_ms(self) -> float:
        return 1_700_000_000_000 + self.ms

    def monotonic_ms(self) -> float:
        return self.ms

    def cards(self) -> Sequence[AgentCard]:
        return self._cards(self.ms / 1000)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append((self.ms / 1000, host))
        self.held.append(host)
        self.most_held = max(self.most_held, len(self.held))
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        finally:
            self.held.remove(host)
        raise OSError("no such name")

    async def sleep(self, seconds: float) -> None:
        for _ in range(20):  # what can go on without time goes on
            await asyncio.sleep(0)
        self.ms += seconds * 1000
        if self.ms >= self._until_s * 1000:
            self._is_over.set()
            await asyncio.Event().wait()

    @asynccontextmanager
    async def over(self, *, seed: int = 0, max_at_once: int = 16) -> AsyncIterator[None]:
        """The prober has run for the whole time; it ends with the block."""
        every = {each.key: card_digest(each) for at_s in (0, self._until_s) for each in self._cards(at_s)}
        self.health.follow(every, 0)
        hosts, random = ProbeHosts(["*"], self.resolve), np.random.default_rng(seed)
        prober = Prober(self.cards, self.health, hosts, self, random, max_at_once=max_at_once, sleep=self.sleep)
        task = asyncio.create_task(prober.run())
        over = asyncio.create_task(self._is_over.wait())
        await asyncio.wait([task, over], return_when=asyncio.FIRST_COMPLETED)
        try:
            yield
        finally:
            over.cancel()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def times_of(self, name: str) -> list[float]:
        return [at_s for at_s, host in self.looked_up if host == f"{name}.test"]

    def results_of(self, each: AgentCard) -> list[ProbeResult]:
        return [report.result for report in self.health.view(each.key, each, self.ms, POLICY).probes]


def always(*cards: AgentCard) -> Callable[[float], Sequence[AgentCard]]:
    return lambda _: cards


async def test_every_agent_is_probed_in_its_interval_with_jitter() -> None:
    world = World(always(card("a"), card("b", interval_s=60.0)), until_s=600)
    async with world.over():
        pass

    times, others = world.times_of("a"), world.times_of("b")
    assert times[0] <= 10.25
    assert others[0] <= 10.25
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert 54 <= len(times) <= 67
    assert all(9 <= gap <= 11.25 for gap in gaps)
    assert max(gaps) - min(gaps) > 1
    assert all(54 <= later - earlier <= 66.25 for earlier, later in pairwise(others))
    assert world.results_of(card("a")) == [ProbeResult.UNREACHABLE] * 3


async def test_probes_do_not_begin_all_at_once() -> None:
    world = World(always(*(card(f"a{n}") for n in range(100))), until_s=11)
    async with world.over():
        pass

    firsts = [world.times_of(f"a{n}")[0] for n in range(100)]
    assert max(firsts.count(at_s) for at_s in firsts) < 15


async def test_the_same_seed_gives_the_same_times() -> None:
    worlds = [World(always(card("a"), card("b")), until_s=100) for _ in range(3)]
    for world, seed in zip(worlds, (1, 1, 2), strict=True):
        async with world.over(seed=seed):
            pass

    assert worlds[0].looked_up == worlds[1].looked_up != worlds[2].looked_up


async def test_no_more_than_the_bound_run_at_once_and_all_get_their_turn() -> None:
    world = World(always(*(card(f"a{n}") for n in range(10))), until_s=30)
    world.may_end.clear()
    async with world.over(max_at_once=3):
        assert (world.most_held, len(world.looked_up)) == (3, 3)
        world.may_end.set()
        await eventually(lambda: len(world.looked_up) == 10)

    assert world.most_held == 3
    assert len({host for _, host in world.looked_up}) == 10


async def test_an_agent_is_never_probed_twice_at_once() -> None:
    world = World(always(card("a", interval_s=1.0)), until_s=100)
    world.may_end.clear()
    async with world.over():
        assert world.held == ["a.test"]
    assert len(world.looked_up) == 1


@pytest.mark.parametrize("fields", [{"probe": None}, {"protocol": "grpc"}, {"enabled": False}])
async def test_who_is_not_to_be_probed_is_not(fields: dict[str, Any]) -> None:
    world = World(always(card("a", **fields), card("b")), until_s=30)
    async with world.over():
        pass
    assert {host for _, host in world.looked_up} == {"b.test"}


async def test_cards_are_followed() -> None:
    first, moved = card("a"), card("a", endpoint="http://elsewhere.test")
    before, after = (first, card("b")), (moved, card("c"))
    world = World(lambda at_s: before if at_s < 50 else after, until_s=100)
    async with world.over():
        pass

    assert all(at_s < 50.25 for at_s in world.times_of("a") + world.times_of("b"))
    assert all(at_s >= 50 for at_s in world.times_of("elsewhere") + world.times_of("c"))
    assert min(len(world.times_of(name)) for name in ("a", "b", "elsewhere", "c")) >= 3
    assert world.results_of(card("b")) == []


async def test_a_probe_of_a_card_that_goes_is_given_up_and_forgotten() -> None:
    cards = (card("a"), card("b"))
    world = World(lambda at_s: cards if at_s < 50 else cards[1:], until_s=100)
    world.may_end.clear()
    async with world.over():
        assert world.held == ["b.test"]
        assert world.n_cancelled == 1
    assert world.results_of(card("a")) == []


async def test_a_changed_card_with_the_same_probe_goes_on_in_its_rhythm() -> None:
    before, after = (card("a", interval_s=50.0),), (card("a", interval_s=50.0, weight=1.0),)
    world = World(lambda at_s: before if at_s < 20 else after, until_s=100)
    async with world.over():
        pass
    times = world.times_of("a")
    assert times[1] - times[0] >= 45
    assert len(world.results_of(after[0])) == len(times)


async def test_the_end_leaves_no_probe_running() -> None:
    world = World(always(card("a"), card("b")), until_s=30)
    world.may_end.clear()
    async with world.over():
        assert sorted(world.held) == ["a.test", "b.test"]
    assert world.held == []
    assert world.n_cancelled == 2


async def test_what_nobody_expected_of_a_probe_ends_the_run() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise LookupError("no table")

    world = World(always(card("a", interval_s=1.0)), until_s=100)
    hosts = ProbeHosts(["*"], resolve)
    prober = Prober(world.cards, world.health, hosts, world, np.random.default_rng(0), sleep=world.sleep)
    with pytest.raises(LookupError, match="no table"):
        await prober.run()


async def test_agents_that_are_there_are_told_by_what_they_answer(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server:
        cards = tuple(
            card(name, path=f"/{name}", interval_s=1.0, endpoint=server.endpoint) for name in ("right", "wrong")
        )
        health, clock = Health(), SystemClock()
        health.follow({each.key: card_digest(each) for each in cards}, clock.monotonic_ms())
        hosts = ProbeHosts(["127.0.0.0/8"])
        prober = Prober(lambda: cards, health, hosts, clock, np.random.default_rng(0))
        task = asyncio.create_task(prober.run())

        def results() -> list[set[ProbeResult]]:
            views = [health.view(each.key, each, clock.monotonic_ms(), POLICY) for each in cards]
            return [{report.result for report in view.probes} for view in views]

        try:
            await eventually(lambda: results() == [{ProbeResult.OK}, {ProbeResult.WRONG_ECHO}])
            scores = [health.vitals(each.key, each, clock.monotonic_ms(), POLICY).score for each in cards]
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    assert scores == [1.0, 0.0]
    nonces = [asked.body["nonce"] for asked in server.asked]
    assert len(set(nonces)) == len(nonces) >= 2
    assert "probe of wrong in default: wrong_echo" in caplog.text

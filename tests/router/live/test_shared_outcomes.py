"""What the outcomes of one caller, and of all, do to what all callers share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest

from feedback.attribution import Charge, Party
from models.outcome import Outcome
from models.policy import Policy
from router.live.breaker_state import BreakerState, DependencyKey
from router.live.effects import Effects
from router.live.live import Live
from router.live.open_decisions import OpenDecision, Step, Told
from router.live.outliers import Ejection
from tests.builders import capability, card, snapshot_of

GROUP = ("default", "echo")
DATABASE = DependencyKey("database", "default")


class Scene:
    """Three agents of one intent, which share a database, and those who tell of them.

    Attributes:
        ejections: (agent, when) of all.
    """

    def __init__(self) -> None:
        self.cards = {
            name: card(name, capability("echo", ["do echo"]), depends_on=["database"] if name != "c" else [])
            for name in "abc"
        }
        self.snapshot = snapshot_of(self.cards.values(), Policy())
        self.live = Live(Random(7))
        self.effects = Effects(self.live)
        self.now_ms = 0.0
        self.ejections: list[tuple[str, float]] = []
        self.live.health.follow(self.snapshot.digest_of, 0.0)
        self._numbers = count()

    def tell(self, teller: str, name: str, failed: bool, **fields: Any) -> OpenDecision:
        """One outcome of an agent."""
        agent = ("default", name, "1.0.0")
        opened = OpenDecision(
            decision_id=f"d{next(self._numbers)}",
            trace_id="t",
            span_id="s",
            key=teller,
            caller=teller,
            team="",
            namespace="default",
            intent="echo",
            utterance=None,
            payload=None,
            session_id=None,
            steps=(Step(agent, 1000, 1000, 0, (), tuple(self.cards[name].depends_on)),),
            began_ms=self.now_ms,
        )
        self.amend(opened, failed, **fields)
        return opened

    def amend(self, opened: OpenDecision, failed: bool, **fields: Any) -> None:
        """Another outcome of the same call."""
        if 1 in opened.told:
            self.effects.take_back(opened, 1, self.now_ms, self.snapshot)
        status = "unreachable" if failed else "succeeded"
        outcome = Outcome.model_validate(
            {"decision_id": opened.decision_id, "status": status, "latency_ms": 100.0, **fields}
        )
        named = outcome.error is not None and outcome.error.dependency is not None
        charged = Charge(Party.DEPENDENCY if named else Party.AGENT, failed)
        self.effects.record(opened, outcome, charged, self.now_ms, self.snapshot)
        opened.told[1] = Told(outcome, charged.party.value, 0)
        for change in self.live.told_changes():
            if isinstance(change, Ejection):
                self.ejections.append((change.agent[1], change.at_ms))

    def health(self, name: str) -> float:
        """Its score, not older than now."""
        agent, policy = ("default", name, "1.0.0"), self.snapshot.policy.of("default").health
        return self.live.health.view(agent, self.cards[name], self.now_ms, policy).vitals.score

    def database(self) -> BreakerState | None:
        view = self.live.breakers.view(DATABASE, self.now_ms)
        return None if view is None else view.state


def honest(scene: Scene, rng: Random, n_outcomes: int, share_failed: float, after: Callable[[bool], None]) -> None:
    """Outcomes of four callers, one each second of each agent; `after` is told whether the one of `a` failed."""
    for _ in range(n_outcomes):
        for name in "abc":
            failed = rng.random() < share_failed
            scene.tell(f"honest {rng.randrange(4)}", name, failed)
            if name == "a":
                after(failed)
        scene.now_ms += 1000


LIES: dict[str, Callable[[int, bool], int]] = {
    "spread": lambda number, failed: 5,
    "burst": lambda number, failed: 1000 if number == 100 else 0,
    "after failures": lambda number, failed: 100 if failed else 0,
}
"""How many lies follow the n-th honest outcome, which failed or not."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("way", "share_failed"),
    [("spread", 0.0), ("burst", 0.0), *[(way, share) for way in LIES for share in (0.1, 0.2)]],
    ids=str,
)
def test_a_thousand_false_failures_of_one_beside_four_honest_callers_cost_at_most_a_tenth_of_the_health(
    way: str, share_failed: float, seed: int
) -> None:
    scene, rng, told = Scene(), Random(seed), count()
    fair: list[bool] = []
    ratios: list[float] = []
    n_lies = 0

    def lie(failed: bool) -> None:
        nonlocal n_lies
        number = next(told)
        fair.append(failed)
        if number < 100:
            return
        for _ in range(LIES[way](number - 100, failed)):
            scene.tell("eve", "a", True)
            n_lies += 1
        newest = fair[-300:]
        ratios.append(scene.health("a") / (1 - sum(newest) / len(newest)))

    honest(scene, rng, 350, share_failed, lie)
    assert n_lies >= 1000
    assert min(ratios) > 0.9
    assert [name for name, _ in scene.ejections if name == "a"] == []


def outage(scene: Scene, n_callers: int, rng: Random | None) -> tuple[int | None, int | None]:
    """After how many failures of `a` it is ejected, and its health under a half: None where not within 500."""
    callers = [f"caller {number}" for number in range(n_callers)]
    for number in range(60):
        for name in "abc":
            scene.tell(callers[number % n_callers], name, False)
        scene.now_ms += 1000
    n_ejected = n_ill = None
    for number in range(1, 501):
        scene.tell(callers[number % n_callers] if rng is None else rng.choice(callers), "a", True)
        n_ejected = number if n_ejected is None and scene.ejections else n_ejected
        n_ill = number if n_ill is None and scene.health("a") < 0.5 else n_ill
        scene.now_ms += 100
    return n_ejected, n_ill


def test_an_agent_that_fails_for_its_only_caller_is_out_as_ever() -> None:
    assert outage(Scene(), 1, None) == (5, 61)


@pytest.mark.parametrize("n_callers", [2, 3, 10])
def test_an_agent_that_fails_for_all_callers_in_turn_is_out_as_soon_as_for_one(n_callers: int) -> None:
    assert outage(Scene(), n_callers, None) == (5, 61)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_callers", [2, 3, 10])
def test_an_agent_that_fails_for_all_callers_in_any_order_is_out_not_much_later(n_callers: int, seed: int) -> None:
    n_ejected, n_ill = outage(Scene(), n_callers, Random(seed))
    assert n_ejected is not None
    assert n_ejected <= 15
    assert n_ill is not None
    assert n_ill <= 90


@pytest.mark.parametrize("n_callers", [1, 2, 3, 10])
def test_an_agent_that_still_fails_when_it_is_back_is_out_again_at_once(n_callers: int) -> None:
    scene = Scene()
    outage(scene, n_callers, None)
    (_, first_ms), (_, second_ms) = scene.ejections
    base_ms = scene.snapshot.policy.of("default").ejection.base_ms
    assert second_ms == first_ms + base_ms + 400


@pytest.mark.parametrize("seed", range(3))
def test_false_failures_of_one_at_all_its_agents_do_not_open_a_shared_dependency(seed: int) -> None:
    scene, rng = Scene(), Random(seed)

    def lie(failed: bool) -> None:
        for name in "abab":
            scene.tell("eve", name, True)
        assert scene.database() is BreakerState.CLOSED

    honest(scene, rng, 60, 0.05, lambda failed: None)
    honest(scene, rng, 200, 0.05, lie)


def test_failures_of_all_and_those_that_name_it_open_a_shared_dependency() -> None:
    inferred, named = Scene(), Scene()
    for scene in (inferred, named):
        honest(scene, Random(1), 60, 0.0, lambda failed: None)
    honest(inferred, Random(2), 20, 1.0, lambda failed: None)
    assert inferred.database() is BreakerState.OPEN
    for number in range(100):
        named.tell(f"honest {number % 4}", "a", True, error={"dependency": "database"})
    assert named.database() is BreakerState.OPEN


def test_what_was_left_out_is_taken_back_without_a_trace_and_what_counted_exactly() -> None:
    scene = Scene()
    agent, window_ms = ("default", "a", "1.0.0"), scene.snapshot.policy.of("default").health.window_ms

    def figures() -> tuple[int, float | None, int | None, bool]:
        measured = scene.live.health.latencies.figures(agent, scene.now_ms, window_ms)
        view = scene.live.breakers.view(DATABASE, scene.now_ms)
        is_out = scene.live.outliers.is_ejected(agent, GROUP, scene.now_ms)
        return measured.n_outcomes, measured.error_rate, None if view is None else view.n_failures, is_out

    for number in range(20):
        scene.tell(f"honest {number % 4}", "a", False)
    assert figures() == (20, 0.0, 0, False)
    lies = [scene.tell("eve", "a", True) for _ in range(10)]
    assert figures() == (24, 4 / 24, 4, False)
    for lie in lies[4:]:
        scene.amend(lie, False)
    assert figures() == (30, 4 / 30, 4, False)
    for lie in lies[4:]:
        scene.amend(lie, True)
    assert figures() == (24, 4 / 24, 4, False)
    for lie in lies[:4]:
        scene.amend(lie, True, latency_ms=7.0)
    assert figures() == (24, 4 / 24, 4, False)
    for lie in reversed(lies):
        scene.effects.take_back(lie, 1, scene.now_ms, scene.snapshot)
    assert figures() == (20, 0.0, 0, False)
    assert [scene.tell("eve", "a", True).decision_id for _ in range(10)]
    assert figures() == (24, 4 / 24, 4, False)


def test_the_breaker_of_the_one_who_tells_hears_every_failure() -> None:
    scene = Scene()
    for number in range(20):
        scene.tell(f"honest {number % 4}", "a", False)
    for _ in range(30):
        scene.tell("eve", "a", True)
    agent = ("default", "a", "1.0.0")
    [view] = [each for each in scene.live.breakers.listed(scene.now_ms) if each.key[0] == "eve"]
    assert (view.state, view.n_failures) == (BreakerState.OPEN, 30)
    assert list(scene.live.breakers.troubled_targets("eve")) == [agent]
    assert scene.live.breakers.troubled_targets("honest 0") == {}

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.events import DecisionRow
from models.policy import Policy
from router.learned import Learned
from router.logged_decision import Logged, read_record
from router.policy_file import parse_policy
from router.scorer import Blend, Contender
from router.selection import choose_among
from router.target_policy import TargetPolicy, decided
from tests.builders import capability, card
from tests.router.policy_log import World, contender, decision_row, sealed

CHEAP, DEAR = contender("cheap", quality=0.8, cost=1.0), contender("dear", quality=0.85, cost=5.0)

SHIPPED = Blend()


def logged(
    contenders: Sequence[Contender] = (CHEAP, DEAR),
    *,
    learned: Learned | None = None,
    blend: Blend = SHIPPED,
    propensities: Sequence[float] = (1.0, 0.0),
    seed: int = 0,
    **row: Any,
) -> Logged:
    """A record of a decision for the first of the contenders."""
    inputs = {
        "seed": seed,
        "blend": list(blend),
        "learned": None if learned is None else learned._asdict(),
        "contenders": [sealed(each) for each in contenders],
        "propensities": list(propensities),
        **row.pop("inputs", {}),
    }
    return read_record(decision_row("d", "refund", contenders[0], inputs=inputs, **row), (), lambda *_: None)


def posteriors(mode: Any = "exploit", floor: float = 0.0, evidence: float = 100.0) -> Learned:
    """As many outcomes of each; the dear one is better."""
    return Learned(mode, (0.8 * evidence, 0.85 * evidence), (0.2 * evidence, 0.15 * evidence), floor, 0.5, 3)


def shares(policy: dict[str, Any], one: Logged, *cards: Any, **deciding: Policy) -> tuple[float, ...] | None:
    chances = TargetPolicy(parse_policy(policy), cards, deciding).chances(one)
    return None if chances is None else chances.shares


@pytest.mark.parametrize("mode", ["observe", "exploit", "explore", None])
def test_the_policy_that_decided_decides_the_same(mode: Any) -> None:
    world = World(mode=mode, floor=0.1)
    policy = parse_policy(
        {"learning": {"mode": mode or "exploit", "floor": 0.1}, "risk": {"low": "always", "normal": "explore"}}
    )
    risk = "low" if mode == "exploit" else "normal"
    cards = [
        card(name, *(capability(intent, risk=risk, quality=world.declared[name]) for intent in ("refund", "track")))
        for name in ("cheap", "dear")
    ]
    target = TargetPolicy(policy, cards)
    for row in world.rows(200):
        if isinstance(row, DecisionRow):
            one = read_record(row, (), lambda *_: None)
            chances = target.chances(one)
            assert chances is not None
            assert chances.shares == one.propensities
            assert chances.choice == one.chosen


@pytest.mark.parametrize("mode", ["observe", "exploit", "explore", None])
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_choices_are_those_of_selection(mode: Any, floor: float) -> None:
    rng = np.random.default_rng(5)
    n_explored = 0
    for seed in rng.integers(2**63, size=50).tolist():
        n = int(rng.integers(1, 5))
        several = [
            contender(name, quality, cost, share_weight=10.0)
            for name, quality, cost in zip("abcd", rng.uniform(0.6, 0.9, n), rng.uniform(1, 5, n), strict=False)
        ]
        alpha, beta = (tuple(rng.uniform(1, 20, n).tolist()) for _ in range(2))
        learned = None if mode is None else Learned(mode, alpha, beta, floor, 0.5, 1)
        entries: list[Any] = [SimpleNamespace(card=each) for each in several]
        selected = choose_among(entries, several, SHIPPED, seed, learned=learned)
        ranked, choice = decided(several, SHIPPED, learned, seed)
        assert (ranked, choice) == (selected.ranked, selected.choice)
        n_explored += choice.is_explored
    assert (n_explored > 0) == (mode == "explore" or (floor > 0 and mode is not None))


def test_cost_weights_and_preference_decide() -> None:
    assert shares({}, logged()) == (1.0, 0.0)
    assert shares({"defaults": {"cost_weights": {"auto": 0.0}}}, logged()) == (0.0, 1.0)
    assert shares({"defaults": {"preference": "best"}}, logged()) == (0.0, 1.0)
    assert shares({"defaults": {"cost_optimize": False}}, logged()) == (0.0, 1.0)
    # what the request asks for outranks the policy
    asked = logged(request={"intent": "refund", "preference": "cheapest"})
    assert shares({"defaults": {"preference": "best"}}, asked) == (1.0, 0.0)


def test_the_policy_of_the_namespace_counts() -> None:
    assert shares({"namespaces": {"default": {"cost_weights": {"auto": 0.0}}}}, logged()) == (0.0, 1.0)
    assert shares({"namespaces": {"prod": {"cost_weights": {"auto": 0.0}}}}, logged()) == (1.0, 0.0)


def test_latency_and_nearness_decide() -> None:
    slow = (CHEAP._replace(latency_ms=900.0), DEAR._replace(latency_ms=90.0))
    assert shares({"defaults": {"latency_weight": 0.2}}, logged(slow)) == (0.0, 1.0)
    assert shares({"defaults": {"share_within": 1.0}}, logged()) == (0.5, 0.5)


def test_agents_that_may_not_serve_the_intent_are_no_options() -> None:
    assert shares({"defaults": {"intents": {"refund": {"agents": ["dear"]}}}}, logged()) == (0.0, 1.0)
    assert shares({"defaults": {"intents": {"other": {"agents": ["dear"]}}}}, logged()) == (1.0, 0.0)
    assert shares({"agents": {"cheap": {"enabled": False}}}, logged()) == (0.0, 1.0)
    chances = TargetPolicy(parse_policy({"defaults": {"intents": {"refund": {"agents": ["x"]}}}})).chances(logged())
    assert chances is not None
    assert (chances.shares, chances.choice) == ((0.0, 0.0), None)


def test_permissions_that_the_caller_lacks_leave_nobody() -> None:
    policy = {"defaults": {"intents": {"refund": {"required_permissions": ["refund:pay"]}}}}
    assert shares(policy, logged(inputs={"grants": {"permissions": ["other"]}})) == (0.0, 0.0)
    assert shares(policy, logged(inputs={"grants": {"permissions": ["refund:pay", "other"]}})) == (1.0, 0.0)
    assert shares(policy, logged(inputs={"grants": {"permissions": None}})) == (1.0, 0.0)


def test_agents_of_other_namespaces_need_the_policys_leave() -> None:
    far = (CHEAP._replace(namespace="far"), DEAR)
    assert shares({}, logged(far)) == (0.0, 1.0)
    assert shares({"defaults": {"cross_namespaces": ["far"]}}, logged(far)) == (1.0, 0.0)


def test_the_dearest_of_those_that_are_left_is_what_costs_are_measured_by() -> None:
    # beside an agent of cost 50 the two cost next to nothing and the better one wins; without it the cheap one does
    huge = contender("huge", quality=0.1, cost=50.0)
    three = logged((DEAR, CHEAP, huge), propensities=(1.0, 0.0, 0.0))
    assert shares({}, three) == (1.0, 0.0, 0.0)
    assert shares({"agents": {"huge": {"enabled": False}}}, three) == (0.0, 1.0, 0.0)


def test_a_wish_outranks_the_formula_where_the_policy_allows_it() -> None:
    wish = logged((DEAR, CHEAP), request={"intent": "refund", "target_agent": "dear"})
    assert shares({}, wish) == (1.0, 0.0)
    assert shares({"agents": {"dear": {"enabled": False}}}, wish) == (0.0, 1.0)


def test_weights_of_the_merit_decide_where_none_were_learned() -> None:
    healthy = (CHEAP._replace(health=0.5), DEAR)
    assert shares({"defaults": {"weights": {"health": 0.0}}}, logged(healthy)) == (1.0, 0.0)
    assert shares({"defaults": {"weights": {"health": 1.0}}}, logged(healthy)) == (0.0, 1.0)


def test_exponents_that_were_learned_stay_while_learning_begins_alike() -> None:
    healthy = (CHEAP._replace(health=0.5), DEAR)
    learned = Blend(health=0.0)
    one = logged(healthy, learned=posteriors(), blend=learned, inputs={"digests": {"policy": "p"}})
    same, other = parse_policy({}), parse_policy({"defaults": {"weights": {"health": 0.5}}})
    fixed = parse_policy({"learning": {"exponents": False}})
    assert shares({}, one) == (1.0, 0.0)
    assert shares({}, one, p=same) == (1.0, 0.0)
    # another beginning, or none that was learned: the policy's own
    assert shares({}, one, p=other) == (0.0, 1.0)
    assert shares({}, one, p=fixed) == (0.0, 1.0)
    assert shares({"learning": {"exponents": False}}, one) == (0.0, 1.0)


def test_modes_of_learning_use_the_recorded_posteriors() -> None:
    cards = [card("cheap", capability("refund", quality=0.9)), card("dear", capability("refund", quality=0.9))]
    even = logged(learned=posteriors(), blend=Blend(cost_weight=0.0))
    free = {"defaults": {"cost_weights": {"auto": 0.0}}}
    assert shares({**free, "learning": {"mode": "exploit"}}, even, *cards) == (0.0, 1.0)
    assert shares({**free, "learning": {"mode": "observe"}}, even, *cards) == (0.5, 0.5)
    explored = shares({**free, "learning": {"mode": "explore", "floor": 0.1}}, even, *cards)
    assert explored is not None
    assert 0.05 < explored[0] < explored[1] < 0.95
    colder = shares({**free, "learning": {"mode": "explore", "floor": 0.1, "temperature": 0.1}}, even, *cards)
    assert colder is not None
    assert colder[0] < explored[0]


def test_declared_quality_of_a_card_that_is_gone_is_not_guessed() -> None:
    assert shares({"learning": {"mode": "observe"}}, logged(learned=posteriors())) is None
    assert shares({"learning": {"mode": "observe"}}, logged(learned=posteriors("observe"))) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("risk", "mode", "floor"),
    [
        ("low", "exploit", 0.1),
        ("low", "explore", 0.1),
        ("normal", "exploit", 0.0),
        ("normal", "explore", 0.1),
        ("high", "exploit", 0.0),
        ("high", "explore", 0.0),
    ],
)
def test_risk_says_whether_it_explores(risk: Any, mode: str, floor: float) -> None:
    # posteriors so sure that draws agree: what is left to the dear one is the floor
    one = logged(learned=posteriors(evidence=1e7), blend=Blend(cost_weight=1.0))
    policy: dict[str, Any] = {"defaults": {"cost_weights": {"auto": 1.0}}, "learning": {"mode": mode, "floor": 0.1}}
    cards = [card("cheap", capability("refund", risk="low")), card("dear", capability("refund", risk=risk))]
    found = shares(policy, one, *cards)
    assert found is not None
    assert found[1] == pytest.approx(floor / 2)
    # the policy's own word of the intent outranks the cards
    said = {**policy, "defaults": {**policy["defaults"], "intents": {"refund": {"risk": "high"}}}}
    assert shares(said, one, *cards) == (1.0, 0.0)


def test_the_best_is_never_explored_around() -> None:
    one = logged(learned=posteriors("explore", 0.1), request={"intent": "refund", "preference": "best"})
    assert shares({"learning": {"mode": "explore"}}, one) == (0.0, 1.0)


def test_of_cards_that_are_gone_the_record_says_what_was_explored() -> None:
    explored = logged(learned=posteriors("explore", 0.1, 1e7))
    assert shares({"learning": {"mode": "explore", "floor": 0.1}}, explored) == pytest.approx((0.95, 0.05))
    # what was explored in mode explore only is of normal risk
    assert shares({"learning": {"mode": "exploit", "floor": 0.1}}, explored) == (1.0, 0.0)
    low = logged(learned=posteriors("exploit", 0.1, 1e7))
    assert shares({"learning": {"mode": "exploit", "floor": 0.1}}, low) == pytest.approx((0.95, 0.05))
    never = logged(learned=posteriors("exploit", 0.0, 1e7))
    assert shares({"learning": {"mode": "explore", "floor": 0.1}}, never) == (1.0, 0.0)


def test_weights_of_agents_scale_the_recorded_share_where_the_policy_before_is_known() -> None:
    near = (CHEAP._replace(share_weight=50.0), CHEAP._replace(agent_id="other", share_weight=50.0))
    cards = [card("cheap", capability("refund")), card("other", capability("refund"))]
    one = logged(near, propensities=(0.5, 0.5), inputs={"digests": {"policy": "p"}})
    heavier = {"agents": {"cheap": {"weight": 300.0}}}
    assert shares(heavier, one, *cards, p=parse_policy({})) == (0.75, 0.25)
    assert shares(heavier, one, *cards, p=parse_policy(heavier)) == (0.5, 0.5)
    assert shares(heavier, one, *cards) == (0.5, 0.5)
    assert shares({"agents": {"cheap": {"weight": 0.0}}}, one, *cards, p=parse_policy({})) == (0.0, 1.0)
    off = parse_policy({"agents": {"cheap": {"weight": 0.0}}})
    assert shares(heavier, one, *cards, p=off) == (300 / 350, 50 / 350)


def test_agents_that_only_this_policy_admits_are_unseen() -> None:
    cards = [card(name, capability("refund")) for name in ("cheap", "dear", "new")]
    cards += [card("off", capability("refund"), enabled=False), card("far", capability("track"))]
    offered = {("default", "refund", "cheap"), ("default", "refund", "dear")}
    named = parse_policy({"defaults": {"intents": {"refund": {"agents": ["new", "cheap", "off", "gone"]}}}})
    before = parse_policy({"defaults": {"intents": {"refund": {"agents": ["cheap", "dear"]}}}})
    one = logged(inputs={"digests": {"policy": "p"}})
    assert TargetPolicy(named, cards).unseen(offered) == ["new (refund)"]
    # it is merely never eligible: no policy kept it out
    assert TargetPolicy(Policy(), cards).unseen(offered) == []
    opened = TargetPolicy(Policy(), cards, {"p": before, "unused": Policy()})
    opened.chances(one)
    assert opened.unseen(offered) == ["new (refund)"]
    assert opened.unseen({*offered, ("default", "refund", "new")}) == []
    same = TargetPolicy(before, cards, {"p": before})
    same.chances(one)
    assert same.unseen(offered) == []

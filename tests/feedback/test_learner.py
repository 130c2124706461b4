from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedback.learner import Learner
from feedback.lessons import Lesson
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, LearnerRow, WeightRow
from models.learning_policy import DriftPolicy, LearningPolicy

POLICY = LearningPolicy()
UNCAPPED = LearningPolicy(caller_share=1.0, drift=DriftPolicy(enabled=False))
U = EVIDENCE_UNIT
AGENT: AgentKey = ("default", "helper", "1.0.0")
OTHER: AgentKey = ("default", "other", "1.0.0")
NEWER: AgentKey = ("default", "helper", "1.10.0")
BILLING = (("billing", 1.0),)


def learner(*agents: AgentKey) -> Learner:
    made = Learner()
    made.declare({agent: {"billing": 0.6, "refund": 0.6} for agent in agents or (AGENT, OTHER)})
    return made


def lesson(agent: AgentKey = AGENT, reward: float = 1.0, caller: str = "ann", **fields: Any) -> Lesson:
    filled: dict[str, Any] = {"intents": BILLING, "features": None, "cost_usd": None, "at_ms": 0} | fields
    return Lesson(agent=agent, reward=reward, caller=caller, **filled)


def teach(own: Learner, n: int, policy: LearningPolicy = POLICY, **fields: Any) -> None:
    for _ in range(n):
        own.learn_one(lesson(**fields), policy)


def mean(own: Learner, agent: AgentKey = AGENT, policy: LearningPolicy = POLICY) -> float:
    (alpha,), (beta,) = own.posterior([agent], BILLING, policy)
    return alpha / (alpha + beta)


def weights_of(own: Learner) -> list[WeightRow]:
    return [row for row in own.rows(0) if isinstance(row, WeightRow)]


def test_an_outcome_is_evidence_on_each_intent_of_the_reading() -> None:
    own = learner()
    learnt = own.learn_one(lesson(intents=(("billing", 0.75), ("refund", 0.25)), reward=0.5), POLICY)

    assert [row for row in learnt.rows if isinstance(row, WeightRow)] == [
        WeightRow(*AGENT, "billing", "ann", 750_000, 375_000),
        WeightRow(*AGENT, "refund", "ann", 250_000, 125_000),
    ]
    assert own.evidence_of(AGENT, "billing") == (0.75, 0.375)


def test_the_version_rises_by_one_with_each_change() -> None:
    own = learner()
    learnt = own.learn_one(lesson(), POLICY)
    assert own.version == 1
    assert learnt.contribution is not None
    own.unlearn_one(learnt.contribution, POLICY, at_ms=1)
    assert own.version == 2
    own.posterior([AGENT], BILLING, POLICY)
    own.due(POLICY, at_ms=2)
    assert own.version == 2


def test_a_frozen_learner_learns_nothing_and_takes_back_what_is_amended() -> None:
    own = learner()
    teach(own, 3)
    contribution = own.learn_one(lesson(), POLICY).contribution
    assert contribution is not None
    version = own.version
    own.freeze("outcomes look forged", at_ms=1)

    assert own.learn_one(lesson(reward=0.0), POLICY) == ([], None, False)
    assert (own.is_frozen, own.frozen, own.version) == (True, "outcomes look forged", version)
    assert own.evidence_of(AGENT, "billing") == (4.0, 4.0)
    assert own.unlearn_one(contribution, POLICY, at_ms=1).contribution is None
    assert own.evidence_of(AGENT, "billing") == (3.0, 3.0)
    assert own.version > version
    own.thaw(at_ms=2)
    assert own.learn_one(lesson(), POLICY).rows != []


def test_who_is_not_declared_keeps_its_evidence_and_is_no_part_of_the_means() -> None:
    own = learner()
    teach(own, 50, agent=OTHER, reward=0.0)
    lowered = mean(own)
    own.declare({AGENT: {"billing": 0.6, "refund": 0.6}})
    assert mean(own) == pytest.approx(0.6)
    assert lowered < 0.5
    own.declare({agent: {"billing": 0.6, "refund": 0.6} for agent in (AGENT, OTHER)})

    assert mean(own) == lowered
    assert own.evidence_of(OTHER, "billing") == (50.0, 0.0)


def test_agents_of_several_namespaces_are_judged_within_their_own() -> None:
    far: AgentKey = ("far", "helper", "1.0.0")
    own = learner(AGENT, OTHER, far)
    teach(own, 20, agent=far, reward=0.0)
    alpha, beta = own.posterior([AGENT, far, OTHER], BILLING, POLICY)

    assert (alpha[0], beta[0]) == pytest.approx((6.0, 4.0)) == (alpha[2], beta[2])
    assert beta[1] > 20


def test_a_new_version_begins_with_part_of_the_evidence_on_the_one_before() -> None:
    own = learner(AGENT, NEWER)
    teach(own, 40, UNCAPPED)
    alpha, beta = own.posterior([AGENT, NEWER], BILLING, UNCAPPED)

    # half of 40 outcomes; the prior mean of both lies within [.02, .98]
    assert (alpha[0] + beta[0], alpha[1] + beta[1]) == pytest.approx((50.0, 30.0))
    assert own.evidence_of(NEWER, "billing") == (0.0, 0.0)
    none = own.posterior([NEWER], BILLING, LearningPolicy(inherit=0.0))
    assert none.alpha[0] + none.beta[0] == pytest.approx(10.0)


def test_what_is_inherited_comes_down_the_line_and_follows_what_is_learned_later() -> None:
    newest: AgentKey = ("default", "helper", "2.0.0-rc.1")
    own = learner(AGENT, NEWER, newest)
    own.posterior([newest], BILLING, UNCAPPED)
    teach(own, 16, UNCAPPED)
    teach(own, 8, UNCAPPED, agent=NEWER)
    alpha, beta = own.posterior([AGENT, NEWER, newest], BILLING, UNCAPPED)

    assert [a + b - 10 for a, b in zip(alpha, beta, strict=True)] == pytest.approx([16.0, 8 + 8.0, 8.0])


def test_a_version_inherits_from_one_that_has_vanished() -> None:
    own = learner(AGENT)
    teach(own, 40, UNCAPPED)
    own.declare({NEWER: {"billing": 0.6}})
    (alpha,), (beta,) = own.posterior([NEWER], BILLING, UNCAPPED)

    assert alpha + beta == pytest.approx(30.0)


def test_the_cost_of_an_agent_is_the_mean_of_what_its_calls_cost() -> None:
    own = learner()
    assert own.cost_of(AGENT) is None
    teach(own, 1, cost_usd=0.02)
    teach(own, 1, cost_usd=0.04)
    assert own.cost_of(AGENT) == pytest.approx(0.03)
    teach(own, 300, cost_usd=0.1)
    assert own.cost_of(AGENT) == pytest.approx(0.1, rel=0.01)


def test_exponents_are_learned_by_namespace_and_only_where_the_policy_says_so() -> None:
    own, base = learner(), (1.0, 1.0, 1.0, 1.0)
    teach(own, 200, features=(0.9, 0.5, 1.0, 1.0))
    assert own.exponents("default", base)[1] < 0.8
    assert own.exponents("far", base) == base
    still = learner()
    teach(still, 200, LearningPolicy(exponents=False), features=(0.9, 0.5, 1.0, 1.0))
    assert still.exponents("default", base) == base


def test_an_agent_that_fails_is_demoted_and_its_evidence_shrinks() -> None:
    own = learner()
    teach(own, 200)
    alarms = [own.learn_one(lesson(reward=0.0), POLICY).is_alarm for _ in range(20)]

    assert sum(alarms) == 1
    assert own.is_demoted(AGENT)
    assert not own.is_demoted(OTHER)
    n, _ = own.evidence_of(AGENT, "billing")
    assert n < 20 + 20
    # the mean of the last 25, which are not all failures yet
    assert mean(own) < 0.55
    teach(own, 20, reward=0.0)
    assert mean(own) < 0.3


def test_evidence_on_a_demoted_agent_decays_with_each_routed_request() -> None:
    own = learner()
    teach(own, 200)
    while not own.learn_one(lesson(reward=0.0), POLICY).is_alarm:
        pass
    n, s = own.evidence_of(AGENT, "billing")
    for _ in range(100):
        own.routed("default")
    learnt = own.due(POLICY, at_ms=5)

    assert own.evidence_of(AGENT, "billing") == pytest.approx((n * 0.999**100, s * 0.999**100), abs=1e-5)
    assert [row.caller for row in learnt.rows if isinstance(row, WeightRow)] == ["ann"]
    assert own.due(POLICY, at_ms=6).rows == []


def test_nothing_decays_where_drift_is_not_watched() -> None:
    own = learner()
    teach(own, 200)
    while not own.learn_one(lesson(reward=0.0), POLICY).is_alarm:
        pass
    before = own.evidence_of(AGENT, "billing")
    for _ in range(100):
        own.routed("default")
    own.due(UNCAPPED, at_ms=5)

    assert own.evidence_of(AGENT, "billing") == before


def test_evidence_on_others_does_not_decay() -> None:
    own = learner()
    teach(own, 20, agent=OTHER)
    for _ in range(500):
        own.routed("default")

    assert own.due(POLICY, at_ms=1).rows == []
    assert own.evidence_of(OTHER, "billing") == (20.0, 20.0)


Step = tuple[int, float, int, float]
STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 1), st.integers(0, 2), st.floats(0, 1)), min_size=1, max_size=25
)


def lesson_of(step: Step) -> Lesson:
    place, reward, caller, confidence = step
    reading = (("billing", 0.5 + confidence / 2), ("refund", 0.5 - confidence / 2))
    agent = (AGENT, OTHER, NEWER, AGENT)[place]
    return lesson(agent, reward, f"c{caller}", intents=reading, features=(0.9, 0.8, 1 - confidence / 2, 1.0))


@settings(max_examples=60, deadline=None)
@given(STEPS, STEPS, st.randoms(use_true_random=False))
def test_outcomes_are_undone_exactly_in_any_order(kept: list[Step], undone: list[Step], random: Any) -> None:
    own, only = learner(AGENT, OTHER, NEWER), learner(AGENT, OTHER, NEWER)
    for step in kept:
        only.learn_one(lesson_of(step), UNCAPPED)
    contributions = []
    for step, is_kept in random.sample([(s, True) for s in kept] + [(s, False) for s in undone], len(kept + undone)):
        learnt = own.learn_one(lesson_of(step), UNCAPPED)
        if not is_kept:
            # a restart lies between: it went through JSON
            contributions.append(json.loads(json.dumps(learnt.contribution)))
    random.shuffle(contributions)
    for contribution in contributions:
        own.unlearn_one(contribution, UNCAPPED, at_ms=1)

    assert weights_of(own) == weights_of(only)
    assert own.posterior([AGENT, OTHER, NEWER], BILLING, UNCAPPED) == only.posterior(
        [AGENT, OTHER, NEWER], BILLING, UNCAPPED
    )


def test_undoing_after_the_evidence_shrank_leaves_nothing_negative() -> None:
    own = learner()
    contributions = [own.learn_one(lesson(), POLICY).contribution for _ in range(200)]
    while not own.learn_one(lesson(reward=0.0), POLICY).is_alarm:
        pass
    for contribution in contributions:
        assert contribution is not None
        own.unlearn_one(contribution, POLICY, at_ms=1)

    assert own.evidence_of(AGENT, "billing") == (0.0, 0.0)
    assert weights_of(own) == []
    assert 0.3 < mean(own) < 0.7


def test_differences_add_up_to_the_state() -> None:
    own = learner(AGENT, NEWER)
    sums: dict[tuple[str, ...], tuple[int, int]] = {}
    states: dict[tuple[str, ...], LearnerRow] = {}
    n_alarms = 0
    for nth in range(600):
        own.routed("default")
        made = lesson(
            (AGENT, NEWER)[nth % 2],
            float(nth % 5 > 0) if nth < 300 else 0.0,
            f"c{nth % 4}",
            features=(0.9, 0.5, 1.0, 1.0),
            cost_usd=0.01,
            at_ms=nth,
        )
        learnt = own.learn_one(made, POLICY)
        n_alarms += learnt.is_alarm
        for row in [*learnt.rows, *(own.due(POLICY, nth).rows if nth % 100 == 0 else [])]:
            if isinstance(row, WeightRow):
                n, s = sums.get(row[:5], (0, 0))
                sums[row[:5]] = (n + row.n, s + row.s)
            else:
                states[row[:3]] = row

    assert n_alarms >= 2
    assert {row[:5]: row[5:] for row in weights_of(own)} == {key: each for key, each in sums.items() if any(each)}
    assert {row[:3]: row[:4] for row in own.rows(0) if isinstance(row, LearnerRow)} == {
        key: row[:4] for key, row in states.items()
    }


@pytest.mark.parametrize("wrong", [0.0, 1e6])
@pytest.mark.parametrize("caller", ["ann", "eve"])
@pytest.mark.parametrize("n", [3, 60])
def test_no_single_cost_moves_a_choice(n: int, caller: str, wrong: float) -> None:
    own = learner()
    own.declare({AGENT: {"billing": 0.9}, OTHER: {"billing": 0.8}})
    for agent, n_good in ((AGENT, 0.9), (OTHER, 0.8)):
        for nth in range(n):
            own.learn_one(lesson(agent, float(nth < n * n_good), cost_usd=0.01), POLICY)

    def utilities() -> list[float]:
        costs = [own.cost_of(agent) or 0.0 for agent in (AGENT, OTHER)]
        qualities = [mean(own, agent) for agent in (AGENT, OTHER)]
        # of the formula, with the balanced weight of cost
        return [quality - 0.1 * cost / max(costs) for quality, cost in zip(qualities, costs, strict=True)]

    before = utilities()
    own.learn_one(lesson(caller=caller, cost_usd=wrong), POLICY)
    own.learn_one(lesson(OTHER, caller=caller, reward=0.8, cost_usd=0.01), POLICY)

    assert before[0] > before[1]
    assert utilities()[0] > utilities()[1]


def test_one_callers_costs_count_no_more_than_its_evidence() -> None:
    own = learner()
    for nth in range(600):
        own.learn_one(lesson(caller=f"c{nth % 12}", cost_usd=0.01), POLICY)
    teach(own, 1000, caller="eve", cost_usd=1e6)

    # its part is a tenth, and counts as four times what the others tell
    assert own.cost_of(AGENT) == pytest.approx(0.01 * 1.3, rel=0.001)


def test_amending_one_decision_many_times_demotes_nobody() -> None:
    own = learner()
    teach(own, 100, cost_usd=0.01)
    cost_usd, contribution = own.cost_of(AGENT), own.learn_one(lesson(), POLICY).contribution
    state = own.rows(0)[-1].body  # type: ignore[union-attr]
    for _ in range(60):
        assert contribution is not None
        own.unlearn_one(contribution, POLICY, at_ms=1)
        learnt = own.learn_one(lesson(reward=0.0, cost_usd=5.0, is_amended=True), POLICY)
        contribution = learnt.contribution
        assert not learnt.is_alarm

    assert not own.is_demoted(AGENT)
    assert own.cost_of(AGENT) == cost_usd
    assert own.rows(0)[-1].body == state  # type: ignore[union-attr]
    # it is evidence in place of the one that it replaces
    assert own.evidence_of(AGENT, "billing") == (101.0, 100.0)


def test_a_contribution_names_the_version_that_it_made() -> None:
    own = learner()
    teach(own, 4)
    contribution = own.learn_one(lesson(), POLICY).contribution

    assert contribution is not None
    assert contribution["version"] == own.version == 5


def test_agents_are_known_by_their_cards_or_by_evidence() -> None:
    own = learner(AGENT)
    assert own.knows(AGENT)
    assert not own.knows(OTHER)
    assert not own.knows(NEWER)
    own.declare({OTHER: {"billing": 0.5}})
    assert own.knows(AGENT)
    assert own.knows(OTHER)
    teach(own, 1)
    again = Learner()
    again.load(weights_of(own), [])
    assert again.knows(AGENT)
    assert not again.knows(OTHER)


def test_the_version_stays_where_nothing_is_left_to_decay() -> None:
    own = learner(AGENT, NEWER)
    teach(own, 200, agent=NEWER)
    while not own.learn_one(lesson(NEWER, 0.0), POLICY).is_alarm:
        pass
    n_changes = 0
    for _ in range(500):
        version = own.version
        for _ in range(100):
            own.routed("default")
        rows = own.due(POLICY, at_ms=5).rows
        assert own.version == version + bool(rows)
        n_changes += bool(rows)

    # 20 outcomes are 2e7 parts: less than one after at most ln(2e7) / .001 requests
    assert 140 < n_changes < 169
    assert own.due(POLICY, at_ms=6).rows == []
    # and what comes later does not make up for it
    own.learn_one(lesson(NEWER), POLICY)
    assert own.evidence_of(NEWER, "billing") == (1.0, 1.0)

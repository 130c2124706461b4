"""One caller's false outcomes against what many others have told."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from feedback.bandit import draw
from feedback.learner import Learner
from feedback.lessons import Lesson
from models.card import AgentKey
from models.events import EVIDENCE_UNIT, LearnerRow, WeightRow
from models.learning_policy import LearningMode, LearningPolicy

INTENTS = ("billing", "refund", "status")
AGENTS: tuple[AgentKey, ...] = tuple(("default", name, "1.0.0") for name in ("lead", "second", "third", "last"))
SUCCESS = np.array([0.85, 0.65, 0.55, 0.45])
DECLARED = {agent: dict.fromkeys(INTENTS, 0.6) for agent in AGENTS}
N_CALLERS = 12
N_WARM = 1500
N_FALSE = 1000


def means(learner: Learner, policy: LearningPolicy, caller: str = "") -> NDArray[np.float64]:
    """float64 (intents, agents)."""
    betas = [learner.posterior(AGENTS, [(intent, 1.0)], policy, caller) for intent in INTENTS]
    return np.array([np.array(alpha) / (np.array(alpha) + np.array(beta)) for alpha, beta in betas])


def lesson(agent: int, intent: str, reward: float, caller: str) -> Lesson:
    return Lesson(AGENTS[agent], ((intent, 1.0),), reward, caller, None, None, 0)


@cache
def honest_rows(seed: int) -> list[WeightRow | LearnerRow]:
    """What is learned of 4,800 outcomes that say how it is."""
    learner, policy, rng = Learner(), LearningPolicy(), np.random.default_rng(seed)
    learner.declare(DECLARED)
    for _ in range(4800):
        agent, intent = int(rng.integers(4)), INTENTS[rng.integers(3)]
        success = float(rng.random() < SUCCESS[agent])
        learner.learn_one(lesson(agent, intent, success, f"c{rng.integers(N_CALLERS)}"), policy)
    return learner.rows(at_ms=0)


def taught(seed: int) -> Learner:
    learner, rows = Learner(), honest_rows(seed)
    learner.load([row for row in rows if isinstance(row, WeightRow)], [r for r in rows if isinstance(r, LearnerRow)])
    learner.declare(DECLARED)
    return learner


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("reward", "target"), [(0.0, 0), (1.0, 3)])
@pytest.mark.parametrize("n_intents", [1, 3])
def test_false_outcomes_move_no_posterior_mean_by_more_than_the_cap(
    seed: int, reward: float, target: int, n_intents: int
) -> None:
    policy, learner = LearningPolicy(), taught(seed)
    before = means(learner, policy)
    for nth in range(N_FALSE):
        assert not learner.learn_one(lesson(target, INTENTS[nth % n_intents], reward, "eve"), policy).is_alarm

    # without the cap a mean would move by .45 and more
    assert np.abs(means(learner, policy) - before).max() <= policy.caller_share


@pytest.mark.parametrize("n_each", [500, 2000])
@pytest.mark.parametrize(("reward", "target"), [(0.0, 0), (1.0, 3)])
@pytest.mark.parametrize("asked_by", ["c0", "newcomer"])
def test_what_a_fleets_main_caller_told_is_safe_from_another(
    n_each: int, reward: float, target: int, asked_by: str
) -> None:
    policy, learner, rng = LearningPolicy(), Learner(), np.random.default_rng(n_each)
    learner.declare(DECLARED)
    rows = [
        WeightRow(*agent, intent, "c0", n_each * EVIDENCE_UNIT, int(rng.binomial(n_each, success)) * EVIDENCE_UNIT)
        for agent, success in zip(AGENTS, SUCCESS, strict=True)
        for intent in INTENTS
    ]
    learner.load(rows, [])
    before = means(learner, policy, asked_by)
    for nth in range(N_FALSE):
        assert not learner.learn_one(lesson(target, INTENTS[nth % 3], reward, "eve"), policy).is_alarm

    moved = np.abs(means(learner, policy, asked_by) - before).max()
    assert moved <= policy.caller_share
    assert np.abs(means(learner, policy, "eve") - before).max() > max(2 * moved, 0.05)


@pytest.mark.parametrize("n_others", [1, 2, 5])
def test_who_lies_harms_itself_alone_in_a_small_fleet_too(n_others: int) -> None:
    policy, learner, rng = LearningPolicy(), Learner(), np.random.default_rng(n_others)
    learner.declare(DECLARED)
    for nth in range(2400):
        agent, intent = nth % 4, INTENTS[nth // 4 % 3]
        success = float(rng.random() < SUCCESS[agent])
        learner.learn_one(lesson(agent, intent, success, f"c{nth // 12 % n_others}"), policy)
    before = means(learner, policy, "c0")
    for nth in range(N_FALSE):
        assert not learner.learn_one(lesson(0, INTENTS[nth % 3], 0.0, "eve"), policy).is_alarm

    assert np.abs(means(learner, policy, "c0") - before).max() <= policy.caller_share
    assert (means(learner, policy, "eve")[:, 0] < 0.5).all()


@pytest.mark.parametrize("n_callers", [2, 4, 12])
def test_callers_who_tell_the_same_learn_together(n_callers: int) -> None:
    policy, learner, rng = LearningPolicy(), Learner(), np.random.default_rng(n_callers)
    learner.declare(DECLARED)
    for nth in range(2400):
        agent, intent = nth % 4, INTENTS[nth // 4 % 3]
        success = float(rng.random() < SUCCESS[agent])
        learner.learn_one(lesson(agent, intent, success, f"c{nth // 12 % n_callers}"), policy)
    alpha, beta = learner.posterior(AGENTS, [(INTENTS[0], 1.0)], policy)

    # 200 outcomes of each agent's intent, ten of the declaration, less what was told in odd numbers
    assert min(a + b for a, b in zip(alpha, beta, strict=True)) >= 190


def test_callers_with_intents_of_their_own_learn_as_if_they_were_alone() -> None:
    policy, rng = LearningPolicy(), np.random.default_rng(1)
    together, alone = Learner(), {name: Learner() for name in ("ann", "bob", "cid")}
    for learner in (together, *alone.values()):
        learner.declare(DECLARED)
    for nth in range(900):
        place, agent = nth % 3, nth // 3 % 4
        caller = ("ann", "bob", "cid")[place]
        own = lesson(agent, INTENTS[place], float(rng.random() < SUCCESS[agent]), caller)
        together.learn_one(own, policy)
        alone[caller].learn_one(own, policy)

    for caller, learner in alone.items():
        assert np.abs(means(together, policy, caller) - means(learner, policy, caller)).max() < 1e-9


def test_false_outcomes_move_no_exponent_far() -> None:
    policy, rng, base = LearningPolicy(), np.random.default_rng(1), (1.0, 1.0, 1.0, 1.0)
    learner = Learner()
    learner.declare(DECLARED)
    for _ in range(4800):
        agent, features = int(rng.integers(4)), (float(rng.uniform(0.5, 1)), float(rng.uniform(0.5, 1)), 1.0, 1.0)
        success = float(rng.random() < features[0] * features[1])
        honest = lesson(agent, INTENTS[rng.integers(3)], success, f"c{rng.integers(N_CALLERS)}")
        learner.learn_one(honest._replace(features=features), policy)
    before = np.array(learner.exponents("default", base))
    for nth in range(N_FALSE):
        false = lesson(0, INTENTS[nth % 3], 0.0, "eve")._replace(features=(0.5, 0.9, 1.0, 1.0))
        learner.learn_one(false, policy)

    assert np.abs(np.array(learner.exponents("default", base)) - before).max() <= 0.2


@cache
def shares(seed: int, mode: LearningMode, attack: tuple[int, float] | None) -> NDArray[np.float64]:
    """Each agent's share of the others' decisions while one caller posts a false outcome beside each of them."""
    policy, rng = LearningPolicy(mode=mode), np.random.default_rng(seed)
    learner = Learner()
    learner.declare(DECLARED)
    counts = np.zeros(len(AGENTS))
    for nth in range(N_WARM + N_FALSE):
        intent, caller, chances = INTENTS[rng.integers(3)], f"c{rng.integers(N_CALLERS)}", rng.random(3)
        alpha, beta = learner.posterior(AGENTS, [(intent, 1.0)], policy, caller)
        chosen = 0
        if nth < 500 or chances[0] < policy.floor:
            chosen = int(chances[1] * len(AGENTS))
        elif mode == "explore":
            chosen = int(np.argmax(draw(alpha, beta, policy.temperature, 1, seed * 10_000 + nth)[0]))
        else:
            chosen = int(np.argmax(np.array(alpha) / (np.array(alpha) + np.array(beta))))
        learner.routed("default")
        learner.learn_one(lesson(chosen, intent, float(chances[2] < SUCCESS[chosen]), caller), policy)
        if nth >= N_WARM:
            counts[chosen] += 1
            if attack is not None:
                learner.learn_one(lesson(attack[0], INTENTS[nth % 3], attack[1], "eve"), policy)
    return counts / N_FALSE


@pytest.mark.parametrize("mode", ["exploit", "explore"])
@pytest.mark.parametrize("attack", [(0, 0.0), (1, 1.0), (3, 1.0)])
def test_false_outcomes_move_no_agents_share_by_more_than_a_tenth(
    mode: LearningMode, attack: tuple[int, float]
) -> None:
    for seed in (1, 2):
        honest = shares(seed, mode, None)
        assert honest[0] > 0.9
        assert np.abs(shares(seed, mode, attack) - honest).max() <= 0.1

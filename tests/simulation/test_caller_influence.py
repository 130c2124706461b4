"""One caller's false outcomes against what many others have told."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from feedback.bandit import draw
from feedback.learner import Learner
from feedback.lessons import Lesson
from models.card import AgentKey
from models.learning_policy import LearningMode, LearningPolicy

INTENTS = ("billing", "refund", "status")
AGENTS: tuple[AgentKey, ...] = tuple(("default", name, "1.0.0") for name in ("lead", "second", "third", "last"))
SUCCESS = np.array([0.85, 0.65, 0.55, 0.45])
DECLARED = {agent: dict.fromkeys(INTENTS, 0.6) for agent in AGENTS}
N_CALLERS = 12
N_FALSE = 1000


def means(learner: Learner, policy: LearningPolicy) -> NDArray[np.float64]:
    """float64 (intents, agents)."""
    betas = [learner.posterior(AGENTS, [(intent, 1.0)], policy) for intent in INTENTS]
    return np.array([np.array(alpha) / (np.array(alpha) + np.array(beta)) for alpha, beta in betas])


def lesson(agent: int, intent: str, reward: float, caller: str) -> Lesson:
    return Lesson(AGENTS[agent], ((intent, 1.0),), reward, caller, (0.9, 0.8, 1.0, 1.0), None, 0)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize(("reward", "target"), [(0.0, 0), (1.0, 3)])
@pytest.mark.parametrize("n_intents", [1, 3])
def test_false_outcomes_move_no_posterior_mean_by_more_than_the_cap(
    seed: int, reward: float, target: int, n_intents: int
) -> None:
    policy, rng = LearningPolicy(), np.random.default_rng(seed)
    learner = Learner()
    learner.declare(DECLARED)
    for _ in range(4800):
        agent, intent = int(rng.integers(4)), INTENTS[rng.integers(3)]
        success = float(rng.random() < SUCCESS[agent])
        learner.learn_one(lesson(agent, intent, success, f"c{rng.integers(N_CALLERS)}"), policy)
    before = means(learner, policy)
    for nth in range(N_FALSE):
        assert not learner.learn_one(lesson(target, INTENTS[nth % n_intents], reward, "eve"), policy).is_alarm

    # without the cap a mean would move by .45 and more
    assert np.abs(means(learner, policy) - before).max() <= policy.caller_share


def shares(seed: int, mode: LearningMode, attack: tuple[int, float] | None) -> NDArray[np.float64]:
    """Each agent's share of the others' decisions while one caller posts a false outcome beside each of them."""
    policy, rng = LearningPolicy(mode=mode), np.random.default_rng(seed)
    learner = Learner()
    learner.declare(DECLARED)
    counts = np.zeros(len(AGENTS))
    for nth in range(2000 + N_FALSE):
        intent, caller, chances = INTENTS[rng.integers(3)], f"c{rng.integers(N_CALLERS)}", rng.random(3)
        alpha, beta = learner.posterior(AGENTS, [(intent, 1.0)], policy)
        chosen = int(np.argmax(draw(alpha, beta, policy.temperature, 1, seed * 10_000 + nth)[0]))
        if nth < 500 or chances[0] < policy.floor:
            chosen = int(chances[1] * len(AGENTS))
        elif mode == "exploit":
            chosen = int(np.argmax(np.array(alpha) / (np.array(alpha) + np.array(beta))))
        learner.routed("default")
        learner.learn_one(lesson(chosen, intent, float(chances[2] < SUCCESS[chosen]), caller), policy)
        if nth >= 2000:
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

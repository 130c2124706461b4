"""A world of nine agents and fourteen intents, and a router in it that learns; all of it seeded."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.learner import Learner
from feedback.lessons import Lesson
from models.card import AgentKey
from models.learning_policy import LearningPolicy

Floats = NDArray[np.float64]

INTENTS = (
    "logicgrid",
    "mgsm",
    "arc",
    "commongen",
    "commonsense",
    "gpqa",
    "gsm8k",
    "humaneval",
    "math",
    "mbpp",
    "mmlu",
    "natural_qa",
    "openbook_qa",
    "trivia_qa",
)

SUCCESS = np.array(
    [
        [0.00, 0.01, 0.00, 0.26, 0.12, 0.32, 0.08, 0.01, 0.15],
        [0.10, 0.90, 0.36, 0.81, 0.32, 0.76, 0.86, 0.12, 0.95],
        [0.23, 0.86, 0.02, 0.88, 0.74, 0.68, 0.75, 0.52, 0.71],
        [0.45, 0.60, 0.34, 0.76, 0.49, 0.61, 0.71, 0.27, 0.42],
        [0.24, 0.86, 0.01, 0.80, 0.67, 0.74, 0.73, 0.39, 0.57],
        [0.00, 0.06, 0.00, 0.24, 0.15, 0.19, 0.13, 0.04, 0.08],
        [0.16, 0.82, 0.47, 0.86, 0.43, 0.82, 0.85, 0.56, 0.85],
        [0.21, 0.69, 0.29, 0.61, 0.07, 0.09, 0.55, 0.46, 0.60],
        [0.03, 0.31, 0.03, 0.34, 0.05, 0.19, 0.35, 0.14, 0.57],
        [0.24, 0.69, 0.59, 0.75, 0.06, 0.58, 0.64, 0.57, 0.76],
        [0.00, 0.15, 0.00, 0.87, 0.45, 0.81, 0.70, 0.16, 0.83],
        [0.35, 0.34, 0.45, 0.38, 0.42, 0.41, 0.47, 0.19, 0.47],
        [0.28, 0.82, 0.03, 0.86, 0.69, 0.77, 0.74, 0.45, 0.68],
        [0.17, 0.15, 0.22, 0.19, 0.20, 0.19, 0.19, 0.09, 0.21],
    ]
)
"""float64 (intents, agents): the probability that the agent does it right."""

COSTS = np.array([0.22, 0.22, 1.0, 1.0, 0.22, 0.11, 0.22, 0.22, 1.0])
"""float64 (agents,): of a call, by the dearest one's."""

COST_WEIGHT = 0.1
"""lambda."""

AGENTS: tuple[AgentKey, ...] = tuple(("default", letter, "1.0.0") for letter in "ABCDEFGHI")

EXPLORE = LearningPolicy(mode="explore")


class Run(NamedTuple):
    """What came of a run.

    Attributes:
        intents: int64 (outcomes,): which intent each request had.
        choices: int64 (outcomes,): which agent got it.
        values: float64 (outcomes,): the chosen one's success probability less lambda * its cost: the reward without
            the noise of its outcome.
        alarms: the agents that were demoted, with the outcome at which.
    """

    intents: NDArray[np.int64]
    choices: NDArray[np.int64]
    values: Floats
    alarms: list[tuple[int, int]]

    def worth(self, span: slice) -> float:
        """The mean value over a span, every intent counted alike: how often one came up is no merit."""
        values, intents = self.values[span], self.intents[span]
        return float(np.mean([values[intents == intent].mean() for intent in range(len(INTENTS))]))


def declared(seed: int) -> Floats:
    """float64 (agents,): what each agent claims of itself, its mean success with an error of N(0, .1)."""
    claims = SUCCESS.mean(axis=0) + np.random.default_rng([seed, 1]).normal(0.0, 0.1, len(AGENTS))
    return np.asarray(np.clip(claims, 0.02, 0.98))


def value_of(success: Floats) -> Floats:
    """float64 (intents, agents): the reward less lambda * cost that each choice is worth in the mean."""
    return success - COST_WEIGHT * COSTS


def static(seed: int, success: Floats = SUCCESS) -> float:
    """What the agent with the best claim is worth, who gets everything."""
    return float(value_of(success)[:, np.argmax(declared(seed) - COST_WEIGHT * COSTS)].mean())


def clairvoyant(success: Floats = SUCCESS) -> float:
    """What the best agent per intent is worth."""
    return float(value_of(success).max(axis=1).mean())


def fleet(claims: Floats) -> dict[AgentKey, dict[str, float]]:
    """One declared figure per agent, for all intents."""
    return {agent: dict.fromkeys(INTENTS, float(claim)) for agent, claim in zip(AGENTS, claims, strict=True)}


def run(
    seed: int,
    n_outcomes: int,
    success_at: Callable[[int], Floats] = lambda _: SUCCESS,
    policy: LearningPolicy = EXPLORE,
    learner: Learner | None = None,
    n_callers: int = 1,
) -> Run:
    """Routes requests of uniform intents by one draw from the posteriors, and learns from every outcome.

    Args:
        seed: of requests, draws and outcomes.
        n_outcomes: how many requests.
        success_at: the table that holds at the nth request, as SUCCESS.
        policy: mode `explore` draws with the policy's floor, `exploit` takes posterior means.
        learner: with what it has learned already; None begins with one that knows the claims only.
        n_callers: in whose names outcomes come, in turn.
    """
    if learner is None:
        learner = Learner()
        learner.declare(fleet(declared(seed)))
    rng = np.random.default_rng([seed, 2])
    intents, chance = rng.integers(len(INTENTS), size=n_outcomes), rng.random((3, n_outcomes))
    choices, values, alarms = np.zeros(n_outcomes, dtype=np.int64), np.zeros(n_outcomes), []
    price, draws, sharpness = COST_WEIGHT * COSTS, np.random.default_rng([seed, 3]), policy.temperature**-2
    for nth, intent in enumerate(intents.tolist()):
        asked = ((INTENTS[intent], 1.0),)
        alpha, beta = learner.posterior(AGENTS, asked, policy)
        if policy.mode == "explore":
            # as one draw of `feedback.bandit.draw`, without a generator of its own
            chosen = int(np.argmax(draws.beta(np.array(alpha) * sharpness, np.array(beta) * sharpness) - price))
            if chance[0, nth] < policy.floor:
                chosen = int(chance[1, nth] * len(AGENTS))
        else:
            chosen = int(np.argmax(np.array(alpha) / (np.array(alpha) + np.array(beta)) - price))
        success = success_at(nth)
        reward = float(chance[2, nth] < success[intent, chosen])
        learner.routed("default")
        learnt = learner.learn_one(
            Lesson(AGENTS[chosen], asked, reward, f"c{nth % n_callers}", None, None, nth), policy
        )
        if learnt.is_alarm:
            alarms.append((chosen, nth))
        choices[nth], values[nth] = chosen, success[intent, chosen] - price[chosen]
    return Run(intents, choices, values, alarms)

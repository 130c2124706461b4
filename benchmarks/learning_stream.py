"""A stream of requests with known outcomes, and the product's learner choosing agents on it.

Each step is what the service does: posterior of the reading's intents, utility = merit - lambda * cost share, choice,
outcome, lesson. Merit is confidence^w1 * quality^w2 with the exponents that the learner has learned so far; health and
load are 1. In mode `explore` one draw of each agent's quality decides, which has the same distribution as one of 256
picked by the seed; with probability `floor` it is any agent. Lessons carry no cost: cost shares are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.bandit import draw, propensities
from feedback.learner import Learner
from feedback.lessons import BASE, Lesson
from models.card import AgentKey
from models.learning_policy import LearningPolicy

LAMBDA = 0.1
NAMESPACE = "default"
_LEAST = 0.01
"""As the formula clamps its features."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Intents = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Requests in order.

    Attributes:
        agents: in the order of the columns.
        names: of all intents.
        intents: of each request, as it was read: (intent, confidence), the one routed by first.
        rewards: float64, shape (n, n_agents): what each agent would make of it, 0..1.
        expected: float64, shape (n, n_agents): the mean of that where it is known, else the same.
        costs: float64, shape (n, n_agents): of a call, in the unit of `shares`.
        shares: float64, shape (n_agents,): mean cost by that of the dearest agent, as the policy weighs it.
    """

    agents: tuple[str, ...]
    names: tuple[str, ...]
    intents: Sequence[Intents]
    rewards: Floats
    expected: Floats
    costs: Floats
    shares: Floats

    def __len__(self) -> int:
        return len(self.intents)

    def utilities(self, weight: float = LAMBDA) -> Floats:
        """Expected, less what cost counts for; shape (n, n_agents)."""
        return self.expected - weight * self.shares


class Played(NamedTuple):
    """What a learner did on a stream.

    Attributes:
        choices: int64, shape (n,): place of the agent that was called.
        merits: float64, shape (n,): its merit by the mean of its posterior, as it was then.
        propensities: float64, shape (n, n_agents): with which each was to be called, by `n_draws` draws; empty where
            one draw decided.
        alarms: (step, place of the agent) of each alarm of the drift detector.
    """

    choices: Ints
    merits: Floats
    propensities: Floats
    alarms: list[tuple[int, int]]


def keys_of(agents: Sequence[str]) -> tuple[AgentKey, ...]:
    """Of agents in the one namespace of a stream."""
    return tuple((NAMESPACE, agent, "1.0.0") for agent in agents)


def learner_of(stream: Stream, declared: Floats) -> Learner:
    """Knows what is declared and nothing else.

    Args:
        declared: shape (n_agents,): of each agent, the same for all intents.
    """
    learner = Learner()
    keys = keys_of(stream.agents)
    learner.declare(
        {key: dict.fromkeys(stream.names, float(quality)) for key, quality in zip(keys, declared, strict=True)}
    )
    return learner


class _Draws(NamedTuple):
    """What chance gives each step."""

    seeds: Ints
    rows: Floats
    floors: Floats
    evens: Floats

    @classmethod
    def of(cls, n: int, seed: int) -> _Draws:
        draws = np.random.default_rng(seed)
        return cls(draws.integers(2**63, size=n), *draws.random((3, n)))


def play(
    stream: Stream,
    learner: Learner,
    policy: LearningPolicy,
    seed: int,
    *,
    weight: float = LAMBDA,
    n_draws: int = 1,
    n_callers: int = 1,
    beside: Callable[[int], Lesson | None] = lambda step: None,
) -> Played:
    """The learner chooses and learns, one request after the other.

    Args:
        policy: its mode is `explore` or `exploit`.
        seed: of draws and floor.
        weight: lambda.
        n_draws: 256 for propensities as the service records them, of which one draw decides.
        n_callers: in whose names requests come, in turn.
        beside: what else is told after a step; None is nothing.
    """
    keys, toll = keys_of(stream.agents), weight * stream.shares
    draws = _Draws.of(len(stream), seed)
    choices, merits = np.empty(len(stream), dtype=np.int64), np.empty(len(stream))
    logged = np.empty((len(stream) if n_draws > 1 else 0, len(keys)))
    alarms = []
    for step, intents in enumerate(stream.intents):
        caller = f"caller-{step % n_callers}"
        alpha, beta = learner.posterior(keys, intents, policy, caller)
        confidence = max(intents[0][1], _LEAST)
        of = learner.exponents(NAMESPACE, BASE) if policy.exponents else BASE
        certainty = confidence ** of[0]
        if policy.mode == "explore":
            qualities = draw(alpha, beta, policy.temperature, n_draws, int(draws.seeds[step]))
            utilities = certainty * np.maximum(qualities, _LEAST) ** of[1] - toll
            place = int(utilities[int(draws.rows[step] * n_draws)].argmax())
            if n_draws > 1:
                logged[step] = propensities(utilities, policy.floor)
            if draws.floors[step] < policy.floor:
                place = int(draws.evens[step] * len(keys))
        else:
            means = np.array([a / (a + b) for a, b in zip(alpha, beta, strict=True)])
            place = int((certainty * np.maximum(means, _LEAST) ** of[1] - toll).argmax())
        choices[step] = place
        quality = max(alpha[place] / (alpha[place] + beta[place]), _LEAST)
        merits[step] = certainty * quality ** of[1]
        learner.routed(NAMESPACE)
        reward = float(stream.rewards[step, place])
        seen = (confidence, quality, 1.0, 1.0)
        if learner.learn_one(Lesson(keys[place], intents, reward, caller, seen, None, step), policy).is_alarm:
            alarms.append((step, place))
        further = beside(step)
        if further is not None and learner.learn_one(further, policy).is_alarm:
            alarms.append((step, keys.index(further.agent)))
    return Played(choices, merits, logged, alarms)


def taken(values: Floats, choices: Ints) -> Floats:
    """Of each row the value of the choice.

    >>> taken(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0])).tolist()
    [2.0, 3.0]
    """
    found: Floats = values[np.arange(len(choices)), choices]
    return found


def declared_of(means: Floats, seed: int, spread: float = 0.1) -> Floats:
    """What agents claim: their true mean with an error of N(0, 0.1), within 0..1, one figure an agent."""
    found: Floats = np.clip(means + np.random.default_rng([seed, 7]).normal(0, spread, len(means)), 0, 1)
    return found


def trailing(values: Floats, window: int) -> Floats:
    """Means of the last `window` values at each place from the first full window on.

    >>> trailing(np.array([1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [1.5, 2.5, 3.5]
    """
    sums = np.cumsum(np.concatenate([[0.0], values]))
    found: Floats = (sums[window:] - sums[:-window]) / window
    return found


def for_good_from(lead: Floats, window: int) -> int:
    """From which value on no trailing mean of a lead is below 0; the number of values where there is no such.

    >>> for_good_from(np.array([1.0, -3.0, 1.0, 1.0, 1.0]), 1), for_good_from(np.array([-1.0]), 1)
    (2, 1)
    """
    below = np.flatnonzero(trailing(lead, window) < 0)
    # a window that begins at place n holds the values n to n + window - 1
    return 0 if not len(below) else min(len(lead), int(below[-1]) + window)

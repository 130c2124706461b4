"""The table by intent and agent that success heads are compared with: what is known without looking at the request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from feedback.posterior import LEAST
from models.learning_policy import LearningPolicy
from router.retraining.success_rows import SuccessRow

Floats = NDArray[np.float64]

_SHIPPED = LearningPolicy()


class Table:
    """Mean rewards by intent and agent, shrunk both ways as the learner's posterior means are.

    The prior of an agent's intent is the mean of the intent and what the agent is better or worse throughout; it counts
    as ten outcomes (the formula of the learner, `docs/learning.md`, with its priors as shipped and the mean of all
    rewards in place of what cards declare).

    >>> rows = [SuccessRow(agent, "a wish", (("buy", 1.0),), float(agent == "a"), 1.0, "") for agent in "ab" * 50]
    >>> table = Table.fitted(rows, [1.0] * 100)
    >>> [round(table.mean(agent, [("buy", 0.8), ("sell", 0.2)]), 2) for agent in "ab"]
    [0.97, 0.03]
    """

    def __init__(self, means: Floats, agents: dict[str, int], intents: dict[str, int]) -> None:
        self._means = means
        self._agents = agents
        self._intents = intents

    @classmethod
    def fitted(cls, rows: Sequence[SuccessRow], counts: Sequence[float]) -> Self:
        """To these rows.

        Args:
            rows: of any agents.
            counts: for how much of an outcome each counts.
        """
        agents = {name: place for place, name in enumerate(sorted({row.agent for row in rows}))}
        intents = {name: place for place, name in enumerate(sorted({name for row in rows for name, _ in row.intents}))}
        # the last intent and the last agent are those that nothing is known of
        n, s = (np.zeros((len(intents) + 1, len(agents) + 1)) for _ in range(2))
        for row, count in zip(rows, counts, strict=True):
            for name, share in _shares(row.intents):
                n[intents[name], agents[row.agent]] += share * count
                s[intents[name], agents[row.agent]] += share * count * row.reward
        overall = (s.sum() + 1) / (n.sum() + 2)
        level = (_SHIPPED.intent_prior * overall + s.sum(axis=1)) / (_SHIPPED.intent_prior + n.sum(axis=1))
        better = (s - n * level[:, None]).sum(axis=0) / (_SHIPPED.agent_prior + n.sum(axis=0))
        prior = np.clip(level[:, None] + better, LEAST, 1 - LEAST)
        return cls((_SHIPPED.prior * prior + s) / (_SHIPPED.prior + n), agents, intents)

    def mean(self, agent: str, intents: Sequence[tuple[str, float]]) -> float:
        """Of an agent on a reading, 0..1: that of its intents by their confidences."""
        column = self._agents.get(agent, len(self._agents))
        return float(
            sum(
                share * self._means[self._intents.get(name, len(self._intents)), column]
                for name, share in _shares(intents)
            )
        )


def _shares(intents: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Confidences that sum up to 1."""
    total = sum(share for _, share in intents)
    if total <= 0:
        return [(intents[0][0], 1.0)]
    return [(name, share / total) for name, share in intents]

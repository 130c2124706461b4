"""Plans: where the figures of agents that are asked about together lie, and how those of several intents are mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.card import AgentKey

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Posterior(NamedTuple):
    """Beta distributions of quality, in the order in which agents were asked for.

    Attributes:
        alpha: without the temperature: draws take alpha / temperature^2; so `beta`.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]


class Layout(NamedTuple):
    """Where the figures of a reading's intents lie for the agents asked for; arrays of shape (intents, agents).

    Attributes:
        levels: the place of each intent, of shape (intents, 1).
        cells: past the end where an agent does not serve an intent.
        inter: what was declared beyond agent and intent.
        served: 1.0 where an agent serves an intent, else 0.0.
        idle: which agents serve none of them, of shape (agents,); None where there is no such agent.
    """

    levels: Places
    cells: Places
    inter: Floats
    served: Floats
    idle: NDArray[np.bool_] | None


class Plan:
    """Where the answers to questions about the same agents lie."""

    __slots__ = ("agents", "answer", "cells", "cols", "known", "layouts", "starts")

    def __init__(self, known: tuple[AgentKey, ...]) -> None:
        self.known = known
        self.agents: Places  # of the known ones
        self.cells: Places  # all their cells, one agent after the other
        self.cols: Places  # the intent of each
        self.starts: Places  # where each agent's cells begin
        self.layouts: dict[tuple[str, ...], Layout] = {}
        self.answer: tuple[object, Posterior] | None = None


def mixed(alphas: Floats, betas: Floats, served: Floats, confidences: Sequence[float]) -> tuple[Floats, Floats]:
    """One Beta for each agent, with mean and variance of the weighted mean of those of the intents that it serves."""
    # 1e-9: where no intent that it serves has any confidence, all of them count alike
    given = served * np.array([[max(confidence, 1e-9)] for confidence in confidences])
    weights = given / np.maximum(np.add.reduce(given), 1e-12)
    totals = alphas + betas
    means = alphas / totals
    mean = np.add.reduce(weights * means)
    variance = np.add.reduce(weights * weights * means * (1 - means) / (totals + 1))
    # a Beta's variance lies below mean * (1 - mean)
    total = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1.0)
    return mean * total, (1 - mean) * total

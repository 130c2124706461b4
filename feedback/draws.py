"""Draws: from posteriors to propensities, by Thompson sampling with a floor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def draw(alpha: Sequence[float], beta: Sequence[float], temperature: float, n_draws: int, seed: int) -> Floats:
    """Draws of each agent's quality, float64, shape (n_draws, n_agents).

    Beta(alpha / T^2, beta / T^2): the standard deviation is about T times that of the posterior (Chapelle and Li 2011,
    section 3).

    Args:
        alpha: of each agent's posterior, > 0; so is `beta`.
        temperature: T, > 0.
        n_draws: how many.
        seed: of the decision, 0 <= seed.
    """
    sharpness = temperature**-2
    generator = np.random.Generator(np.random.PCG64(seed))
    return generator.beta(np.multiply(alpha, sharpness), np.multiply(beta, sharpness), (n_draws, len(alpha)))


def propensities(utilities: Floats, floor: float) -> Floats:
    """pi = (1 - floor) * P(argmax) + floor / n_agents, float64, shape (n_agents,).

    Args:
        utilities: of each draw, float64, shape (n_draws, n_agents).
        floor: share that is spread evenly, 0..1.

    >>> propensities(np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.6], [0.1, 0.3]]), 0.02)
    array([0.745, 0.255])
    """
    n_draws, n_agents = utilities.shape
    wins = np.bincount(utilities.argmax(axis=1), minlength=n_agents)
    return (1 - floor) * wins / n_draws + floor / n_agents

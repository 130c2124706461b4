"""Draws from posteriors, and the probability with which each agent comes out best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def draw(
    alpha: Sequence[float], beta: Sequence[float], temperature: float, n_draws: int, seed: int
) -> NDArray[np.float64]:
    """Draws of every agent's quality from Beta(alpha / temperature^2, beta / temperature^2).

    Args:
        alpha: of each agent's posterior, > 0; so is `beta`.
        temperature: > 0; 1 draws from the posterior as it is, less draws nearer to its mean.
        n_draws: how many for each agent.
        seed: of the generator (PCG64); only its low 64 bits count.

    Returns:
        float64 (n_draws, n_agents), 0..1; the same arguments give the same draws.

    >>> draw((4.0, 1.0), (1.0, 4.0), 0.5, 2, seed=1).round(3).tolist()
    [[0.797, 0.294], [0.822, 0.149]]
    """
    generator = np.random.Generator(np.random.PCG64(seed & 0xFFFFFFFFFFFFFFFF))
    sharpness = 1.0 / (temperature * temperature)
    a = np.asarray(alpha, dtype=np.float64) * sharpness
    b = np.asarray(beta, dtype=np.float64) * sharpness
    return generator.beta(a, b, size=(n_draws, len(a)))


def propensities(utilities: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """The probability with which each agent is chosen: (1 - floor) * P(it is the argmax) + floor / n_agents.

    Args:
        utilities: float64 (n_draws, n_agents), both at least 1; of equals the first is best.
        floor: share that is spread evenly, 0..1.

    Returns:
        float64 (n_agents,), adds up to 1.

    >>> propensities(np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.7, 0.3]]), 0.02).tolist()
    [0.745, 0.255]
    """
    n_draws, n_agents = utilities.shape
    wins = np.bincount(utilities.argmax(axis=1), minlength=n_agents)
    shares: NDArray[np.float64] = wins * ((1.0 - floor) / n_draws) + floor / n_agents
    return shares

"""Exponents of the merit, learned from which outcomes followed which features."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

FEATURES = ("similarity", "quality", "health", "load")
"""The features that have an exponent; cost has none."""

BOUNDS = (0.25, 4.0)
"""A learned exponent stays within these; one that the policy sets outside is the operator's, and not learned."""

LEAST_FEATURE = 0.01
"""Features count within [LEAST_FEATURE, 1]."""

RATE = 4.0
"""How far the exponents go for the gradients seen: the larger, the faster and the less steady."""

PULL = 10.0
"""Strength of the pull towards the policy's exponents (L2)."""

GRADIENT_UNIT = 1_000_000_000
"""Sums of gradients are whole numbers, in parts of this, so that they add up the same in any order."""

Vector = tuple[float, float, float, float]


class Exponents:
    """Online model of success, P = prod_k f_k^w_k, by regularized dual averaging with a step per exponent.

    The loss is (P - reward)^2 / 2, whose gradient (P - reward) * P * log f_k is bounded where that of the likelihood
    grows without end as P nears 1. With G and H the sums of gradients and of their squares, the exponents are
    w = base - G / (PULL + sqrt(H) / RATE), within BOUNDS (Xiao 2010, "Dual averaging methods for regularized stochastic
    learning", eq. 8; the steps of Duchi, Hazan and Singer 2011). Two of them merge by adding G and H. A feature that
    tells nothing (always 1) keeps its exponent.

    >>> exponents = Exponents()
    >>> exponents.value((1.0, 1.0, 1.0, 1.0))
    (1.0, 1.0, 1.0, 1.0)
    >>> for _ in range(200):
    ...     _ = exponents.learn_one((1.0, 0.5, 1.0, 1.0), 0.9)
    >>> [round(w, 2) for w in exponents.value((1.0, 1.0, 1.0, 1.0))]
    [1.0, 0.25, 1.0, 1.0]
    """

    def __init__(self) -> None:
        self.n = 0
        self._g = [0, 0, 0, 0]
        self._h = [0, 0, 0, 0]

    def value(self, base: Sequence[float]) -> Vector:
        """The exponents in the order of FEATURES, as learned from those of the policy (`base`)."""
        least, most = BOUNDS
        learned = []
        for w, g, h in zip(base, self._g, self._h, strict=True):
            if g and least <= w <= most:
                w -= g / GRADIENT_UNIT / (PULL + sqrt(h / GRADIENT_UNIT) / RATE)
                w = min(max(w, least), most)
            learned.append(float(w))
        return (learned[0], learned[1], learned[2], learned[3])

    def learn_one(
        self,
        features: Sequence[float],
        reward: float,
        base: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
        weight: float = 1.0,
    ) -> list[int]:
        """Takes an outcome.

        Args:
            features: those of the agent that was chosen, 0..1, in the order of FEATURES.
            reward: 0..1.
            base: the policy's exponents.
            weight: how much of the outcome counts, 0..1.

        Returns:
            What was added to the sums, to be taken back by `add(..., sign=-1)`: the parts of G, then those of H.
        """
        logs = [log(min(max(feature, LEAST_FEATURE), 1.0)) for feature in features]
        success = 1.0
        for feature, w in zip(features, self.value(base), strict=True):
            success *= min(max(feature, LEAST_FEATURE), 1.0) ** w
        error = weight * (success - reward) * success
        gradients = [error * each for each in logs]
        added = [round(g * GRADIENT_UNIT) for g in gradients] + [round(g * g * GRADIENT_UNIT) for g in gradients]
        self.add(added)
        return added

    def add(self, sums: Sequence[int], sign: int = 1, n: int = 1) -> None:
        """Adds sums of gradients and of their squares of `n` outcomes, or with sign -1 takes them back."""
        self.n = max(self.n + sign * n, 0)
        for place in range(4):
            self._g[place] += sign * sums[place]
            self._h[place] = max(self._h[place] + sign * sums[4 + place], 0)

    def sums(self) -> list[int]:
        """The parts of G, then those of H."""
        return self._g + self._h

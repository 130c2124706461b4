"""Confidence: how sure a reading is, and from which confidence on a stated risk is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Confidence:
    """Logistic regression from features of a reading to the probability that its intent is meant (Platt 1999).

    Attributes:
        weights: one a feature.
        bias: the constant.
    """

    weights: tuple[float, ...]
    bias: float

    def of(self, features: Sequence[float]) -> float:
        """The probability, 0..1.

        >>> Confidence((2.0,), -1.0).of([0.5])
        0.5
        """
        score = self.bias + sum(weight * feature for weight, feature in zip(self.weights, features, strict=True))
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


@dataclass(frozen=True, slots=True)
class RiskTable:
    """Held-out readings, from which the threshold for a stated risk is read off (conformal risk control).

    Attributes:
        confidences: float64, shape (n,), descending.
        n_wrong: float64, shape (n,): how many of the first i + 1 were wrong (out-of-scope texts always are).
        n_above: float64, shape (n,): how many these are. Each text counts as its weight says; all together count n.
    """

    confidences: NDArray[np.float64]
    n_wrong: NDArray[np.float64]
    n_above: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        confidences: NDArray[np.float64],
        is_wrong: NDArray[np.bool_],
        weights: NDArray[np.float64] | None = None,
    ) -> RiskTable:
        """From one confidence and one verdict a held-out text.

        Args:
            confidences: float64, shape (n,).
            is_wrong: bool, shape (n,).
            weights: float64, shape (n,), not negative: how much each counts, where some kind of text is held out more
                often than it comes; None counts each once.
        """
        order = np.argsort(-confidences, kind="stable")
        shares = np.ones(len(order)) if weights is None else weights[order] * (len(order) / weights.sum())
        return cls(confidences[order], np.cumsum(is_wrong[order] * shares), np.cumsum(shares))

    @classmethod
    def empty(cls) -> RiskTable:
        """Of no held-out texts."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    def threshold(self, risk: float) -> float:
        """The least confidence to act on so that wrong answers are at most `risk` of all requests.

        (wrong answers + 1) / (n + 1) <= risk bounds the expected risk on the next request (Angelopoulos et al. 2022,
        "Conformal Risk Control", theorem 1, for losses of 0 and 1). 1.01, which nothing reaches, where the held-out
        texts are too few to show it.
        """
        n = len(self.confidences)
        allowed = np.flatnonzero(self.n_wrong + 1 <= risk * (n + 1))
        # A longer prefix has at least as many wrong, so the last one allowed ends the longest.
        if not len(allowed):
            return 1.01
        last = int(allowed[-1])
        if last + 1 == n:
            return 0.0
        return float((self.confidences[last] + self.confidences[last + 1]) / 2)

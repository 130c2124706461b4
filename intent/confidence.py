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
        n_wrong: int64, shape (n,): how many of the first i + 1 were wrong (out-of-scope texts always are).
    """

    confidences: NDArray[np.float64]
    n_wrong: NDArray[np.int64]

    @classmethod
    def of(cls, confidences: NDArray[np.float64], is_wrong: NDArray[np.bool_]) -> RiskTable:
        """From one confidence and one verdict a held-out text."""
        order = np.argsort(-confidences, kind="stable")
        return cls(confidences[order], np.cumsum(is_wrong[order]).astype(np.int64))

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

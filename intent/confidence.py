"""Confidence: how sure a reading is, and from which confidence on a stated risk is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

DOUBT = 0.1
"""Probability, over the draw of the held-out texts, that a stated risk is not kept."""

_ROUNDING = 1e-9


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
    """Held-out readings, from which the threshold for a stated risk is read off.

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

        An upper bound of the risk at level 1 - DOUBT from the exact binomial tail (Bates et al. 2021,
        "Distribution-free, risk-controlling prediction sets", section 3.1, for losses of 0 and 1): in nine draws of
        held-out texts out of ten the stated risk is kept, where bounding it in expectation would keep it in five.
        1.01, which nothing reaches, where the held-out texts are too few to show it.
        """
        n = len(self.confidences)
        # A longer prefix has at least as many wrong, so the last one allowed ends the longest.
        last = int(np.searchsorted(self.n_wrong, most_wrong(n, risk) + _ROUNDING, side="right")) - 1
        if last < 0:
            return 1.01
        if last + 1 == n:
            return 0.0
        return float((self.confidences[last] + self.confidences[last + 1]) / 2)


@lru_cache(maxsize=256)
def most_wrong(n: int, risk: float) -> int:
    """Of n texts, the most that may be wrong so that a true share above `risk` shows less with probability DOUBT only.

    -1 where even none wrong would not show it.

    >>> most_wrong(1000, 0.02), most_wrong(100, 0.01)
    (13, -1)
    """
    if not n or not 0 < risk < 1:
        return n if risk >= 1 else -1
    tail = 0.0
    for k in range(n + 1):
        choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        tail += math.exp(choices + k * math.log(risk) + (n - k) * math.log1p(-risk))
        if tail > DOUBT:
            return k - 1
    return n

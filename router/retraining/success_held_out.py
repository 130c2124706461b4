"""HeldOut: outcomes that success heads were not fitted on, what they say of the heads, and how far to trust these."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.success_heads import HALF_TRUST
from models.exam_report import Change

HALF_TRUSTS = (HALF_TRUST, 300, 100, 30)
"""Outcomes from which on heads may count for half; the first one stands unless another is better."""

LEAST_CHOOSERS = 30
"""Distinct texts without which nothing is chosen: a standard error of fewer is too small by chance too often."""

_N_BINS = 15
_LEAST_P = 1e-6

Floats = NDArray[np.float64]


class HeldOut(NamedTuple):
    """Rows in their order; arrays of shape (n,).

    Attributes:
        table: float64, what the table foresees, 0..1.
        heads: float64, what the heads foresee, 0..1.
        n_outcomes: int64, how many the row's head was fitted on.
        rewards: float64, what came, 0..1.
        weights: float64, what each row counts, over 0.
        texts: int64, number of each row's text.
        is_second: bool, whether the text is of the second half; each half chooses for the other.
    """

    table: Floats
    heads: Floats
    n_outcomes: NDArray[np.int64]
    rewards: Floats
    weights: Floats
    texts: NDArray[np.int64]
    is_second: NDArray[np.bool_]

    def of(self, chosen: NDArray[np.bool_]) -> HeldOut:
        """Those of the rows that are true in `chosen`, bool, shape (n,)."""
        columns: tuple[Any, ...] = self
        return HeldOut(*(each[chosen] for each in columns))

    def blended(self, half_trust: int) -> Floats:
        """What heads and table foresee together, w = n / (n + half_trust)."""
        share = self.n_outcomes / (self.n_outcomes + half_trust)
        found: Floats = share * self.heads + (1 - share) * self.table
        return found

    def half_trust(self) -> int:
        """That of `HALF_TRUSTS` with the least log loss on these rows.

        The first one stands where none is better by more than a standard error of the paired difference.
        """
        if len(np.unique(self.texts)) < LEAST_CHOOSERS:
            return HALF_TRUST
        written = self.blended(HALF_TRUST)
        found = {each: self._gain(written, self.blended(each)) for each in HALF_TRUSTS}
        best = max(found, key=lambda each: found[each].gain)
        return best if found[best].gain > found[best].error else HALF_TRUST

    def foreseen(self) -> Floats:
        """What heads and table foresee together, each half by the half-trust that the other half chose.

        So what they are worth is not measured by rows that they were chosen by (cross-fitting; Stone 1974).
        """
        found = np.empty(len(self.table))
        for asked in (self.is_second, ~self.is_second):
            found[asked] = self.of(asked).blended(self.of(~asked).half_trust())
        return found

    def figures(self) -> dict[str, Any]:
        """Of the exam, with what follows from them."""
        foreseen = self.foreseen()
        gain, error = self._gain(self.table, foreseen)
        beside = f"the table's by intent and agent; a standard error is {error:.4f}"
        return {
            "is_kept": gain > error,
            "why": f"their log loss is {abs(gain):.4f} {'lower' if gain > 0 else 'higher'} than {beside}",
            "n_held_out": len(np.unique(self.texts)),
            "log_loss": Change(before=self._log_loss(self.table), after=self._log_loss(foreseen)),
            "gain": gain,
            "standard_error": error,
            "ece": Change(before=self._ece(self.table), after=self._ece(foreseen)),
        }

    def _gain(self, before: Floats, after: Floats) -> _Gain:
        shares = self.weights / self.weights.sum()
        difference = _losses(before, self.rewards) - _losses(after, self.rewards)
        gain = float(shares @ difference)
        # rows of one text are no witnesses of each other
        by_text = np.bincount(self.texts, shares * (difference - gain))
        return _Gain(gain, float(np.sqrt(by_text @ by_text)))

    def _log_loss(self, foreseen: Floats) -> float:
        return float(self.weights @ _losses(foreseen, self.rewards) / self.weights.sum())

    def _ece(self, foreseen: Floats) -> float:
        """Expected calibration error over 15 equal bins (Guo et al. 2017, equation 5), rows weighed."""
        bins = np.minimum((foreseen * _N_BINS).astype(np.int64), _N_BINS - 1)
        shares = self.weights / self.weights.sum()
        return float(np.abs(np.bincount(bins, shares * (foreseen - self.rewards))).sum())


class _Gain(NamedTuple):
    """By how much a log loss is lower, and the standard error of it, texts being drawn anew."""

    gain: float
    error: float


def _losses(foreseen: Floats, rewards: Floats) -> Floats:
    bounded = np.clip(foreseen, _LEAST_P, 1 - _LEAST_P)
    found: Floats = -(rewards * np.log(bounded) + (1 - rewards) * np.log(1 - bounded))
    return found

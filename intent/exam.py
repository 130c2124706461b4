"""Exam: what readings of labelled texts are worth. NumPy only; every figure is a share, 0..1."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

RISKS = (0.01, 0.02, 0.05)
_N_BINS = 15

_Bools = NDArray[np.bool_]
_Floats = NDArray[np.float64]


def auroc(positive: _Floats, negative: _Floats) -> float:
    """Probability that a positive one has the higher score, ties half (Mann and Whitney 1947).

    >>> auroc(np.array([0.9, 0.4]), np.array([0.4, 0.1]))
    0.875
    """
    order = np.sort(negative)
    below = np.searchsorted(order, positive, side="left") + np.searchsorted(order, positive, side="right")
    return float(below.mean() / 2 / len(negative))


def fpr_at_recall(positive: _Floats, negative: _Floats, recall: float = 0.95) -> float:
    """Share of the negative ones above the threshold that keeps `recall` of the positive ones."""
    n_kept = int(np.ceil(recall * len(positive)))
    threshold = np.sort(positive)[len(positive) - n_kept]
    return float((negative >= threshold).mean())


def expected_calibration_error(confidences: _Floats, is_right: _Bools) -> float:
    """Mean distance of confidence and accuracy over 15 equal bins (Guo et al. 2017, equation 5)."""
    return float(np.abs(_gaps(confidences, is_right)).sum() / len(confidences))


def overconfidence(confidences: _Floats, is_right: _Bools) -> float:
    """The part of the expected calibration error that stands in bins whose confidences promise too much.

    >>> overconfidence(np.array([0.9, 0.4]), np.array([False, True]))
    0.45
    """
    return float(_gaps(confidences, is_right).clip(min=0).sum() / len(confidences))


def _gaps(confidences: _Floats, is_right: _Bools) -> _Floats:
    """Of each bin, the sum of its confidences less how many are right."""
    bins = np.minimum((confidences * _N_BINS).astype(np.int64), _N_BINS - 1)
    return np.bincount(bins, confidences - is_right, minlength=_N_BINS).astype(np.float64)


def macro_f1(expected: Sequence[str], read: Sequence[str]) -> float:
    """Mean over the expected labels of the harmonic mean of precision and recall."""
    scores = []
    for label in sorted(set(expected)):
        n_right = sum(e == r == label for e, r in zip(expected, read, strict=True))
        scores.append(2 * n_right / (expected.count(label) + read.count(label)))
    return float(np.mean(scores))


def micro_f1(n_right: int, n_read: int, n_meant: int) -> float:
    """Harmonic mean of precision and recall over all pairs of a text and an intent; 0 where there are none.

    >>> micro_f1(n_right=3, n_read=4, n_meant=6)
    0.6
    """
    return 2 * n_right / (n_read + n_meant) if n_read + n_meant else 0.0


def set_scores(read: Sequence[Collection[str]], meant: Sequence[Collection[str]]) -> dict[str, float]:
    """How well sets of intents are read, one of each a text.

    Returns:
        `f1` over all pairs of a text and an intent, its `precision` and `recall`, `exact` the share of texts whose
        sets are equal, `f1_by_text` the mean of each text's own F1 (1 where nothing is meant and nothing read).
    """
    pairs = [(set(found), set(wanted)) for found, wanted in zip(read, meant, strict=True)]
    n_right = sum(len(found & wanted) for found, wanted in pairs)
    n_read, n_meant = sum(len(found) for found, _ in pairs), sum(len(wanted) for _, wanted in pairs)
    by_text = [micro_f1(len(f & w), len(f), len(w)) if f or w else 1.0 for f, w in pairs]
    return {
        "f1": micro_f1(n_right, n_read, n_meant),
        "precision": n_right / n_read if n_read else 0.0,
        "recall": n_right / n_meant if n_meant else 0.0,
        "exact": float(np.mean([found == wanted for found, wanted in pairs])),
        "f1_by_text": float(np.mean(by_text)),
    }


def at_risk(
    confidences: _Floats, is_right: _Bools, in_scope: _Bools, thresholds: Mapping[float, float]
) -> dict[str, dict[str, float]]:
    """What thresholds do.

    Args:
        confidences: float64, shape (n,).
        is_right: bool, shape (n,); never out of scope.
        in_scope: bool, shape (n,).
        thresholds: stated risk → threshold.

    Returns:
        `coverage` {risk: share of the texts in scope that are answered}, `wrong` {risk: share of all that are answered
        wrongly}, `thresholds`.
    """
    answered = {str(risk): confidences >= threshold for risk, threshold in thresholds.items()}
    return {
        "coverage": {risk: float(is_answered[in_scope].mean()) for risk, is_answered in answered.items()},
        "wrong": {risk: float((is_answered & ~is_right).mean()) for risk, is_answered in answered.items()},
        "thresholds": {str(risk): threshold for risk, threshold in thresholds.items()},
    }

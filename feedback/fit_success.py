"""Fitting of success heads, offline. Needs scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.success_features import Features, Floats
from feedback.success_heads import SuccessHeads

STRENGTHS = (0.001, 0.003, 0.01)
"""C of the logistic heads that are tried; smaller means flatter."""
LEAST_OUTCOMES = 500
"""Outcomes that an agent needs for a head; with fewer the (intent, agent) table does as well."""

MAX_LANDMARKS = 512

_LEFT_OUT = 1 / 3
_UNKNOWN_SHARE = 0.01
_MAX_ITERATIONS = 200
_TOLERANCE = 1e-3


Floats64 = NDArray[np.float64]


class Evidence(NamedTuple):
    """Outcomes of one agent.

    Attributes:
        rows: int64, shape (n,): the places of the requests among all that were embedded.
        rewards: float64, shape (n,), 0..1.
        weights: float64, shape (n,), over 0: inverse propensities, bounded already; None weighs all alike.
        counts: float64, shape (n,), over 0, at most 1: for how much of an outcome each counts, where a caller told too
            many; None counts each as one.
    """

    rows: NDArray[np.int64]
    rewards: Floats64
    weights: Floats64 | None = None
    counts: Floats64 | None = None

    @property
    def n_outcomes(self) -> int:
        """How many outcomes they count for."""
        return len(self.rows) if self.counts is None else int(self.counts.sum() + 1e-6)

    @property
    def effective(self) -> Floats64:
        """float64, shape (n,): weights and counts in one; they sum up to what is counted.

        >>> two = np.array([0, 1])
        >>> Evidence(two, np.ones(2), np.array([3.0, 1.0])).effective.tolist()
        [1.5, 0.5]
        >>> Evidence(two, np.ones(2), np.array([3.0, 1.0]), np.array([0.1, 0.3])).effective.round(9).tolist()
        [0.2, 0.2]
        """
        counts = np.ones(len(self.rows)) if self.counts is None else self.counts
        if self.weights is None:
            return counts
        both = self.weights * counts
        effective: Floats64 = both * (counts.sum() / both.sum())
        return effective


def fit_success(
    features: Floats,
    vectors: Floats,
    evidence: Mapping[str, Evidence],
    *,
    encoder_id: str,
    seed: int,
    strengths: Sequence[float] = STRENGTHS,
    least_outcomes: int = LEAST_OUTCOMES,
) -> SuccessHeads:
    """Heads of the agents that have enough outcomes.

    Each is an L2 logistic regression (`Features` says on what). A reward between 0 and 1 counts as a success and a
    failure in these parts. C is chosen for all agents at once, on a third of these
    requests that the fits for it leave out.

    Args:
        features: float32, shape (n, n_features): of `features_of`.
        vectors: float32, shape (n, dim), unit length.
        evidence: agent → its outcomes.
        encoder_id: of the encoder that made the vectors.
        seed: of what is left out, and of landmarks.
        strengths: values of C to choose from; a single one is taken as it is.
        least_outcomes: agents with fewer get no head.

    Raises:
        ValueError: no agent has enough outcomes, or rewards are not in 0..1.
    """
    kept = {agent: each for agent, each in sorted(evidence.items()) if each.n_outcomes >= least_outcomes}
    if not kept:
        most = max((each.n_outcomes for each in evidence.values()), default=0)
        raise ValueError(f"no agent has {least_outcomes} outcomes, the most has {most}")
    for agent, each in kept.items():
        if not ((each.rewards >= 0) & (each.rewards <= 1)).all():
            raise ValueError(f"rewards of {agent} are not all in 0..1")
    draw = np.random.default_rng(seed)
    used = np.unique(np.concatenate([each.rows for each in kept.values()]))
    seen = Features.fitted(features[used], vectors[used])
    wide = seen.rows(features, vectors)
    strength = _strength(wide, kept, strengths, draw)
    landmarks, least = _domain(vectors[used], draw)
    return SuccessHeads(
        agents=tuple(kept),
        features=seen,
        full=_heads(wide, kept, strength),
        plain=_heads(wide[:, seen.of_wording], kept, strength),
        n_outcomes=np.array([each.n_outcomes for each in kept.values()]),
        landmarks=landmarks,
        least=least,
        encoder_id=encoder_id,
    )


def _strength(
    wide: Floats, evidence: Mapping[str, Evidence], strengths: Sequence[float], draw: np.random.Generator
) -> float:
    """The least C that is not worse than the best by more than a standard error (Breiman et al. 1984, section 3.4.3).

    By the log loss on the third of the requests that is left out; the error is that of the difference.
    """
    if len(strengths) == 1:
        return strengths[0]
    is_out = draw.random(len(wide)) < _LEFT_OUT
    ascending = sorted(strengths)
    losses = np.stack(
        [
            np.concatenate([_losses_left_out(wide, each, is_out, strength) for each in evidence.values()])
            for strength in ascending
        ]
    )
    worse = losses - losses[int(np.argmin(losses.sum(axis=1)))]
    errors = worse.std(axis=1) * np.sqrt(losses.shape[1])
    return ascending[int(np.argmax(worse.sum(axis=1) <= errors))]


def _losses_left_out(wide: Floats, evidence: Evidence, is_out: NDArray[np.bool_], strength: float) -> Floats64:
    out = _part(evidence, is_out[evidence.rows])
    head = _head(wide, _part(evidence, ~is_out[evidence.rows]), strength)
    logits = wide[out.rows] @ head[:-1] + head[-1]
    # log(1 + e^x) - q x: the cross entropy of a reward q
    losses: Floats64 = (np.logaddexp(0, logits) - out.rewards * logits) * out.effective
    return losses


def _part(evidence: Evidence, chosen: NDArray[np.bool_]) -> Evidence:
    weights, counts = (None if each is None else each[chosen] for each in (evidence.weights, evidence.counts))
    return Evidence(evidence.rows[chosen], evidence.rewards[chosen], weights, counts)


def _heads(wide: Floats, evidence: Mapping[str, Evidence], strength: float) -> Floats:
    return np.stack([_head(wide, each, strength) for each in evidence.values()]).astype(np.float32)


def _head(wide: Floats, evidence: Evidence, strength: float) -> Floats64:
    """Weights, the intercept last; where all outcomes are alike an intercept alone, one outcome away from certain."""
    from sklearn.linear_model import LogisticRegression

    rewards = evidence.rewards
    weights = evidence.effective
    won, lost = weights * rewards, weights * (1 - rewards)
    if min(won.sum(), lost.sum()) < 1e-9:
        rate = (won.sum() + 1) / (weights.sum() + 2)
        return np.append(np.zeros(wide.shape[1]), np.log(rate / (1 - rate)))
    rows = np.concatenate([evidence.rows[won > 0], evidence.rows[lost > 0]])
    labels = np.repeat([1, 0], [np.count_nonzero(won), np.count_nonzero(lost)])
    model: Any = LogisticRegression(C=strength, tol=_TOLERANCE, max_iter=_MAX_ITERATIONS)
    model.fit(wide[rows], labels, sample_weight=np.concatenate([won[won > 0], lost[lost > 0]]))
    return np.append(model.coef_[0], model.intercept_[0])


def _domain(vectors: Floats, draw: np.random.Generator) -> tuple[Floats, float]:
    """Landmarks, and the similarity to the nearest that 1 % of the other requests do not have."""
    order = draw.permutation(len(vectors))
    landmarks, others = vectors[order[:MAX_LANDMARKS]], vectors[order[MAX_LANDMARKS:]]
    if len(others):
        nearest = (others @ landmarks.T).max(axis=1)
    else:
        among = landmarks @ landmarks.T
        np.fill_diagonal(among, -1)
        nearest = among.max(axis=1)
    return landmarks, float(np.quantile(nearest, _UNKNOWN_SHARE))

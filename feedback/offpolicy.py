"""Off-policy estimates: what a policy would have brought, from the log of another one.

With w = pi(a|x) / mu(a|x), the target's probability of the logged choice by that of the policy that made it, r what
came of it, m(a) the outcome model's prediction (cross-fitted) and m(pi) its mean over the target's choices:

    SNIPS = sum(w r) / sum(w)                                     (Swaminathan and Joachims 2015)
    DR    = mean(m(pi) + w (r - m))                               (Dudik, Langford and Li 2011)
    SNDR  = mean(m(pi)) + sum(w (r - m)) / sum(w)                 (Thomas and Brunskill 2016, "weighted" DR)

Nothing is clipped: estimates from clipped weights are biased towards the policy that wrote the log. Intervals are of
the linearized estimators (delta method), with Student's t of as many degrees of freedom as the effective sample size
gives. A difference between target and logging policy is paired: both are taken over the same decisions, so what those
have in common cancels, and equal policies differ by exactly 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from feedback.choices import Choices, Floats
from feedback.outcome_model import cross_fitted

LEAST_FOR_SNDR = 500
"""From so many outcomes on the outcome model is worth its variance."""


class Method(StrEnum):
    """An estimator."""

    SNIPS = "snips"
    DR = "dr"
    SNDR = "sndr"


class Estimate(NamedTuple):
    """An estimate with its intervals.

    Attributes:
        value: in the unit of what is estimated.
        se: standard error.
        low95: lower bound of the two-sided 95 % interval; so are the others of theirs.
    """

    value: float
    se: float
    low95: float
    high95: float
    low99: float
    high99: float


class Known(NamedTuple):
    """Decisions beside a log of which the difference is known without weights.

    Attributes:
        gain: float64 (k), target minus the policy that wrote the log.
        error: standard error of the sum of all, by what they have in common.
    """

    gain: Floats
    error: float


NOTHING_KNOWN = Known(np.zeros(0), 0.0)


@dataclass(frozen=True, slots=True)
class Log:
    """One quantity of n logged choices; float64 (n) each.

    Attributes:
        propensity: with which the choice was made, > 0.
        target: with which the target would have made it.
        served: 1; 0 where the target would choose nobody, which brings 0.
        value: what came of it.
        predicted: by a model that has not seen this decision.
        predicted_target: the same, in the mean over the target's choices.
        predicted_logged: the same, in the mean over those of the policy that chose.
    """

    propensity: Floats
    target: Floats
    served: Floats
    value: Floats
    predicted: Floats
    predicted_target: Floats
    predicted_logged: Floats

    @classmethod
    def of(cls, choices: Choices, value: Floats) -> Log:
        """The log of a quantity; decisions of which it is unknown are left out.

        Args:
            choices: n decisions.
            value: float64 (n), NaN where it is unknown.
        """
        known = np.isfinite(value)
        kept, found = choices.where(known), np.asarray(value[known], dtype=np.float64)
        model = cross_fitted(kept, found)
        return cls(
            propensity=kept.logged[kept.chosen],
            target=kept.target[kept.chosen],
            served=np.minimum(kept.total(kept.target), 1.0),
            value=found,
            predicted=model[kept.chosen],
            predicted_target=kept.total(kept.target * model),
            predicted_logged=kept.total(kept.logged * model),
        )

    def __len__(self) -> int:
        return len(self.value)

    @property
    def weights(self) -> Floats:
        """Importance weights w, float64 (n)."""
        return self.target / self.propensity

    @property
    def effective_size(self) -> float:
        """Effective sample size (Kish 1965), (sum w)^2 / sum w^2; n where both policies are the same.

        >>> ones = np.ones(4)
        >>> Log(ones / 2, np.array([1.0, 0, 0, 1]), ones, ones, ones, ones, ones).effective_size
        2.0
        """
        return self.effective_with(0)

    def effective_with(self, n_known: int) -> float:
        """The same with so many known decisions beside it, of which each counts as one."""
        weights = self.weights
        squares = float(weights @ weights) + n_known
        return (float(weights.sum()) + n_known) ** 2 / squares if squares > 0 else 0.0


def mean_of(log: Log) -> Estimate:
    """What the policy that wrote the log brought."""
    return mean_estimate(log.value)


def mean_estimate(values: Floats) -> Estimate:
    """The mean of independent values, float64 (n), n >= 1."""
    return _estimate(float(values.mean()), values - values.mean(), len(values) - 1.0)


def value_of(log: Log, method: Method) -> Estimate:
    """What the target would have brought."""
    if method is Method.DR:
        terms = log.predicted_target + log.weights * (log.value - log.predicted)
        return _estimate(float(terms.mean()), terms - terms.mean(), log.effective_size - 1)
    if method is Method.SNIPS:
        value, influence = _normalized(log, log.value)
    else:
        value, influence = _normalized(log, log.value - log.predicted)
        value += float(log.predicted_target.mean())
        influence = influence + log.predicted_target - log.predicted_target.mean()
    return _estimate(value, influence, log.effective_size - 1)


def difference_of(log: Log, method: Method, known: Known = NOTHING_KNOWN) -> Estimate:
    """Target minus the policy that wrote the log, paired, over the log and the known decisions together.

    The outcome model serves both sides: mean(m(pi) - m(mu)) plus the weighted minus the plain mean of r - m.
    """
    value, influence = _difference(log, method)
    n_known = len(known.gain)
    if not n_known:
        return _estimate(value, influence, log.effective_size - 1)
    n = len(log) + n_known
    both = (len(log) * value + float(known.gain.sum())) / n
    influence = np.concatenate((influence + value - both, known.gain - both))
    return _estimate(both, influence, log.effective_with(n_known) - 1, known.error / n)


def _difference(log: Log, method: Method) -> tuple[float, Floats]:
    rest = log.value if method is Method.SNIPS else log.value - log.predicted
    model = np.zeros(len(log)) if method is Method.SNIPS else log.predicted_target - log.predicted_logged
    if method is Method.DR:
        terms = model + (log.weights - 1) * rest
        return float(terms.mean()), terms - terms.mean()
    value, influence = _normalized(log, rest)
    value += float(model.mean() - rest.mean())
    return value, influence + (model - model.mean()) - (rest - rest.mean())


def method_for(n_outcomes: int) -> Method:
    """The estimator to go by: SNIPS while there are few outcomes, then SNDR."""
    return Method.SNDR if n_outcomes >= LEAST_FOR_SNDR else Method.SNIPS


def _normalized(log: Log, rest: Floats) -> tuple[float, Floats]:
    """The self-normalized weighted mean of `rest`, over all decisions, and what each adds to its error."""
    weights = log.weights
    total = float(weights.sum())
    if total <= 0:
        raise ValueError(f"none of the {len(log)} logged choices is one that the target would make")
    served = float(log.served.mean())
    value = float(weights @ rest) / total
    # a decision of more weight than others pulls the mean towards itself: its residual is that without it, as in the
    # jackknife
    pull = np.clip(weights / total - 1 / len(log), 0.0, 0.5)
    influence = served * weights * (rest - value) / (1 - pull) / (total / len(log)) + (log.served - served) * value
    return served * value, influence


def _estimate(value: float, influence: Floats, degrees: float, error: float = 0.0) -> Estimate:
    """An estimate from what each of the n decisions adds to its error, and a standard error that all share."""
    n = len(influence)
    se = float(np.sqrt(influence @ influence / max(n - 1, 1) / n + error**2))
    t95, t99 = _quantiles(max(degrees, 1.0))
    return Estimate(value, se, value - t95 * se, value + t95 * se, value - t99 * se, value + t99 * se)


def _quantiles(degrees: float) -> Sequence[float]:
    # here, as the serving process has no need of scipy
    from scipy.special import stdtrit

    return [float(each) for each in stdtrit(degrees, np.array([0.975, 0.995]))]

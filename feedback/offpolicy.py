"""Off-policy estimates: what a policy would have brought, from the log of another one.

With w = pi(a|x) / mu(a|x), the target's probability of the logged choice by that of the policy that made it, r what
came of it, m(a) the outcome model's prediction (cross-fitted) and m(pi) its mean over the target's choices:

    SNIPS = sum(w r) / sum(w)                                     (Swaminathan and Joachims 2015)
    DR    = mean(m(pi) + w (r - m))                               (Dudik, Langford and Li 2011)
    SNDR  = mean(m(pi) + min(w, 1) (r - m)) + sum(x (r - m))

SNDR is DR with weights that are self-normalized (Thomas and Brunskill 2016) where they are large: x, of what the target
chooses more often, sum to the mass of that (`feedback.excess`). No weight is clipped without its part being given to
other outcomes and charged to the interval: estimates from clipped weights are biased towards the policy that wrote the
log. Intervals are of the linearized estimators (delta method), with Student's t of as many degrees of freedom as the
effective sample size gives; of SNDR that of x. A difference between target and logging policy is paired: both are taken
over the same decisions, so what those have in common cancels, and equal policies differ by exactly 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from feedback.choices import Choices, Floats
from feedback.excess import Excess, excess
from feedback.outcome_model import Cells, cross_fitted

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
        excess: how much each outcome counts for what the target chooses more often.
    """

    propensity: Floats
    target: Floats
    served: Floats
    value: Floats
    predicted: Floats
    predicted_target: Floats
    predicted_logged: Floats
    excess: Excess

    @classmethod
    def of(cls, choices: Choices, value: Floats) -> Log:
        """The log of a quantity; decisions of which it is unknown are left out.

        Args:
            choices: n decisions in the order of time, or in its reverse.
            value: float64 (n), NaN where it is unknown.
        """
        known = np.isfinite(value)
        kept, found = choices.where(known), np.asarray(value[known], dtype=np.float64)
        cells = Cells.of(kept)
        model = cross_fitted(kept, found, cells)
        return cls(
            propensity=kept.logged[kept.chosen],
            target=kept.target[kept.chosen],
            served=np.minimum(kept.total(kept.target), 1.0),
            value=found,
            predicted=model.levels[kept.chosen],
            predicted_target=kept.total(kept.target * model.levels),
            predicted_logged=kept.total(kept.logged * model.levels),
            excess=excess(kept, found, cells, model),
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
        >>> nothing = Excess(0 * ones, ones, 0 * ones, 0.0)
        >>> Log(ones / 2, np.array([1.0, 0, 0, 1]), ones, ones, ones, ones, ones, nothing).effective_size
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
    if method is Method.SNDR:
        return _corrected(log, log.predicted_target, np.minimum(log.weights, 1.0))
    if method is Method.DR:
        terms = log.predicted_target + log.weights * (log.value - log.predicted)
        return _estimate(float(terms.mean()), terms - terms.mean(), log.effective_size - 1)
    value, influence = _normalized(log)
    return _estimate(value, influence, log.effective_size - 1)


def difference_of(log: Log, method: Method, known: Known = NOTHING_KNOWN) -> Estimate:
    """Target minus the policy that wrote the log, paired, over the log and the known decisions together.

    The outcome model serves both sides: mean(m(pi) - m(mu)) plus the weighted minus the plain mean of r - m.
    """
    if method is Method.SNDR:
        # exactly 0, and certain, where both choose alike: nothing is chosen more often, and no weight is below 1
        model = log.predicted_target - log.predicted_logged
        return _corrected(log, model, np.minimum(log.weights, 1.0) - 1, known)
    if method is Method.DR:
        model = log.predicted_target - log.predicted_logged
        terms = model + (log.weights - 1) * (log.value - log.predicted)
        value, influence = float(terms.mean()), terms - terms.mean()
    else:
        value, influence = _normalized(log)
        value, influence = value - float(log.value.mean()), influence - (log.value - log.value.mean())
    return _with_known(value, influence, log.effective_size, 0.0, known)


def _corrected(log: Log, model: Floats, weights: Floats, known: Known = NOTHING_KNOWN) -> Estimate:
    """SNDR: the mean of the model's terms, with residuals by weights, float64 (n), and by their excess."""
    n, told, rest = len(log), log.excess, log.value - log.predicted
    _refuse_without(log)
    value = float(model.mean() + (weights * rest).mean() + told.shares @ rest)
    influence = model + told.beyond + weights * rest
    # of the excess not by its own residuals: where few outcomes tell, all may have failed by chance
    alone = told.shares * (told.shares + 2 * weights / n)
    variance = float(alone @ told.variance) + told.doubt
    error = max(variance, 0.0) ** 0.5
    return _with_known(value, influence - influence.mean(), told.effective_size, error, known)


def _with_known(value: float, influence: Floats, effective_size: float, error: float, known: Known) -> Estimate:
    """An estimate from a log, together with what is known beside it."""
    n_log, n_known = len(influence), len(known.gain)
    if not n_known:
        return _estimate(value, influence, effective_size - 1, error)
    n = n_log + n_known
    both = (n_log * value + float(known.gain.sum())) / n
    influence = np.concatenate((influence + value - both, known.gain - both))
    return _estimate(both, influence, effective_size + n_known - 1, float(np.hypot(known.error, n_log * error)) / n)


def method_for(n_outcomes: int) -> Method:
    """The estimator to go by: SNIPS while there are few outcomes, then SNDR."""
    return Method.SNDR if n_outcomes >= LEAST_FOR_SNDR else Method.SNIPS


def _normalized(log: Log) -> tuple[float, Floats]:
    """The self-normalized weighted mean, over all decisions, and what each adds to its error."""
    weights = log.weights
    _refuse_without(log)
    total = float(weights.sum())
    served = float(log.served.mean())
    value = float(weights @ log.value) / total
    # a decision of more weight than others pulls the mean towards itself: its residual is that without it, as in the
    # jackknife
    pull = np.clip(weights / total - 1 / len(log), 0.0, 0.5)
    rest = (log.value - value) / (1 - pull)
    influence = served * weights * rest / (total / len(log)) + (log.served - served) * value
    return served * value, influence


def _refuse_without(log: Log) -> None:
    if not log.weights.sum() > 0:
        raise ValueError(f"none of the {len(log)} logged choices is one that the target would make")


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

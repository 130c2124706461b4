"""Excess: how much each outcome counts for what a target chooses more often than the policy that wrote the log.

Of an agent that a learner takes for worse a log holds few outcomes, each of a weight up to K / eps: a plain weighted
mean is that of those few. So what the target chooses more often is estimated by cells (an agent's intent), and of a
cell with little to tell mostly by what the other cells say in common. A cell c has the mass M_c of the target's choices
(per decision); its outcomes with weights w = (pi - mu)+ / mu deviate from the model's levels by

    D_c = sum(h w (r - m)) / sum(h w)          s_c = v_c * max(sum((h w)^2) / sum(h w)^2, sum(h^2 V) / sum(h T)^2)
    k_c = t_c / (t_c + s_c)                    A_c = k_c M_c + g_c / sum(g) * sum(M - k M)
                                               g_c = (1 - k_c)^(1/4) / (t_c + s_c)

with T and V the sums of (pi - mu)+ and of its square by mu, over a block of time; sum(A) = sum(M). It is a composite
estimate of small areas (Fay and Herriot 1979), made of the residuals of a doubly robust one. h = sqrt(T / V) by cell
and block weighs the times at which exploration told more, as Hadad et al. (2021), "Confidence intervals for policy
evaluation in adaptive experiments", and Zhan et al. (2021) do for logs of learners; within a block all decisions count
alike, so that what they are about cannot sway it. v_c is the variance of an outcome, s_c that of D_c, and t_c that of
the cell's own deviation: 1/5 of an outcome's, or twice what the log's cells are seen to have where that is more; and
what its levels do not know of intent and agent. What A_c falls short of M_c, or goes beyond, adds (A_c - M_c)^2 t_c to
the variance: a cell without outcomes makes the interval wide, whatever the model says. So does what cells with little
to tell take from the others, sum(M - k M) sum(g D) / sum(g): they may deviate by anything from nothing to twice as
much, as a learner tries little what it takes for worse; the square of that by 3 is added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from feedback.choices import Choices, Floats, Ints, effective_size
from feedback.outcome_model import AGENT_PRIOR, CELL_PRIOR, INTENT_PRIOR, Cells, Model

_N_BLOCKS, _LEAST_OF_BLOCK = 20, 25
_DOUBTED = 2.0
"""By how much the variance between cells is taken for larger than it is seen to be: target policies choose their cells.

On logs of learners, with other seeds and tables of success than those of the benchmark, 95 % intervals of values hold
the truth in 0.93 to 1.0 of cases with it and with `_BORROWED`, and in 0.90 to 0.98 with 1 and 0.
"""
_OF_FEW = 0.25
"""What cells have in common is, for those with little to tell, more that of such cells than of those known well.

With 0 a gate let 7.7 % of 600 candidates pass that were no better, some of whose cells were tried little as they are
bad; with 0.25 it were 3.7 %, with 0.5 about 1 % at errors larger by a tenth.
"""
_BORROWED = 1 / 3
"""Variance of a number anywhere between 0 and 2, of what is borrowed."""
_N_PRIOR_CELLS, _N_PRIOR_OF_INTENT = 5.0, 20.0


class Excess(NamedTuple):
    """What tells what is chosen more often.

    Attributes:
        shares: float64 (n), of each outcome, >= 0; they sum to the mass of what is chosen more often.
        variance: float64 (n), of an outcome like this.
        beyond: float64 (n), what these outcomes say of each decision beyond the model: the deviations of its cells, by
            how much more often the target chooses them.
        doubt: variance of what these outcomes do not tell.
    """

    shares: Floats
    variance: Floats
    beyond: Floats
    doubt: float

    @property
    def effective_size(self) -> float:
        """Effective sample size (Kish 1965) of the shares; n where nothing is chosen more often.

        >>> Excess(np.array([0.1, 0.0, 0.1]), np.ones(3), np.zeros(3), 0.0).effective_size
        2.0
        """
        return effective_size(self.shares) or float(len(self.shares))


class _Spread(NamedTuple):
    """Variances by cell, float64 (c), in the unit of `scale`, the variance of all outcomes about the model."""

    scale: float
    outcome: Floats
    deviation: Floats


def excess(choices: Choices, value: Floats, cells: Cells, model: Model) -> Excess:
    """Shares of all outcomes.

    Args:
        choices: n decisions in the order of time, or in its reverse.
        value: float64 (n), what came of the chosen; all finite.
        cells: of the choices.
        model: of them; deviations are from its `levels`.
    """
    n, chosen = len(choices), choices.chosen
    at = cells.of_option[chosen]
    more = np.maximum(choices.target - choices.logged, 0.0)
    mass = np.bincount(cells.of_option, weights=more, minlength=len(cells)) / n
    told, variance_of_mean = _told(choices, cells, more)
    spread = _spread(choices, value, cells, model)
    known = np.isfinite(variance_of_mean) & (mass > 0)
    error = spread.outcome * np.where(known, variance_of_mean, 0.0)
    kept = np.where(known, spread.deviation / (spread.deviation + error), 0.0)
    common = np.where(known, (1 - kept) ** _OF_FEW / (spread.deviation + error), 0.0)
    common = common / common.sum() if common.any() else common
    taken = kept * mass + common * ((1 - kept) @ mass)
    seen = np.bincount(at, weights=told * (value - model.levels[chosen]), minlength=len(cells))
    deviation = kept * seen + (1 - kept) * float(common @ seen)
    borrowed = float((1 - kept) @ mass) * float(common @ seen)
    doubt = float((taken - mass) ** 2 @ spread.deviation) * spread.scale + _BORROWED * borrowed**2
    beyond = choices.total(more * deviation[cells.of_option])
    return Excess(taken[at] * told, spread.outcome[at] * spread.scale, beyond, doubt)


def _told(choices: Choices, cells: Cells, more: Floats) -> tuple[Floats, Floats]:
    """Of each outcome its share of its cell, float64 (n); and of each cell what its mean's variance is by an outcome's.

    That is float64 (c), infinite where there is no outcome of what is chosen more often.
    """
    block = _blocks(choices.intent)
    _, place = np.unique(cells.of_option * _N_BLOCKS + block[choices.decision], return_inverse=True)
    squared = np.divide(more**2, choices.logged, out=np.zeros_like(more), where=choices.logged > 0)
    total, squares = np.bincount(place, weights=more), np.bincount(place, weights=squared)
    weight = np.sqrt(np.divide(total, squares, out=np.zeros_like(total), where=squares > 0))[place]

    def by_cell(options: Floats) -> Floats:
        return np.asarray(np.bincount(cells.of_option, weights=options, minlength=len(cells)), dtype=np.float64)

    at = cells.of_option[choices.chosen]
    weighted = (weight * more)[choices.chosen] / choices.logged[choices.chosen]
    sums = np.bincount(at, weights=weighted, minlength=len(cells))
    found = np.bincount(at, weights=weighted**2, minlength=len(cells))
    none = np.full(len(cells), np.inf)
    seen = np.divide(found, sums**2, out=none.copy(), where=sums > 0)
    # by design: the few outcomes that came may be of those of little weight
    expected = np.divide(by_cell(weight**2 * squared), by_cell(weight * more) ** 2, out=none, where=sums > 0)
    shares = np.divide(weighted, sums[at], out=np.zeros_like(weighted), where=weighted > 0)
    return shares, np.maximum(seen, expected)


def _blocks(intent: Ints) -> Ints:
    """The block of time of each decision among those of its intent, int64 (n), 0 to 19; none of fewer than 25.

    >>> _blocks(np.array([7, 3] * 50)).tolist() == [0, 0] * 25 + [1, 1] * 25
    True
    """
    _, place, counts = np.unique(intent, return_inverse=True, return_counts=True)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    rank = np.empty(len(intent), dtype=np.int64)
    rank[np.argsort(place, kind="stable")] = np.arange(len(intent))
    n_blocks = np.clip(counts // _LEAST_OF_BLOCK, 1, _N_BLOCKS)
    return np.asarray((rank - first[place]) * n_blocks[place] // counts[place], dtype=np.int64)


def _spread(choices: Choices, value: Floats, cells: Cells, model: Model) -> _Spread:
    at = cells.of_option[choices.chosen]
    squared = (value - model.cells[choices.chosen]) ** 2
    scale = float(squared.mean())
    squared = squared / scale if scale > 0 else squared
    n_intent, n_agent = np.bincount(cells.intent[at]), np.bincount(cells.agent[at], minlength=cells.agent.max() + 1)
    of_intent = (_N_PRIOR_OF_INTENT + np.bincount(cells.intent[at], weights=squared)) / (_N_PRIOR_OF_INTENT + n_intent)
    above = of_intent[cells.intent]
    n_cell = np.bincount(at, minlength=len(cells))
    outcome = (CELL_PRIOR * above + np.bincount(at, weights=squared, minlength=len(cells))) / (CELL_PRIOR + n_cell)
    # what levels do not know of an intent or agent with few outcomes is in the deviations of its cells
    unknown = CELL_PRIOR / (INTENT_PRIOR + n_intent[cells.intent]) + CELL_PRIOR / (AGENT_PRIOR + n_agent[cells.agent])
    rest = np.bincount(at, weights=value - model.levels[choices.chosen], minlength=len(cells))
    some = n_cell >= 2
    mean = rest[some] / n_cell[some] / np.sqrt(above[some] * scale) if scale > 0 else np.zeros(int(some.sum()))
    between = _between(mean, outcome[some] / above[some] / n_cell[some])
    return _Spread(scale, outcome, _DOUBTED * between * above * (1 + unknown))


def _between(mean: Floats, error: Floats) -> float:
    """The variance between cells, at least 1 / 10, from the means of some of them with the variances of their errors.

    By moments (Fay and Herriot 1979; weights as at 1 / 10), together with 5 usual cells that have exactly that much.
    """
    least = 1 / CELL_PRIOR
    if not len(mean):
        return least
    weights = 1 / (least + error) ** 2
    prior = _N_PRIOR_CELLS * float(np.median(weights))
    found = (float(weights @ (mean**2 - error)) + prior * least) / (float(weights.sum()) + prior)
    return max(found, least)

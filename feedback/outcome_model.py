"""The outcome model of doubly robust estimates: hierarchical means by intent and agent, cross-fitted.

It need not be right: what it gets wrong is corrected by the outcomes of what was really chosen. So it is never taken
for an estimate by itself (the "direct method").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from feedback.choices import Choices, Floats, Ints

INTENT_PRIOR, AGENT_PRIOR, CELL_PRIOR = 5.0, 10.0, 10.0
"""How many outcomes the level above counts for: of an intent, of an agent's residual, of an agent's intent."""

_N_ROUNDS = 3


class Cells(NamedTuple):
    """The agents' intents that occur; float64 or int64 of c cells, but for the first.

    Attributes:
        of_option: int64 (m): the cell of each option.
        intent: number of its intent, from 0 without gaps; so is `agent`.
    """

    of_option: Ints
    intent: Ints
    agent: Ints

    @classmethod
    def of(cls, choices: Choices) -> Cells:
        """Those of all options."""
        _, of_intent = np.unique(choices.intent, return_inverse=True)
        agents, agent = np.unique(choices.agent, return_inverse=True)
        # only the cells that occur: the whole table may be far larger than the log
        cells, of_option = np.unique(of_intent[choices.decision] * len(agents) + agent, return_inverse=True)
        return cls(of_option, *np.divmod(cells, len(agents)))

    def __len__(self) -> int:
        return len(self.intent)


class Model(NamedTuple):
    """What each of m options would have brought, float64 (m), by the outcomes of the other folds' decisions only.

    Attributes:
        levels: by intent and by agent alone.
        cells: by what this agent brought on this intent too.
    """

    levels: Floats
    cells: Floats


def cross_fitted(choices: Choices, value: Floats, cells: Cells) -> Model:
    """The model, of each fold by the outcomes of the others.

        e_ia = 10 * n_ia / (10 + n_ia)         y_ia = s_ia / n_ia         mu0 = sum(e * y) / sum(e)
        mu_i = mu0 + sum_a(e_ia * (y_ia - mu0 - d_a)) / (5 + sum_a(e_ia))
        d_a = sum_i(e_ia * (y_ia - mu_i)) / (10 + sum_i(e_ia))                         both in turn, three times
        levels_ia = mu_i + d_a                 cells_ia = (10 * levels_ia + s_ia) / (10 + n_ia)

    with sums s and counts n of what agent a brought on intent i. It is the two-way table of the online learner without
    its declared qualities, but a cell counts for 10 outcomes at the most, as the levels' means are of cells that differ
    (the weights of a random effect, Fay and Herriot 1979): else an intent's mean would be that of the agent which a log
    has most of. Cross-fitting as in Chernozhukov et al. (2018), "Double/debiased machine learning".

    Args:
        choices: n decisions.
        value: float64 (n), what came of the chosen; all finite.
        cells: of the choices.
    """
    chosen = cells.of_option[choices.chosen]
    levels, full = np.empty(len(cells.of_option)), np.empty(len(cells.of_option))
    for fold in np.unique(choices.fold):
        held_out = choices.fold == fold
        here = held_out[choices.decision]
        at = cells.of_option[here]
        above, told = _table(cells, chosen[~held_out], value[~held_out])
        levels[here], full[here] = above[at], told[at]
    return Model(levels, full)


def _table(cells: Cells, at: Ints, value: Floats) -> tuple[Floats, Floats]:
    """(levels, cells), float64 (c), from outcomes with the places of their cells."""
    n_cell = np.bincount(at, minlength=len(cells)).astype(np.float64)
    s_cell = np.bincount(at, weights=value, minlength=len(cells))
    mean = s_cell / np.maximum(n_cell, 1)
    counts = CELL_PRIOR * n_cell / (CELL_PRIOR + n_cell)
    mean0 = float(counts @ mean) / float(counts.sum()) if len(at) else 0.0
    of_agent, n_agent = np.zeros(int(cells.agent.max()) + 1), np.bincount(cells.agent, weights=counts)
    of_intent, n_intent = np.zeros(int(cells.intent.max()) + 1), np.bincount(cells.intent, weights=counts)
    for _ in range(_N_ROUNDS):
        rest = mean - mean0 - of_agent[cells.agent]
        of_intent = mean0 + np.bincount(cells.intent, weights=counts * rest) / (INTENT_PRIOR + n_intent)
        rest = mean - of_intent[cells.intent]
        of_agent = np.bincount(cells.agent, weights=counts * rest) / (AGENT_PRIOR + n_agent)
    above = of_intent[cells.intent] + of_agent[cells.agent]
    return above, np.asarray((CELL_PRIOR * above + s_cell) / (CELL_PRIOR + n_cell), dtype=np.float64)

"""The outcome model of doubly robust estimates: hierarchical means by intent and agent, cross-fitted.

It need not be right: what it gets wrong is corrected by the outcomes of what was really chosen. So it is never taken
for an estimate by itself (the "direct method").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from feedback.choices import Choices, Floats

INTENT_PRIOR, AGENT_PRIOR, CELL_PRIOR = 5.0, 10.0, 10.0
"""How many outcomes the level above counts for: of an intent, of an agent's residual, of an agent's intent."""


def cross_fitted(choices: Choices, value: Floats) -> Floats:
    """What each option would have brought, float64 (m), by the outcomes of the other folds' decisions only.

        mu_i = (5 * mu0 + S_i) / (5 + N_i)              d_a = sum(s_ia - n_ia * mu_i) / (10 + N_a)
        m_ia = (10 * (mu_i + d_a) + s_ia) / (10 + n_ia)

    with sums s and counts n of what agent a brought on intent i: the two-way table of the online learner, without its
    declared qualities. Cross-fitting as in Chernozhukov et al. (2018), "Double/debiased machine learning".

    Args:
        choices: n decisions.
        value: float64 (n), what came of the chosen; all finite.
    """
    decision = choices.decision
    intents, of_intent = np.unique(choices.intent, return_inverse=True)
    agents, agent = np.unique(choices.agent, return_inverse=True)
    cell = of_intent[decision] * len(agents) + agent
    # only the cells that occur: the whole table may be far larger than the log
    cells, cell = np.unique(cell, return_inverse=True)
    chosen = cell[choices.chosen]
    predicted = np.empty(len(agent))
    for fold in np.unique(choices.fold):
        held_out = choices.fold == fold
        table = _table(cells, len(intents), len(agents), chosen[~held_out], value[~held_out])
        here = held_out[decision]
        predicted[here] = table[cell[here]]
    return predicted


def _table(cells: NDArray[np.int64], n_intents: int, n_agents: int, at: NDArray[np.int64], value: Floats) -> Floats:
    """The mean of each cell, from outcomes with the places of their cells."""
    mean = float(value.mean()) if len(value) else 0.0
    n_cell = np.bincount(at, minlength=len(cells)).astype(np.float64)
    s_cell = np.bincount(at, weights=value, minlength=len(cells))
    intent, agent = np.divmod(cells, n_agents)
    s_intent = np.bincount(intent, weights=s_cell, minlength=n_intents)
    n_intent = np.bincount(intent, weights=n_cell, minlength=n_intents)
    mu = ((INTENT_PRIOR * mean + s_intent) / (INTENT_PRIOR + n_intent))[intent]
    residual = np.bincount(agent, weights=s_cell - n_cell * mu, minlength=n_agents)
    n_agent = np.bincount(agent, weights=n_cell, minlength=n_agents)
    above = mu + (residual / (AGENT_PRIOR + n_agent))[agent]
    return np.asarray((CELL_PRIOR * above + s_cell) / (CELL_PRIOR + n_cell), dtype=np.float64)

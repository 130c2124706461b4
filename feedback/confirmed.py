"""Confirmed: departures of a candidate that a person has confirmed by a correction, and what they are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from feedback.choices import Choices, Floats, Ints
from feedback.offpolicy import Known

MAX_OF_CALLER = 20
"""So many confirmed departures of one caller count: fewer than a gate needs, so that no caller passes one alone."""

_MOST_VARIANCE = 0.25
"""Of one reward in 0..1 (Popoviciu 1935), where there is but one."""


def counted(callers: Sequence[str | None], most: int = MAX_OF_CALLER) -> NDArray[np.bool_]:
    """Which confirmations count, bool (n): the first ones of each caller.

    Args:
        callers: of each decision who has confirmed the departure; None where nobody did.
        most: so many of one caller count.

    >>> counted(["a", None, "a", "b", "a"], 2).tolist()
    [True, False, True, True, False]
    """
    n_of: Counter[str] = Counter()
    found = np.zeros(len(callers), dtype=np.bool_)
    for place, caller in enumerate(callers):
        if caller is not None:
            n_of[caller] += 1
            found[place] = n_of[caller] <= most
    return found


def gains(choices: Choices, confirmed: NDArray[np.bool_], meant: Ints, declared: Floats, reward: Floats) -> Known:
    """By how much confirmed departures are better than what was logged, which a correction makes worth 0.

    The agents that the candidate would choose are worth there what they bring on the intent that was meant: the mean
    of all its outcomes in the log, of what was read wrong as that intent too; without any, the quality that they
    declare.

    Args:
        choices: n decisions with m options.
        confirmed: bool (n), which ones are confirmed.
        meant: int64 (n): number of the intent that was meant, where one is confirmed.
        declared: float64 (m): quality that the agent declares for that intent, 0..1.
        reward: float64 (n), 0..1; NaN where there is none.
    """
    known = np.isfinite(reward)
    n_agents = int(choices.agent.max(initial=0)) + 1
    at = choices.intent[known] * n_agents + choices.agent[choices.chosen[known]]
    cells, place = np.unique(at, return_inverse=True)
    n = np.bincount(place, minlength=len(cells)).astype(np.float64)
    mean = np.bincount(place, weights=reward[known], minlength=len(cells)) / n
    squares = np.bincount(place, weights=(reward[known] - mean[place]) ** 2, minlength=len(cells))
    variance = np.where(n > 1, squares / np.maximum(n - 1, 1), _MOST_VARIANCE)

    options = confirmed[choices.decision]
    decision, target = choices.decision[options], choices.target[options]
    wanted = meant[decision] * n_agents + choices.agent[options]
    found = np.minimum(np.searchsorted(cells, wanted), max(len(cells) - 1, 0))
    is_known = cells[found] == wanted if len(cells) else np.zeros(len(wanted), dtype=np.bool_)
    worth = declared[options].copy()
    worth[is_known] = mean[found[is_known]]
    gain = np.bincount(decision, weights=target * worth, minlength=len(choices))[confirmed]
    # the mean of an agent is the same for all that lead to it, and so is its error
    mass = np.bincount(found[is_known], weights=target[is_known], minlength=len(cells))
    return Known(np.asarray(gain, dtype=np.float64), float(np.sqrt(np.sum(mass**2 * variance / n))))

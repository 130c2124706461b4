"""Departures: what a candidate would choose otherwise, and how much of that a log can tell about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.choices import FLOOR, Choices, Floats

_ROUNDING = 1e-9
"""Of recorded propensities."""


class Departures(NamedTuple):
    """By how much a candidate departs from what was logged.

    Attributes:
        share: of its choices that it would make otherwise, 0..1.
        untried: share of its choices that would go where nothing was ever tried, 0..1; a part of `share`.
        effective_size: effective sample size (Kish 1965) of the tried ones; 0 where nothing was tried.
    """

    share: float
    untried: float
    effective_size: float


def untried_fail(choices: Choices, judged: NDArray[np.bool_], floor: float = FLOOR) -> tuple[Choices, Departures]:
    """The choices, with all of the candidate's that were never tried leading nowhere; and how it departs.

    What would be chosen more often than it was is tried where its propensity was at least floor / K, and where that
    agent was in fact chosen for a departure on that intent with an outcome. Of the rest an outcome model alone would
    tell (the "direct method"), so that mass is taken from the target: it brings the candidate 0, while what was logged
    there keeps its reward. So what was never tried can only speak against a candidate.

    Args:
        choices: n decisions, `target` being the candidate's propensities.
        judged: bool (n), whether there is a reward.
        floor: eps, 0..1, of the exploration that counts as trying.
    """
    if not judged.any():
        return choices, Departures(0.0, 0.0, 0.0)
    moved = np.maximum(choices.target - choices.logged, 0.0)
    n_options = np.repeat(np.diff(choices.starts), np.diff(choices.starts))
    possible = choices.logged >= floor / n_options * (1 - _ROUNDING)
    is_trial = judged & (moved[choices.chosen] > _ROUNDING) & possible[choices.chosen]
    tried = possible & _occur(choices, is_trial)
    kept = np.where(tried, choices.target, np.minimum(choices.target, choices.logged))
    told = Choices(
        starts=choices.starts,
        intent=choices.intent,
        chosen=choices.chosen,
        fold=choices.fold,
        agent=choices.agent,
        logged=choices.logged,
        target=kept,
    )
    stays = choices.total(np.minimum(choices.target, choices.logged))
    departing = np.maximum(choices.total(choices.logged) - stays, 0.0)[judged]
    lost = choices.total(choices.target - kept)[judged]
    size = _effective(moved[choices.chosen][is_trial] / choices.logged[choices.chosen][is_trial])
    return told, Departures(float(departing.mean()), float(lost.mean()), size)


def _occur(choices: Choices, is_trial: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which options, bool (m), are of an intent and agent that a trial is of."""
    n_agents = int(choices.agent.max()) + 1
    cell = choices.intent[choices.decision] * n_agents + choices.agent
    return np.isin(cell, cell[choices.chosen[is_trial]])


def _effective(weights: Floats) -> float:
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0

"""Departures: what a candidate would choose otherwise, and how much of that a log can tell about."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.choices import FLOOR, Choices, Support, effective_size

_ROUNDING = 1e-9
"""Of recorded propensities."""


class Departures(NamedTuple):
    """By how much a candidate departs from what was logged.

    Attributes:
        share: of its choices that it would make otherwise, 0..1; the next three and those of nobody make it up.
        untried: share of its choices that were neither tried nor confirmed, 0..1.
        effective_size: effective sample size (Kish 1965) of the tried ones; 0 where nothing was tried.
        tried: share of its choices that exploration has tried, 0..1.
        confirmed: share of its choices that an accepted correction confirms, 0..1.
        n_confirmed: how many of those.
        n_capped: more that would be confirmed, if their callers had not confirmed others; among the untried.
        n_waiting: more that a correction would confirm, if it were accepted.
    """

    share: float
    untried: float
    effective_size: float
    tried: float = 0.0
    confirmed: float = 0.0
    n_confirmed: int = 0
    n_capped: int = 0
    n_waiting: int = 0

    @property
    def n_supported(self) -> float:
        """What is known of departures, in outcomes: the tried ones and the confirmed ones together."""
        return self.effective_size + self.n_confirmed


def untried_fail(
    choices: Choices,
    judged: NDArray[np.bool_],
    floor: float = FLOOR,
    confirmed: NDArray[np.bool_] | None = None,
    least_trials: float = 0.0,
) -> tuple[Choices, Departures]:
    """The choices, with all of the candidate's that nothing supports leading nowhere; and how it departs.

    What would be chosen more often than it was is tried where its propensity was at least floor / K, and where that
    agent was in fact chosen for a departure on that intent with an outcome. Of the rest an outcome model alone would
    tell (the "direct method"), so that mass is taken from the target: it brings the candidate 0, while what was logged
    there keeps its reward. So what was neither tried nor confirmed can only speak against a candidate.

    Args:
        choices: n decisions, `target` being the candidate's propensities.
        judged: bool (n), whether there is a reward.
        floor: eps, 0..1, of the exploration that counts as trying.
        confirmed: bool (n), where a person has confirmed the candidate's reading against the logged one, each of them
            judged: the whole choice is a departure then, also where it leads to the same agent. None is nowhere.
        least_trials: effective sample size below which trials count as none: what few of them say is chance.
    """
    if not judged.any():
        return choices, Departures(0.0, 0.0, 0.0)
    by_hand = np.zeros(len(choices), dtype=np.bool_) if confirmed is None else confirmed
    moved = np.where(by_hand[choices.decision], 0.0, np.maximum(choices.target - choices.logged, 0.0))
    n_options = np.repeat(np.diff(choices.starts), np.diff(choices.starts))
    possible = choices.logged >= floor / n_options * (1 - _ROUNDING)
    is_trial = judged & (moved[choices.chosen] > _ROUNDING) & possible[choices.chosen]
    size = effective_size(moved[choices.chosen][is_trial] / choices.logged[choices.chosen][is_trial])
    if size < least_trials:
        size, is_trial = 0.0, np.zeros_like(is_trial)
    tried = possible & _occur(choices, is_trial)
    kept = np.where(tried | by_hand[choices.decision], choices.target, np.minimum(choices.target, choices.logged))
    stays = choices.total(np.minimum(choices.target, choices.logged))
    departing = np.where(by_hand, choices.total(choices.target), np.maximum(choices.total(choices.logged) - stays, 0.0))
    found = Departures(
        share=float(departing[judged].mean()),
        untried=float(choices.total(choices.target - kept)[judged].mean()),
        effective_size=size,
        tried=float(choices.total(np.where(tried, moved, 0.0))[judged].mean()),
        confirmed=float(np.where(by_hand, departing, 0.0)[judged].mean()),
        n_confirmed=int(by_hand.sum()),
    )
    return replace(choices, target=kept), found


def supported(choices: Choices, confirmed: NDArray[np.bool_]) -> Support:
    """The support, with choices that are confirmed, bool (n), beside the tried ones; `changes` are of the tried alone.

    >>> from feedback.choices import Row
    >>> choices = Choices.of([Row("a", 0, (0,), (1.0,), (1.0,), 0), Row("b", 0, (0, 1), (1.0, 0.0), (0.0, 1.0), 0)])
    >>> [supported(choices, np.array([False, is_confirmed])).choices for is_confirmed in (False, True)]
    [0.5, 1.0]
    """
    whole, rest = choices.support(), choices.where(~confirmed)
    total, tried = float(choices.target.sum()), float(rest.target.sum())
    if total <= 0:
        return whole
    return whole._replace(choices=min((rest.support().choices * tried + total - tried) / total, 1.0))


def _occur(choices: Choices, is_trial: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which options, bool (m), are of an intent and agent that a trial is of."""
    n_agents = int(choices.agent.max()) + 1
    cell = choices.intent[choices.decision] * n_agents + choices.agent
    return np.isin(cell, cell[choices.chosen[is_trial]])

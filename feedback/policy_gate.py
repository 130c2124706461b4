"""The gate: whether a candidate is shown to be better than the policy that wrote the log; if not, what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from feedback.choices import Choices, Floats, Support
from feedback.offpolicy import NOTHING_KNOWN, Estimate, Known, Log, Method, difference_of

LEAST_CHANGES = 30.0
"""With fewer outcomes of what changes, chance may have left out all that speak against it."""

_ROUNDING = 1e-9
"""Differences below this are none: between equal policies there is nothing but rounding."""

_SWITCH = "learning.mode: explore and a learning.floor of 0.1"


class Refusal(NamedTuple):
    """Evidence that is missing.

    Attributes:
        code: which, the same for the same kind.
        text: what there is, what is needed, and the switch that gives it.
    """

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a candidate may go on, and on what evidence.

    Attributes:
        passed: nothing is missing and it is better.
        skips_canary: it is better beyond the 99 % bound too.
        n_outcomes: rewards that the estimate is made of, those of known differences included.
        effective_size: what they are worth under the candidate (`Log.effective_with`).
        sndr: paired difference of the reward, candidate minus the policy that wrote the log; so is `snips`.
        refusals: everything that is missing; empty where it passed.
    """

    passed: bool
    skips_canary: bool
    n_outcomes: int
    effective_size: float
    support: Support
    sndr: Estimate | None
    snips: Estimate | None
    refusals: tuple[Refusal, ...]

    def evidence(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "passed": self.passed,
            "skips_canary": self.skips_canary,
            "n_outcomes": self.n_outcomes,
            "effective_size": self.effective_size,
            "support": self.support._asdict(),
            "sndr": None if self.sndr is None else self.sndr._asdict(),
            "snips": None if self.snips is None else self.snips._asdict(),
            "refusals": [refusal._asdict() for refusal in self.refusals],
        }


def gate(
    choices: Choices,
    reward: Floats,
    *,
    min_outcomes: int = 3000,
    min_effective: float = 50.0,
    min_support: float = 0.95,
    min_changes: float = LEAST_CHANGES,
    known: Known = NOTHING_KNOWN,
) -> Gate:
    """Whether the target of logged choices is shown to be better than the policy that made them.

    It passes with enough outcomes, effective sample size and support, a lower 95 % bound of SNDR's paired difference
    above 0, and SNIPS agreeing in sign. Unmet means refused: what is not known is never guessed.

    Args:
        choices: n decisions, `target` being the candidate's propensities.
        reward: float64 (n), 0..1; NaN where there is no outcome, or the agent is not to be judged by it.
        min_outcomes: fewer are not enough.
        min_effective: the least effective sample size.
        min_support: the least share of the candidate's choices, and of those by which it departs from the log, that
            exploration has tried; what was never tried would be taken from the outcome model alone.
        min_changes: the least effective sample size of the logged choices that the candidate would make more often;
            with fewer an interval promises more than it holds.
        known: decisions beside these, with outcomes, of which the difference is known.
    """
    judged = np.isfinite(reward)
    n_known = len(known.gain)
    n_outcomes = int(judged.sum()) + n_known
    if not judged.any():
        return Gate(False, False, 0, 0.0, Support(0.0, 0.0, 0.0), None, None, (too_few(0, min_outcomes),))
    kept = choices.where(judged)
    support = kept.support()
    log = Log.of(choices, reward)
    size = log.effective_with(n_known)
    refusals = thin(n_outcomes, size, support, min_outcomes, min_effective, min_support, min_changes)
    if log.effective_size <= 0:
        return Gate(False, False, n_outcomes, 0.0, support, None, None, tuple(refusals))
    sndr, snips = difference_of(log, Method.SNDR, known), difference_of(log, Method.SNIPS, known)
    if not n_known and _is_same(kept):
        text = f"the candidate decides like what is in force, on all {n_outcomes} logged decisions with an outcome: "
        refusals.append(Refusal("no_departures", text + "there is nothing to compare"))
    else:
        refusals += _unproven(sndr, snips)
    passed = not refusals
    skips_canary = passed and sndr.low99 > _ROUNDING
    return Gate(passed, skips_canary, n_outcomes, size, support, sndr, snips, tuple(refusals))


def _is_same(choices: Choices) -> bool:
    """Whether the target would have made all choices as they were made."""
    return bool(np.allclose(choices.target, choices.logged, rtol=0, atol=_ROUNDING))


def _unproven(sndr: Estimate, snips: Estimate) -> list[Refusal]:
    """Why the differences do not show that the candidate is better."""
    found = []
    if not sndr.low95 > _ROUNDING:
        text = f"the difference in reward is {sndr.value:+.4f}, from {sndr.low95:+.4f} to {sndr.high95:+.4f} (95 %): "
        text += "it must be above 0 throughout; more outcomes narrow it, if the candidate is better at all"
        found.append(Refusal("not_better", text))
    if not (abs(snips.value) > _ROUNDING and snips.value * sndr.value > 0):
        text = f"SNDR says {sndr.value:+.4f}, SNIPS {snips.value:+.4f}: they must agree in sign; more outcomes, best "
        found.append(Refusal("estimators_disagree", text + f"with {_SWITCH}, settle it"))
    return found


def too_few(n_outcomes: int, least: int) -> Refusal:
    """There are not enough outcomes."""
    text = f"{n_outcomes} outcomes can be judged, {least} are needed: post more of them to /feedback"
    return Refusal("too_few_outcomes", text)


def thin(
    n_outcomes: int,
    effective_size: float,
    support: Support,
    min_outcomes: int,
    min_effective: float,
    min_support: float,
    min_changes: float = LEAST_CHANGES,
) -> list[Refusal]:
    """Which evidence is missing for any estimate at all; arguments as in `gate`."""
    found = []
    if n_outcomes < min_outcomes:
        found.append(too_few(n_outcomes, min_outcomes))
    if effective_size < min_effective:
        text = f"the outcomes are worth {effective_size:.1f} of the candidate's own, {min_effective:g} are needed: "
        found.append(Refusal("small_effective_size", text + f"log more decisions, with {_SWITCH}"))
    if support.choices < min_support:
        text = f"{support.choices:.1%} of the candidate's choices were tried in the log, {min_support:.0%} are needed: "
        found.append(Refusal("untried_choices", text + f"log with {_SWITCH}, for intents whose risk class allows it"))
    if support.changes < min_support:
        text = f"{support.changes:.1%} of the choices that change were tried in the log, {min_support:.0%} are needed: "
        found.append(Refusal("untried_changes", text + f"log with {_SWITCH}, for intents whose risk class allows it"))
    elif support.effective_changes is not None and support.effective_changes < min_changes:
        text = (
            f"outcomes of choices that the candidate would make more often are worth {support.effective_changes:.1f}, "
        )
        found.append(Refusal("few_changes_tried", text + f"{min_changes:g} are needed: log more, with {_SWITCH}"))
    return found

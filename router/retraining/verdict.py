"""Verdict: whether an exam lets a model be promoted, and what stands against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from models.exam_report import Change, GoldenScore, Score

LEAST_ROWS = 20
"""With fewer rows, held-out and pinned ones together, nothing is known of the model."""

MOST_LOST = 0.01
"""Net share of the held-out rows that may be lost: weak labels are readings of an earlier model, which right or wrong
never loses by them."""

LEAST_OF_INTENT = 10
MOST_LOST_OF_INTENT = 0.1
"""The same of an intent with so many rows."""

LEAST_OF_FIGURE = 100
"""With fewer rows of a kind figures are told, and refuse nothing."""

MOST_LOST_AUROC = 0.02
MOST_OVERCONFIDENT, MOST_MORE_OVERCONFIDENT = 0.05, 0.01
"""An overconfidence above the first may be more than that of the model before by the second. Confidences that promise
too little refuse nothing by themselves: without texts out of scope they make room for those that nobody has seen."""

MOST_LOST_ANSWERED = 0.02
"""But then so much less may be answered."""

_MOST_NAMED = 5


class Figures(NamedTuple):
    """Figures of all rows of an exam; None where there was nothing to measure one on."""

    oos_auroc: Change | None = None
    overconfidence: Change | None = None
    answered: Change | None = None


def refusals_of(
    golden: GoldenScore,
    held_out: Score,
    by_intent: Mapping[str, Score],
    figures: Figures,
    *,
    n_out_of_scope: int,
    allow_golden_loss: bool,
    loses_sets: bool,
) -> tuple[str, ...]:
    """Why the new model may not be promoted, one sentence each; none where it may.

    Args:
        golden: pinned rows.
        held_out: rows in scope that nothing was trained on.
        by_intent: the same by intent.
        figures: of all rows.
        n_out_of_scope: held-out and pinned rows out of scope.
        allow_golden_loss: whether pinned rows may be lost.
        loses_sets: whether the model before read several intents in one text and the new one does not.
    """
    found = []
    n_rows = golden.n + held_out.n
    if n_rows < LEAST_ROWS:
        found.append(
            f"not enough evidence: {n_rows} held-out and golden rows, {LEAST_ROWS} are needed; pin more with --golden"
        )
    if golden.lost and not allow_golden_loss:
        found.append(f"golden: {len(golden.lost)} row(s) that were read right are lost: {_named(golden.lost)}")
    n_lost = held_out.right_before - held_out.right_after
    if n_lost > MOST_LOST * held_out.n:
        found.append(
            f"accuracy: of {held_out.n} held-out rows {held_out.right_after} are right, were {_before(held_out)}"
        )
    for intent, score in by_intent.items():
        n_lost = score.right_before - score.right_after
        if score.n >= LEAST_OF_INTENT and n_lost > MOST_LOST_OF_INTENT * score.n:
            found.append(
                f"intent {intent}: of {score.n} held-out rows {score.right_after} are right, were {_before(score)}"
            )
    found += _of_figures(figures, min(n_out_of_scope, n_rows), n_rows + n_out_of_scope)
    if loses_sets:
        found.append(
            "several intents in one text: the model before reads them, this one does not; give --examples of them"
        )
    return tuple(found)


def _of_figures(figures: Figures, n_oos: int, n: int) -> list[str]:
    found = []
    before, after = _both(figures.oos_auroc)
    if n_oos >= LEAST_OF_FIGURE and after < before - MOST_LOST_AUROC:
        found.append(f"out of scope: AUROC is {after:.3f}, was {before:.3f}")
    before, after = _both(figures.overconfidence)
    if n >= LEAST_OF_FIGURE and after > max(MOST_OVERCONFIDENT, before + MOST_MORE_OVERCONFIDENT):
        found.append(f"calibration: confidences promise {after:.3f} too much, it was {before:.3f}")
    before, after = _both(figures.answered)
    if n >= LEAST_OF_FIGURE and after < before - MOST_LOST_ANSWERED:
        found.append(f"confidence: {after:.1%} of the rows are read right and acted on, it was {before:.1%}")
    return found


def _both(change: Change | None) -> tuple[float, float]:
    """Before and after; two that are the same where one is not known."""
    if change is None or change.before is None or change.after is None:
        return 0.0, 0.0
    return change.before, change.after


def _before(score: Score) -> int:
    return score.right_before


def _named(ids: tuple[str, ...]) -> str:
    more = len(ids) - _MOST_NAMED
    return ", ".join(ids[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

"""Exam: the model before and the new one read the same held-out and pinned rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from intent.evaluate import Read
from intent.exam import auroc, expected_calibration_error, overconfidence
from models.exam_report import Change, Confusion, Confusions, GoldenScore, Score
from models.policy import Confidence
from router.retraining.rows import Row

MOST_CONFUSIONS = 50
MOST_EXAMPLES = 5
"""Ids told of a confusion."""

PLAUSIBLE, ACCEPTED = Confidence().plausible, Confidence().accept
"""With less than the first, by the policy's defaults, a reading counts as out of scope, from the second on it is acted
on."""


class Readings(NamedTuple):
    """How both models read rows, in their order."""

    rows: Sequence[Row]
    before: Sequence[Read]
    after: Sequence[Read]

    def part(self, where: slice) -> Readings:
        """Those of some of the rows."""
        return Readings(self.rows[where], self.before[where], self.after[where])


def score_of(readings: Readings) -> Score:
    """All rows in scope."""
    known = [(one, other) for row, one, other in zip(*readings, strict=True) if not row.is_out_of_scope]
    return Score(
        n=len(known),
        right_before=sum(before.is_right for before, _ in known),
        right_after=sum(after.is_right for _, after in known),
    )


def scores_by_intent(readings: Readings) -> dict[str, Score]:
    """The same by the intent that is meant."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(readings.rows):
        if not row.is_out_of_scope:
            groups[row.intent].append(place)
    return {intent: score_of(_at(readings, places)) for intent, places in sorted(groups.items())}


def golden_score(readings: Readings) -> GoldenScore:
    """The pinned rows."""
    verdicts = [
        (row.row_id, is_golden_right(row, before), is_golden_right(row, after))
        for row, before, after in zip(*readings, strict=True)
    ]
    return GoldenScore(
        n=len(verdicts),
        right_before=sum(before for _, before, _ in verdicts),
        right_after=sum(after for _, _, after in verdicts),
        lost=tuple(row_id for row_id, before, after in verdicts if before and not after),
        gained=tuple(row_id for row_id, before, after in verdicts if after and not before),
    )


def is_golden_right(row: Row, reading: Read) -> bool:
    """Whether it is read as meant, and may be in scope; or as out of scope, where that is what it is."""
    if row.is_out_of_scope:
        return reading.confidence < PLAUSIBLE
    return reading.is_right and reading.confidence >= PLAUSIBLE


def confusions_of(readings: Readings) -> Confusions:
    """What one of the two models reads wrongly and the other does not, or takes for something else."""
    gained: dict[tuple[str, str], list[str]] = defaultdict(list)
    lost: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row, before, after in zip(*readings, strict=True):
        if row.is_out_of_scope or before.intent == after.intent:
            continue
        if not after.is_right:
            gained[row.intent, after.intent].append(row.row_id)
        if not before.is_right:
            lost[row.intent, before.intent].append(row.row_id)
    return Confusions(gained=_most(gained), lost=_most(lost))


def oos_auroc_of(readings: Readings) -> Change | None:
    """Out-of-scope AUROC over the confidences; None where one of the two kinds has no row."""
    outside = np.array([row.is_out_of_scope for row in readings.rows], dtype=np.bool_)
    if outside.all() or not outside.any():
        return None
    before, after = (np.array([each.confidence for each in reads]) for reads in (readings.before, readings.after))
    return Change(before=auroc(before[~outside], before[outside]), after=auroc(after[~outside], after[outside]))


def ece_of(readings: Readings) -> Change | None:
    """Expected calibration error; None without rows."""
    return _calibration(readings, expected_calibration_error)


def overconfidence_of(readings: Readings) -> Change | None:
    """The part of it by which confidences promise too much; None without rows."""
    return _calibration(readings, overconfidence)


def answered_of(readings: Readings) -> Change | None:
    """Share of the rows in scope that are read right, and with a confidence to be acted on; None without such rows."""
    n = sum(not row.is_out_of_scope for row in readings.rows)
    if not n:
        return None
    before, after = (
        sum(each.is_right and each.confidence >= ACCEPTED for each in reads) / n
        for reads in (readings.before, readings.after)
    )
    return Change(before=before, after=after)


def _calibration(readings: Readings, error_of: Callable[[Any, Any], float]) -> Change | None:
    if not readings.rows:
        return None
    before, after = (
        error_of(
            np.array([each.confidence for each in reads]), np.array([each.is_right for each in reads], dtype=np.bool_)
        )
        for reads in (readings.before, readings.after)
    )
    return Change(before=before, after=after)


def _at(readings: Readings, places: Sequence[int]) -> Readings:
    parts: list[Any] = [[part[place] for place in places] for part in readings]
    return Readings(*parts)


def _most(pairs: dict[tuple[str, str], list[str]]) -> tuple[Confusion, ...]:
    found = sorted(pairs.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:MOST_CONFUSIONS]
    return tuple(
        Confusion(meant=meant, read=read, n=len(ids), examples=tuple(ids[:MOST_EXAMPLES]))
        for (meant, read), ids in found
    )

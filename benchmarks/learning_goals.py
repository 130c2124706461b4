"""The targets of learning: the floors and aims of the project's table, and how figures are held against both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from benchmarks.report import Goal, Report


class Bar(NamedTuple):
    """What fails a figure, and what it aims at."""

    than: Literal["<=", ">="]
    floor: float
    aim: float


MMLU = (Bar(">=", 0.66, 0.69), Bar("<=", 0.30, 0.27), Bar("<=", 0.59, 0.55))
"""APGR, CPT50, CPT80 over five folds."""
GSM8K_APGR = Bar(">=", 0.63, 0.665)
FEW_LABELS_APGR = Bar(">=", 0.62, 0.65)
UNSEEN_APGR = Bar(">=", 0.60, 0.62)
RANDOM_APGR, RANDOM_WITHIN = 0.5, 0.02

COST_TO_EQUAL = Bar("<=", 0.35, 0.22)
GAIN_POINTS = Bar(">=", 2.5, 3.8)
COST_OF_95 = Bar("<=", 0.20, 0.15)

GAP_CLOSED = Bar(">=", 0.65, 0.75)
BEATS_STATIC = Bar("<=", 300, 100)
BEATS_FIXED = Bar("<=", 1500, 700)

ONLINE_REWARD = Bar(">=", 0.55, 0.565)
ONLINE_QUALITY = Bar(">=", 0.97, 1.0)
ONLINE_COST = Bar("<=", 0.45, 0.36)

RECOVERY = Bar("<=", 400, 200)
FALSE_ALARMS = Bar("<=", 2, 0.5)
READOPTION = Bar("<=", 1500, 950)

OFF_POLICY_RMSE = {1000: Bar("<=", 0.06, 0.045), 3000: Bar("<=", 0.035, 0.025), 10_000: Bar("<=", 0.02, 0.013)}
COVERAGE = Bar(">=", 0.88, 0.92)

SUCCESS_ECE = Bar("<=", 0.05, 0.03)
MERIT_ECE = Goal("<=", 0.05)
COST_SAVED = Goal(">=", 0.30)
ADDED_MS = {3: Goal("<=", 0.1), 24: Goal("<=", 0.3)}


def add_barred(report: Report, name: str, values: Sequence[float], unit: str, bar: Bar, note: str = "") -> None:
    """A figure of one seed or several: its mean against the floor, and once more against the aim."""
    floor, aim = Goal(bar.than, bar.floor), Goal(bar.than, bar.aim)
    if len(values) > 1:
        report.add_spread(name, values, unit, floor, note)
    else:
        report.add(name, values[0], unit, floor, note)
    report.add("  as an aim", sum(values) / len(values), unit, aim)

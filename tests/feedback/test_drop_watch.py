from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from feedback.drop_watch import Watch, baseline_of, worth
from models.outcome import Outcome, OutcomeStatus

N_BEFORE = 20_000
MARGIN = 1.4
"""Over the figures that the watch was designed by: medians of few runs vary, and the mean before is measured."""


def rewards(rng: np.random.Generator, n: int, mean: float) -> list[float]:
    return [float(drawn < mean) for drawn in rng.random(n)]


def found_after(rng: np.random.Generator, before: float, mean: float, within: int) -> int | None:
    """After how many outcomes a watch has its alarm; None where it has none."""
    watch = Watch(baseline_of(rewards(rng, N_BEFORE, before)))
    for number, reward in enumerate(rewards(rng, within, mean), 1):
        watch.tell(str(number), reward)
        if watch.has_alarm:
            return number
    return None


@pytest.mark.parametrize(("drop", "figure"), [(0.2, 127), (0.1, 321), (0.05, 1190)])
def test_a_drop_is_found_in_time(drop: float, figure: int) -> None:
    rng = np.random.default_rng(3)
    found = [found_after(rng, 0.7, 0.7 - drop, 20_000) for _ in range(25)]
    assert median(each for each in found if each is not None) <= MARGIN * figure
    assert None not in found


@pytest.mark.parametrize("before", [0.5, 0.7, 0.95])
def test_few_are_taken_back_without_a_drop(before: float) -> None:
    rng = np.random.default_rng(5)
    found = [found_after(rng, before, before, 10_000) for _ in range(50)]
    assert sum(each is not None for each in found) <= 0.08 * len(found)


def test_a_rise_raises_nothing() -> None:
    assert found_after(np.random.default_rng(7), 0.5, 0.6, 10_000) is None


def test_the_sum_begins_at_zero_and_is_never_less() -> None:
    watch = Watch(baseline_of([1.0, 0.0] * 5000))
    assert (watch.n, watch.mean, watch.level, watch.has_alarm) == (0, None, 0.0, False)
    watch.tell("a", 1.0)
    assert (watch.n, watch.mean, watch.level) == (1, 1.0, 0.0)
    watch.tell("b", 0.0)
    # the mean counts as 0.005 less, one standard error
    assert watch.level == pytest.approx((0.5 - 0.005) / 0.5 - 0.1)


def test_an_amendment_undoes_what_it_replaces() -> None:
    told, amended = (Watch(baseline_of(rewards(np.random.default_rng(1), 2000, 0.8))) for _ in range(2))
    truth = rewards(np.random.default_rng(2), 500, 0.4)
    for number, reward in enumerate(truth):
        told.tell(str(number), reward)
        amended.tell(str(number), 0.0)
    assert amended.level > told.level > 0
    for number, reward in enumerate(truth):
        amended.tell(str(number), reward)
    assert (amended.n, amended.mean, amended.level) == (told.n, told.mean, told.level)


def test_an_outcome_that_no_longer_says_anything_is_forgotten() -> None:
    watch = Watch(baseline_of([1.0, 0.0] * 500))
    for number in range(200):
        watch.tell(str(number), 0.0)
    assert watch.has_alarm
    for number in range(200):
        watch.tell(str(number), None)
    assert (watch.n, watch.level, watch.has_alarm) == (0, 0.0, False)


def test_where_nothing_ever_failed_a_few_failures_are_no_proof() -> None:
    watch = Watch(baseline_of([1.0] * 1000))
    for number in range(5):
        watch.tell(str(number), 0.0)
    assert not watch.has_alarm
    for number in range(20):
        watch.tell(f"more-{number}", 0.0)
    assert watch.has_alarm


def outcome(**fields: object) -> Outcome:
    return Outcome(decision_id="d", status=OutcomeStatus.SUCCEEDED, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("correct", "reward", "value"),
    [
        (None, 0.7, 0.7),
        (None, None, None),
        ("other", 0.9, 0.0),
        ("other", None, 0.0),
        ("read", 0.4, 0.4),
        ("read", None, 1.0),
    ],
)
def test_a_correction_judges_the_reading_before_the_agent_does(
    correct: str | None, reward: float | None, value: float | None
) -> None:
    assert worth(outcome(correct_intent=correct), "read", reward) == value


def test_a_baseline_of_nothing_is_told_by_its_size() -> None:
    assert baseline_of([]).n == 0

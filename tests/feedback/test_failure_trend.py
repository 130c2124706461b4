from __future__ import annotations

import pytest

from feedback.failure_trend import MAX_WINDOW_MS, N_BARS, trend_of

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("at_days", "change", "n_recent", "n_before"),
    [
        ([8, 9, 10], "new", 3, 0),
        ([1, 2, 3], "gone", 0, 3),
        ([1, 2, 8, 9], "steady", 2, 2),
        ([1, 8, 8, 9, 9, 10, 11, 12, 13], "rising", 8, 1),
        ([1, 2, 2, 3, 3, 4, 5, 6, 13], "falling", 1, 8),
        ([], "steady", 0, 0),
    ],
)
def test_a_trend_compares_two_windows(at_days: list[int], change: str, n_recent: int, n_before: int) -> None:
    trend = trend_of([day * DAY_MS for day in at_days], 0, 14 * DAY_MS - 1)

    assert (trend.change, trend.n_recent, trend.n_before) == (change, n_recent, n_before)
    assert trend.window_ms == MAX_WINDOW_MS
    assert (len(trend.bars), sum(trend.bars)) == (N_BARS, len(at_days))


def test_a_window_is_a_half_of_a_short_log_and_a_week_of_a_long_one() -> None:
    assert trend_of([], 0, 999).window_ms == 500
    assert trend_of([], 0, 100 * DAY_MS).window_ms == MAX_WINDOW_MS
    assert trend_of([5], 5, 5).n_recent == 1

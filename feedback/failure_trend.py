"""Trend: whether failures of a kind have become more."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Literal, NamedTuple

MAX_WINDOW_MS = 7 * 86_400_000
"""The newest window is the second half of the log, or its last week where that is shorter."""

N_BARS = 24

Change = Literal["new", "rising", "steady", "falling", "gone"]


class Trend(NamedTuple):
    """Failures in the newest window and in the one before.

    Attributes:
        window_ms: length of each of the two.
        n_recent: failures in the newest one.
        bars: failures by equal parts of the whole log, the oldest first.
    """

    change: Change
    window_ms: int
    n_recent: int
    n_before: int
    bars: tuple[int, ...]


def trend_of(at_ms: Sequence[int], from_ms: int, until_ms: int) -> Trend:
    """The trend of failures at these instants within a log.

    It rises or falls where the two counts differ by more than two standard deviations of their difference, which is
    sqrt(n_recent + n_before) for counts of independent events (Poisson, 1837).

    Args:
        at_ms: when they were (epoch).
        from_ms: when the log begins.
        until_ms: when it ends.

    >>> trend_of([0, 60, 70, 80, 90, 95, 99, 99], 0, 99)[:4]
    ('rising', 50, 7, 1)
    """
    span_ms = max(1, until_ms + 1 - from_ms)
    window_ms = max(1, min(MAX_WINDOW_MS, span_ms // 2))
    end = until_ms + 1
    n_recent = sum(end - window_ms <= at < end for at in at_ms)
    n_before = sum(end - 2 * window_ms <= at < end - window_ms for at in at_ms)
    bars = [0] * N_BARS
    for at in at_ms:
        bars[min(N_BARS - 1, max(0, (at - from_ms) * N_BARS // span_ms))] += 1
    return Trend(_change(n_recent, n_before, len(at_ms)), window_ms, n_recent, n_before, tuple(bars))


def _change(n_recent: int, n_before: int, n: int) -> Change:
    if n_recent == n and n_before == 0 and n > 0:
        return "new"
    if n_recent == 0 and n > 0:
        return "gone"
    bound = 2 * sqrt(n_recent + n_before)
    if abs(n_recent - n_before) <= bound:
        return "steady"
    return "rising" if n_recent > n_before else "falling"

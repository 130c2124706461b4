from __future__ import annotations

from feedback.share_limit import HOUR_MS, ShareLimit

OLD, NEW = ("default", "old", "1.0.0"), ("default", "new", "1.0.0")


def drive(limit: ShareLimit, n: int, at_ms: float, max_rise: float = 0.1) -> float:
    """Everybody wants the new one; the share it gets."""
    n_new = 0
    for _ in range(n):
        agent = NEW if limit.allows("refund", NEW, at_ms, max_rise) else OLD
        n_new += agent is NEW
        limit.note("refund", agent, at_ms)
    return n_new / n


def test_a_share_rises_by_no_more_than_its_limit_within_an_hour() -> None:
    limit = ShareLimit()
    for _ in range(1000):
        limit.note("refund", OLD, 0.0)
    shares = [drive(limit, 1000, hour * HOUR_MS) for hour in range(1, 5)]
    # the first 20 decisions of an hour say nothing yet
    assert [round(share, 2) for share in shares] == [0.1, 0.2, 0.3, 0.4]


def test_without_an_hour_before_nothing_is_limited() -> None:
    limit = ShareLimit()
    assert drive(limit, 500, 0.0) == 1.0
    assert drive(limit, 500, 5 * HOUR_MS) == 1.0


def test_a_fall_is_not_limited() -> None:
    limit = ShareLimit()
    for number in range(1000):
        limit.note("refund", OLD if number % 2 else NEW, 0.0)
    for _ in range(500):
        limit.note("refund", OLD, HOUR_MS)
    assert limit.allows("refund", NEW, HOUR_MS, 0.1)


def test_groups_are_told_apart_and_the_oldest_fall_out() -> None:
    limit = ShareLimit()
    for number in range(20_000):
        limit.note(number, OLD, 0.0)
    assert len(limit._groups) == 10_000

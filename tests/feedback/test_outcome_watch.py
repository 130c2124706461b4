from __future__ import annotations

import pytest

from feedback.outcome_watch import OutcomeWatch
from models.learning_policy import FreezePolicy

POLICY = FreezePolicy(window=100)


def run(watch: OutcomeWatch, n: int, share: float, policy: FreezePolicy = POLICY) -> None:
    """Decisions of which this share has an outcome."""
    n_told = 0
    for number in range(1, n + 1):
        watch.decided(policy)
        if n_told < share * number:
            watch.told("web", False, policy)
            n_told += 1


@pytest.mark.parametrize(("share", "stops"), [(0.9, False), (0.5, False), (0.38, True), (0.0, True)])
def test_learning_stops_where_less_than_half_of_the_usual_outcomes_come(share: float, stops: bool) -> None:
    watch = OutcomeWatch()
    run(watch, 500, 0.8)
    run(watch, 100, share)
    assert (watch.reason is not None) == stops


def test_learning_goes_on_after_a_whole_window_as_usual() -> None:
    watch = OutcomeWatch()
    run(watch, 300, 0.8)
    run(watch, 200, 0.1)
    assert watch.reason is not None
    assert "10 %" in watch.reason
    assert "80 %" in watch.reason
    run(watch, 99, 0.8)
    assert watch.reason is not None
    run(watch, 1, 1.0)
    assert watch.reason is None


def test_a_rate_that_sinks_slowly_becomes_the_usual_one() -> None:
    watch = OutcomeWatch()
    for share in (0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3):
        run(watch, 300, share)
        assert watch.reason is None


def test_late_outcomes_count_in_the_window_in_which_they_come() -> None:
    watch = OutcomeWatch()
    run(watch, 300, 1.0)
    for _ in range(50):
        watch.decided(POLICY)
    for _ in range(50):
        watch.told("web", False, POLICY)
        watch.decided(POLICY)
    assert watch.reason is None


def test_only_the_caller_whose_outcomes_are_odd_is_distrusted_and_a_window_in_order_restores_it() -> None:
    watch = OutcomeWatch()
    for number in range(60):
        watch.told("forger", number % 2 == 0, POLICY)
        watch.told("web", number % 10 == 0, POLICY)
    assert watch.distrusted == ["forger"]
    assert not watch.trusts("forger")
    assert watch.trusts("web")
    assert watch.trusts("never seen")
    for _ in range(40 + 100):
        watch.told("forger", False, POLICY)
    assert watch.trusts("forger")


def test_nothing_stops_where_the_policy_says_so() -> None:
    policy = FreezePolicy(enabled=False, window=100)
    watch = OutcomeWatch()
    run(watch, 300, 1.0, policy)
    run(watch, 300, 0.0, policy)
    for _ in range(100):
        watch.told("forger", True, policy)
    assert watch.reason is None
    assert watch.trusts("forger")

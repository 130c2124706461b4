from __future__ import annotations

import pytest

from feedback.outcome_watch import OutcomeWatch
from models.learning_policy import FreezePolicy

POLICY = FreezePolicy(window=100)


def run(watch: OutcomeWatch, n: int, share: float, policy: FreezePolicy = POLICY, caller: str = "web") -> None:
    """Decisions of which this share has an outcome."""
    n_told = 0
    for number in range(1, n + 1):
        if n_told < share * number:
            watch.told(caller, is_first=True, is_odd=False, policy=policy)
            n_told += 1
        watch.decided(caller, policy)


def odd(watch: OutcomeWatch, caller: str, is_odd: bool, policy: FreezePolicy = POLICY) -> None:
    watch.told(caller, is_first=True, is_odd=is_odd, policy=policy)


@pytest.mark.parametrize(("share", "stops"), [(0.9, False), (0.5, False), (0.38, True), (0.0, True)])
def test_learning_stops_where_less_than_half_of_the_usual_outcomes_come(share: float, stops: bool) -> None:
    watch = OutcomeWatch()
    run(watch, 500, 0.8)
    run(watch, 200, share)
    assert (watch.reason is not None) == stops
    assert watch.trusts("web") != stops


def test_learning_goes_on_after_a_whole_window_as_usual() -> None:
    watch = OutcomeWatch()
    run(watch, 300, 0.8)
    run(watch, 200, 0.1)
    assert watch.reason is not None
    assert "10 %" in watch.reason
    assert "usual are 80 %" in watch.reason
    run(watch, 100, 0.8)
    assert watch.trusts("web")
    assert watch.reason is not None
    run(watch, 100, 0.8)
    assert watch.reason is None


def test_one_silent_caller_freezes_nobody_else() -> None:
    watch = OutcomeWatch()
    for _ in range(3):
        run(watch, 100, 1.0, caller="one")
        run(watch, 200, 1.0, caller="other")
    for _ in range(4):
        run(watch, 100, 0.0, caller="one")
        run(watch, 200, 1.0, caller="other")
        assert watch.reason is None
    assert watch.distrusted == ["one"]


def test_a_caller_that_never_posted_much_is_not_silent() -> None:
    watch = OutcomeWatch()
    watch.told("quiet", is_first=True, is_odd=False, policy=POLICY)
    run(watch, 1000, 0.0, caller="quiet")
    assert watch.trusts("quiet") == (watch.reason is None)
    run(watch, 1000, 0.0, caller="quiet")
    run(watch, 5000, 1.0, caller="web")
    assert watch.reason is None


def test_a_collapse_is_seen_where_every_decision_has_two_outcomes() -> None:
    watch = OutcomeWatch()

    def both(n: int, share: float) -> None:
        for number in range(n):
            if number % 10 < 10 * share:
                watch.told("web", is_first=True, is_odd=False, policy=POLICY)
                watch.told("web", is_first=False, is_odd=False, policy=POLICY)
            watch.decided("web", POLICY)

    both(300, 1.0)
    assert watch.reason is None
    both(200, 0.4)
    assert watch.reason is not None


def test_a_rate_that_sinks_slowly_becomes_the_usual_one() -> None:
    watch = OutcomeWatch()
    for share in (0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3):
        run(watch, 300, share)
        assert watch.reason is None


def test_a_stop_of_an_earlier_run_lasts_until_a_whole_window_is_as_usual() -> None:
    watch = OutcomeWatch()
    run(watch, 300, 0.8)
    run(watch, 200, 0.1)
    told = watch.reason
    assert told is not None
    again = OutcomeWatch()
    again.resume(told)
    run(again, 99, 0.8)
    assert again.reason == told
    run(again, 201, 0.1)
    assert again.reason is not None
    run(again, 200, 0.8)
    assert again.reason is None


def test_what_is_reset_begins_anew() -> None:
    watch = OutcomeWatch()
    run(watch, 300, 0.8)
    run(watch, 200, 0.0)
    watch.reset()
    assert watch.reason is None
    run(watch, 300, 0.0)
    assert watch.reason is None


def test_only_the_caller_whose_outcomes_are_odd_is_distrusted_and_a_window_in_order_restores_it() -> None:
    watch = OutcomeWatch()
    for number in range(60):
        odd(watch, "forger", number % 2 == 0)
        odd(watch, "web", number % 10 == 0)
    assert watch.distrusted == ["forger"]
    assert not watch.trusts("forger")
    assert watch.trusts("web")
    assert watch.trusts("never seen")
    for _ in range(40 + 100):
        odd(watch, "forger", False)
    assert watch.trusts("forger")


def test_nothing_stops_where_the_policy_says_so() -> None:
    policy = FreezePolicy(enabled=False, window=100)
    watch = OutcomeWatch()
    run(watch, 300, 1.0, policy)
    run(watch, 300, 0.0, policy)
    for _ in range(100):
        odd(watch, "forger", True, policy)
    assert watch.reason is None
    assert watch.trusts("forger")


def test_a_forgotten_caller_is_named_no_longer() -> None:
    watch = OutcomeWatch()
    for _ in range(60):
        odd(watch, "forger", True)
    watch.forget("forger")
    assert watch.distrusted == []

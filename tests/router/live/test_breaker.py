from __future__ import annotations

from random import Random

import pytest

from models.live_policy import BreakerPolicy
from router.live.breaker import NAMED, Breaker
from router.live.breaker_state import BreakerReason, BreakerState, TargetKey, Transition
from router.live.keys import CallId

KEY = TargetKey("planner", ("default", "refunds", "1.0.0"))
POLICY = BreakerPolicy(min_calls=5, open_ms=1000, jitter=0.0, half_open_interval_ms=100)


def call(n: int) -> CallId:
    return ("decision", n)


def breaker_of(seed: int = 0) -> Breaker:
    return Breaker(KEY, Random(seed))


def state_of(breaker: Breaker, now_ms: float) -> BreakerState:
    return breaker.view(now_ms).state


def record_all(
    breaker: Breaker, outcomes: str, now_ms: float = 0.0, policy: BreakerPolicy = POLICY
) -> list[Transition]:
    """Outcomes written as F for a failure and s for a success, of calls 0, 1, …, all at one instant."""
    return [
        change for n, each in enumerate(outcomes) for change in breaker.record(call(n), each == "F", now_ms, policy)
    ]


def opened(policy: BreakerPolicy = POLICY) -> Breaker:
    """Open since 0."""
    breaker = breaker_of()
    assert [change.after for change in record_all(breaker, "FFFFF", policy=policy)] == [BreakerState.OPEN]
    return breaker


def reopened(breaker: Breaker, now_ms: float, policy: BreakerPolicy) -> Transition:
    """Its change after a probe at `now_ms` failed."""
    probe: CallId = ("probe", int(now_ms))
    assert breaker.take(probe, now_ms, policy)
    return breaker.record(probe, True, now_ms, policy)[-1]


def test_it_begins_closed_without_a_reason() -> None:
    assert breaker_of().view(5.0) == (KEY, BreakerState.CLOSED, None, 0, 0, None, None)


def test_a_share_over_the_limit_opens_it_and_the_limit_itself_does_not() -> None:
    breaker = breaker_of()
    assert record_all(breaker, "sssFF") == []
    assert breaker.record(call(5), True, 7.0, POLICY) == (
        Transition(KEY, BreakerState.CLOSED, BreakerState.OPEN, BreakerReason.FAILURE_SHARE, 7.0, 1007.0),
    )
    assert breaker.view(7.0) == (KEY, BreakerState.OPEN, BreakerReason.FAILURE_SHARE, 6, 3, 7.0, 1007.0)
    assert not breaker.admits(7.0, POLICY)


@pytest.mark.parametrize(("share", "n_failures", "n_calls"), [(0.29, 29, 100), (0.07, 7, 100), (0.1, 3, 30)])
def test_a_share_that_floats_cannot_hold_is_met_exactly(share: float, n_failures: int, n_calls: int) -> None:
    policy = BreakerPolicy(failure_share=share, min_calls=n_calls)
    assert record_all(breaker_of(), "F" * n_failures + "s" * (n_calls - n_failures), policy=policy) == []
    over = "F" * (n_failures + 1) + "s" * (n_calls - n_failures - 1)
    assert len(record_all(breaker_of(), over, policy=policy)) == 1


def test_fewer_calls_than_the_minimum_leave_it_closed_and_a_success_can_complete_it() -> None:
    breaker = breaker_of()
    assert record_all(breaker, "FFFF") == []
    assert breaker.record(call(4), False, 0.0, POLICY)[0].reason is BreakerReason.FAILURE_SHARE


def test_failures_that_left_the_window_do_not_count() -> None:
    breaker = breaker_of()
    record_all(breaker, "FFFF")
    assert breaker.record(call(4), True, float(POLICY.window_ms), POLICY) == ()
    assert breaker.view(float(POLICY.window_ms)).n_calls == 1


def test_failures_in_a_row_open_it_and_a_success_between_starts_them_anew() -> None:
    policy = BreakerPolicy(failure_threshold=3, min_calls=100)
    assert record_all(breaker_of(), "FFsFFsFF", policy=policy) == []
    assert record_all(breaker_of(), "FFsFFF", policy=policy)[0].reason is BreakerReason.CONSECUTIVE_FAILURES


def test_without_a_threshold_failures_in_a_row_do_not_open_it() -> None:
    assert record_all(breaker_of(), "F" * 50, policy=BreakerPolicy(min_calls=100)) == []


def test_it_is_half_open_from_the_instant_its_time_is_over() -> None:
    breaker = opened()
    assert (state_of(breaker, 999.9), breaker.admits(999.9, POLICY)) == (BreakerState.OPEN, False)
    assert (state_of(breaker, 1000.0), breaker.admits(1000.0, POLICY)) == (BreakerState.HALF_OPEN, True)
    assert breaker.due(999.9) is None
    over = Transition(KEY, BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerReason.OPEN_TIME_OVER, 1000.0, None)
    assert breaker.due(1234.0) == over
    assert breaker.due(1234.0) is None
    assert breaker.view(1234.0)[1:3] == (BreakerState.HALF_OPEN, BreakerReason.OPEN_TIME_OVER)


@pytest.mark.parametrize("n_probes", [1, 3])
def test_half_open_admits_exactly_the_configured_probes_of_what_arrives_at_one_instant(n_probes: int) -> None:
    policy = POLICY.model_copy(update={"half_open_max_calls": n_probes})
    breaker = opened(policy)
    assert sum(breaker.take(("burst", n), 1000.0, policy) for n in range(500)) == n_probes
    assert sum(breaker.take(("later", n), 1099.9, policy) for n in range(500)) == 0
    assert sum(breaker.take(("next", n), 1100.0, policy) for n in range(500)) == n_probes


def test_to_look_takes_no_place_and_the_same_call_takes_one() -> None:
    breaker = opened()
    assert all(breaker.admits(1000.0, POLICY) for _ in range(10))
    assert all(breaker.take(call(50), 1000.0, POLICY) for _ in range(10))
    assert not breaker.admits(1000.0, POLICY)


def test_one_probe_that_succeeds_closes_it_with_an_empty_window() -> None:
    breaker = opened()
    breaker.take(call(50), 1010.0, POLICY)
    changes = breaker.record(call(50), False, 1020.0, POLICY)
    assert [(change.before, change.after, change.reason, change.at_ms) for change in changes] == [
        (BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerReason.OPEN_TIME_OVER, 1000.0),
        (BreakerState.HALF_OPEN, BreakerState.CLOSED, BreakerReason.PROBES_SUCCEEDED, 1020.0),
    ]
    assert breaker.view(1020.0)[1:] == (BreakerState.CLOSED, BreakerReason.PROBES_SUCCEEDED, 0, 0, 1020.0, None)
    assert sum(breaker.take(("burst", n), 1020.0, POLICY) for n in range(100)) == 100


def test_as_many_successes_as_the_policy_asks_for_close_it() -> None:
    policy = POLICY.model_copy(update={"half_open_max_calls": 3, "successes_to_close": 2})
    breaker = opened(policy)
    for n in (50, 51):
        breaker.take(call(n), 1000.0, policy)
    breaker.record(call(50), False, 1010.0, policy)
    assert state_of(breaker, 1010.0) is BreakerState.HALF_OPEN
    breaker.record(call(50), False, 1011.0, policy)
    assert state_of(breaker, 1011.0) is BreakerState.HALF_OPEN
    breaker.record(call(51), False, 1012.0, policy)
    assert state_of(breaker, 1012.0) is BreakerState.CLOSED


def test_a_probe_that_fails_opens_it_again_with_the_probes_of_a_new_half_open_time() -> None:
    breaker = opened()
    assert reopened(breaker, 1010.0, POLICY)[3:] == (BreakerReason.PROBE_FAILED, 1010.0, 2010.0)
    assert not breaker.take(call(60), 2009.0, POLICY)
    assert breaker.take(call(60), 2010.0, POLICY)


def test_outcomes_of_calls_from_before_the_opening_change_nothing() -> None:
    breaker = opened()
    assert breaker.record(call(70), False, 500.0, POLICY) == ()
    assert state_of(breaker, 500.0) is BreakerState.OPEN
    breaker.due(1000.0)
    assert breaker.record(call(71), False, 1001.0, POLICY) == ()
    assert breaker.record(call(72), True, 1001.0, POLICY, retry_after_ms=9000) == ()
    assert state_of(breaker, 1001.0) is BreakerState.HALF_OPEN


def test_a_probe_of_an_earlier_half_open_time_is_none_in_the_next() -> None:
    policy = POLICY.model_copy(update={"half_open_max_calls": 2})
    breaker = opened(policy)
    for n in (50, 51):
        breaker.take(call(n), 1000.0, policy)
    breaker.record(call(50), True, 1000.0, policy)
    assert breaker.record(call(51), False, 2000.0, policy)[-1].after is BreakerState.HALF_OPEN
    assert state_of(breaker, 2000.0) is BreakerState.HALF_OPEN


def test_failures_of_calls_from_before_the_closing_count_for_nothing() -> None:
    breaker = opened()
    breaker.take(call(50), 1000.0, POLICY)
    breaker.record(call(50), False, 1000.0, POLICY)
    for n in range(60, 80):
        assert breaker.record(call(n), True, 1001.0, POLICY, began_ms=999.0) == ()
    assert breaker.view(1001.0).n_calls == 0
    breaker.record(call(90), True, 1001.0, POLICY, began_ms=1000.0)
    assert breaker.view(1001.0).n_calls == 1


def test_open_times_grow_with_each_probe_that_fails_and_start_anew_once_it_closed() -> None:
    policy = POLICY.model_copy(update={"open_growth": 2.0, "max_open_ms": 5000})
    breaker = opened(policy)
    now_ms, lengths = 1000.0, []
    for _ in range(4):
        until_ms = reopened(breaker, now_ms, policy).next_change_ms
        assert until_ms is not None
        lengths.append(until_ms - now_ms)
        now_ms = until_ms
    assert lengths == [2000.0, 4000.0, 5000.0, 5000.0]
    breaker.take(call(50), now_ms, policy)
    breaker.record(call(50), False, now_ms, policy)
    assert record_all(breaker, "FFFFF", now_ms, policy)[0].next_change_ms == now_ms + 1000.0


def test_growth_without_end_stays_a_number() -> None:
    policy = BreakerPolicy(min_calls=1, open_ms=1, open_growth=10.0, max_open_ms=2, jitter=0.0)
    breaker = breaker_of()
    record_all(breaker, "F", policy=policy)
    assert [reopened(breaker, n * 10.0, policy).next_change_ms for n in range(1, 1000)][-1] == 9992.0


def test_jitter_spreads_open_times_within_its_share_and_follows_the_seed() -> None:
    policy = POLICY.model_copy(update={"jitter": 0.1})

    def lengths(seed: int) -> list[float]:
        rng = Random(seed)
        changes = [record_all(Breaker(KEY, rng), "FFFFF", policy=policy)[0] for _ in range(200)]
        return [change.next_change_ms or 0.0 for change in changes]

    assert lengths(1) == lengths(1) != lengths(2)
    assert 900 <= min(lengths(1)) < 910
    assert 1090 < max(lengths(1)) <= 1100


def test_a_retry_after_of_a_failure_opens_a_closed_breaker_for_that_time() -> None:
    breaker = breaker_of()
    assert breaker.record(call(1), True, 10.0, POLICY, retry_after_ms=3000) == (
        Transition(KEY, BreakerState.CLOSED, BreakerState.OPEN, BreakerReason.RETRY_AFTER, 10.0, 3010.0),
    )
    assert not breaker.admits(3009.9, POLICY)
    assert breaker.admits(3010.0, POLICY)


def test_a_retry_after_of_a_success_or_of_no_time_blocks_nothing() -> None:
    breaker = breaker_of()
    assert breaker.record(call(1), False, 0.0, POLICY, retry_after_ms=3000) == ()
    assert breaker.record(call(2), True, 0.0, POLICY, retry_after_ms=0) == ()


def test_a_retry_after_lengthens_the_open_time_and_never_shortens_it() -> None:
    breaker = opened()
    breaker.record(call(20), True, 10.0, POLICY, retry_after_ms=500)
    assert breaker.view(10.0).next_change_ms == 1000.0
    breaker.record(call(21), True, 10.0, POLICY, retry_after_ms=4000)
    assert breaker.view(10.0)[2:] == (BreakerReason.FAILURE_SHARE, 7, 7, 0.0, 4010.0)


def test_the_longer_of_open_time_and_retry_after_holds_for_a_probe_that_fails() -> None:
    breaker = opened()
    breaker.take(call(50), 1000.0, POLICY)
    assert breaker.record(call(50), True, 1000.0, POLICY, retry_after_ms=5000)[-1].next_change_ms == 6000.0


def test_a_probe_given_up_frees_its_place_at_once_and_its_outcome_is_none() -> None:
    breaker = opened()
    assert breaker.take(call(50), 1000.0, POLICY)
    assert not breaker.take(call(51), 1000.0, POLICY)
    breaker.give_up(call(50))
    assert breaker.take(call(51), 1000.0, POLICY)
    assert not breaker.take(call(52), 1000.0, POLICY)
    breaker.record(call(50), False, 1001.0, POLICY)
    assert state_of(breaker, 1001.0) is BreakerState.HALF_OPEN


def test_a_probe_whose_outcome_comes_after_its_interval_still_counts() -> None:
    breaker = opened()
    breaker.take(call(50), 1000.0, POLICY)
    assert breaker.take(call(51), 1100.0, POLICY)
    breaker.record(call(50), False, 1150.0, POLICY)
    assert state_of(breaker, 1150.0) is BreakerState.CLOSED


def test_probes_without_an_outcome_are_kept_up_to_a_bound() -> None:
    policy = POLICY.model_copy(update={"half_open_interval_ms": 1})
    breaker = opened(policy)
    for n in range(3000):
        assert breaker.take(("lost", n), 1000.0 + n, policy)
    breaker.record(("lost", 0), True, 5000.0, policy)
    assert state_of(breaker, 5000.0) is BreakerState.HALF_OPEN
    breaker.record(("lost", 2999), True, 5000.0, policy)
    assert state_of(breaker, 5000.0) is BreakerState.OPEN


def test_what_is_taken_back_leaves_the_counts_and_not_the_state() -> None:
    breaker = opened()
    for n in range(5):
        breaker.take_back(call(n), 10.0)
    assert breaker.view(10.0)[1:5] == (BreakerState.OPEN, BreakerReason.FAILURE_SHARE, 0, 0)


def test_failures_taken_back_do_not_open_it_later() -> None:
    breaker = breaker_of()
    record_all(breaker, "FFFF")
    for n in range(3):
        breaker.take_back(call(n), 0.0)
    record_all(breaker, "ssss")
    assert breaker.view(0.0)[1:5] == (BreakerState.CLOSED, None, 4, 0)


def test_a_probe_whose_success_was_taken_back_counts_by_its_new_outcome() -> None:
    policy = POLICY.model_copy(update={"half_open_max_calls": 2, "successes_to_close": 2})
    breaker = opened(policy)
    for n in (50, 51):
        breaker.take(call(n), 1000.0, policy)
    breaker.record(call(50), False, 1000.0, policy)
    breaker.take_back(call(50), 1001.0)
    breaker.record(call(51), False, 1002.0, policy)
    assert state_of(breaker, 1002.0) is BreakerState.HALF_OPEN
    assert breaker.record(call(50), True, 1003.0, policy)[-1].reason is BreakerReason.PROBE_FAILED


def test_a_policy_that_is_off_admits_all_and_counts_nothing() -> None:
    off = POLICY.model_copy(update={"enabled": False})
    breaker = opened()
    assert breaker.admits(1.0, off)
    assert breaker.take(call(50), 1.0, off)
    assert record_all(breaker_of(), "F" * 50, policy=off) == []
    assert not breaker.admits(1.0, POLICY)


def test_failures_of_too_few_sources_open_it_only_where_one_is_named() -> None:
    breaker = breaker_of()
    for n in range(20):
        assert breaker.record(call(n), True, 0.0, POLICY, source="a", min_sources=2) == ()
    assert len(breaker.record(call(20), True, 0.0, POLICY, source="b", min_sources=2)) == 1
    other = breaker_of()
    for n in range(20):
        other.record(call(n), True, 0.0, POLICY, source="a", min_sources=2)
    assert len(other.record(call(20), True, 0.0, POLICY, source=NAMED, min_sources=2)) == 1


def test_it_is_idle_once_it_is_closed_with_an_empty_window() -> None:
    breaker = breaker_of()
    breaker.record(call(1), False, 0.0, POLICY)
    assert not breaker.is_idle(POLICY.window_ms - 1.0)
    assert breaker.is_idle(float(POLICY.window_ms))
    assert not opened().is_idle(1e9)

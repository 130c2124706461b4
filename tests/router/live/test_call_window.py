from __future__ import annotations

import doctest
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.live import call_window
from router.live.call_window import CallWindow
from router.live.keys import CallId

WINDOW_MS = 100.0


def call(n: int) -> CallId:
    return ("decision", n)


def window_of(failed: Sequence[bool], max_calls: int = 100) -> CallWindow:
    """One call each millisecond from 0 on, call(1) the first."""
    window = CallWindow(max_calls)
    for n, each in enumerate(failed, start=1):
        window.add(call(n), each, float(n - 1), WINDOW_MS)
    return window


def counts(window: CallWindow) -> tuple[int, int, int]:
    return window.n_calls, window.n_failures, window.n_failed_in_a_row


def test_examples_hold() -> None:
    failed, tried = doctest.testmod(call_window)
    assert (failed, tried > 0) == (0, True)


def test_a_call_leaves_when_it_is_as_old_as_the_window_is_long() -> None:
    window = window_of([True])
    window.trim(WINDOW_MS - 0.5)
    assert window.n_calls == 1
    window.trim(WINDOW_MS)
    assert counts(window) == (0, 0, 0)


def test_a_success_taken_out_joins_the_failures_around_it() -> None:
    window = window_of([False, True, True, False, True])
    assert window.n_failed_in_a_row == 1
    assert window.remove(call(4))
    assert counts(window) == (4, 3, 3)


def test_a_failure_taken_out_of_the_row_shortens_it_and_one_before_it_does_not() -> None:
    window = window_of([True, False, True, True])
    window.remove(call(3))
    assert counts(window) == (3, 2, 1)
    window.remove(call(1))
    assert counts(window) == (2, 1, 1)


def test_what_is_not_in_it_cannot_be_taken_out() -> None:
    window = window_of([True, True])
    assert not window.remove(call(9))
    assert counts(window) == (2, 2, 2)


def test_a_call_recorded_again_is_replaced() -> None:
    window = window_of([True, True])
    window.add(call(1), False, 5, WINDOW_MS)
    assert counts(window) == (2, 1, 0)


def test_at_the_bound_the_oldest_goes() -> None:
    window = window_of([True, False, False, True], max_calls=3)
    assert counts(window) == (3, 1, 1)
    assert not window.remove(call(1))


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_calls >= 1, got 0"):
        CallWindow(0)


def test_latencies_taken_out_leave_no_rest() -> None:
    window = CallWindow(100)
    window.add(call(1), False, 0, WINDOW_MS, latency_ms=0.1)
    window.add(call(2), False, 0, WINDOW_MS, latency_ms=86_400_000.0)
    window.add(call(3), False, 0, WINDOW_MS)
    window.remove(call(2))
    assert (window.n_latencies, window.mean_latency_ms) == (1, 0.1)
    window.remove(call(1))
    assert (window.n_latencies, window.mean_latency_ms) == (0, 0.0)


def test_sources_are_those_of_failures_that_are_in_it() -> None:
    window = CallWindow(100)
    window.add(call(1), True, 0, WINDOW_MS, source="a")
    window.add(call(2), True, 10, WINDOW_MS, source="a")
    window.add(call(3), True, 20, WINDOW_MS, source="b")
    window.add(call(4), False, 20, WINDOW_MS, source="c")
    assert window.n_failing_sources == 2
    window.trim(WINDOW_MS + 5)
    assert window.n_failing_sources == 2
    window.remove(call(2))
    assert (window.n_failing_sources, window.is_failing("a"), window.is_failing("b")) == (1, False, True)


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "wait"]), st.integers(0, 12), st.booleans(), st.integers(1, 40)),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.integers(1, 8))
def test_counts_are_those_of_a_list_of_calls(steps: list[tuple[str, int, bool, int]], max_calls: int) -> None:
    window, now_ms = CallWindow(max_calls), 0.0
    calls: list[tuple[int, float, bool, int]] = []
    for step, n, failed, amount in steps:
        if step == "wait":
            now_ms += amount
            window.trim(now_ms, WINDOW_MS)
        elif step == "remove":
            assert window.remove(call(n)) == any(each[0] == n for each in calls)
            calls = [each for each in calls if each[0] != n]
        else:
            window.add(call(n), failed, now_ms, WINDOW_MS, latency_ms=float(amount), source=n % 3)
            calls = [each for each in calls if each[0] != n and each[1] > now_ms - WINDOW_MS]
            calls = [*calls, (n, now_ms, failed, amount)][-max_calls:]
        calls = [each for each in calls if each[1] > now_ms - WINDOW_MS]
        outcomes = "".join("F" if each[2] else "s" for each in calls)
        in_a_row = len(outcomes) - len(outcomes.rstrip("F"))
        assert counts(window) == (len(calls), outcomes.count("F"), in_a_row)
        assert window.n_failing_sources == len({each[0] % 3 for each in calls if each[2]})
        assert window.mean_latency_ms == (sum(each[3] for each in calls) / len(calls) if calls else 0.0)

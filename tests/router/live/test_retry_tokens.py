from __future__ import annotations

import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.live_policy import DependencyPolicy
from router.live import retry_tokens
from router.live.breaker_state import DependencyKey
from router.live.retry_tokens import RetryTokens

CRM = DependencyKey("crm", "default")
POLICY = DependencyPolicy(retries_per_s=5.0, retry_burst=3)


def taken(tokens: RetryTokens, n: int, now_ms: float, policy: DependencyPolicy = POLICY) -> int:
    """How many of `n` attempts to take a token succeed."""
    return sum(tokens.take(CRM, now_ms, policy) for _ in range(n))


def test_examples_hold() -> None:
    failed, tried = doctest.testmod(retry_tokens)
    assert (failed, tried > 0) == (0, True)


def test_a_burst_passes_and_then_the_rate() -> None:
    tokens = RetryTokens()
    assert taken(tokens, 10, 0) == 3
    assert [taken(tokens, 10, now_ms) for now_ms in (199, 200, 399, 400, 1000)] == [0, 1, 0, 1, 3]


def test_a_bucket_holds_no_more_than_the_burst() -> None:
    tokens = RetryTokens()
    taken(tokens, 3, 0)
    assert taken(tokens, 10, 1e9) == 3


def test_dependencies_and_namespaces_have_buckets_of_their_own() -> None:
    tokens = RetryTokens()
    taken(tokens, 3, 0)
    assert not tokens.take(CRM, 0, POLICY)
    assert tokens.take(DependencyKey("crm", "other"), 0, POLICY)
    assert tokens.take(DependencyKey("erp", "default"), 0, POLICY)


def test_a_smaller_burst_holds_at_once() -> None:
    tokens = RetryTokens()
    taken(tokens, 1, 0)
    assert taken(tokens, 10, 0, DependencyPolicy(retries_per_s=5.0, retry_burst=1)) == 1


def test_without_a_rate_the_burst_is_all_and_without_a_burst_nothing_passes() -> None:
    tokens, no_rate = RetryTokens(), DependencyPolicy(retries_per_s=0.0, retry_burst=2)
    assert tokens.wait_ms(CRM, 0, no_rate) == 0.0
    assert taken(tokens, 10, 0, no_rate) == 2
    assert taken(tokens, 10, 1e9, no_rate) == 0
    assert tokens.wait_ms(CRM, 1e9, no_rate) is None
    no_burst = DependencyPolicy(retry_burst=0)
    assert taken(RetryTokens(), 10, 0, no_burst) == 0
    assert RetryTokens().wait_ms(CRM, 0, no_burst) is None


def test_a_full_bucket_is_not_kept() -> None:
    tokens = RetryTokens()
    tokens.take(CRM, 0, POLICY)
    tokens.take(DependencyKey("erp", "default"), 200, POLICY)
    assert len(tokens) == 1


def test_a_namespace_that_fills_fast_does_not_fill_the_bucket_of_another() -> None:
    tokens = RetryTokens()
    taken(tokens, 3, 0)
    fast = DependencyPolicy(retries_per_s=1_000_000.0, retry_burst=1)
    for now_ms in range(1, 50):
        tokens.take(DependencyKey("crm", "fast"), now_ms, fast)
    assert not tokens.take(CRM, 50, POLICY)


def test_at_the_bound_the_bucket_asked_the_longest_time_ago_goes() -> None:
    tokens, slow = RetryTokens(max_buckets=2), DependencyPolicy(retries_per_s=0.001, retry_burst=1)
    keys = [DependencyKey(name, "default") for name in "abc"]
    for key in keys:
        tokens.take(key, 0, slow)
    assert len(tokens) == 2
    assert [tokens.wait_ms(key, 0, slow) == 0 for key in keys] == [True, False, False]


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_buckets >= 1, got 0"):
        RetryTokens(0)


@settings(max_examples=200, deadline=None)
@given(st.floats(0.01, 10_000), st.integers(1, 50), st.lists(st.floats(0, 100_000), max_size=80), st.floats(0, 1e10))
def test_in_no_stretch_of_time_more_pass_than_burst_and_rate_allow(
    rate: float, burst: int, gaps_ms: list[float], start_ms: float
) -> None:
    tokens, policy, now_ms = RetryTokens(), DependencyPolicy(retries_per_s=rate, retry_burst=burst), start_ms
    passed: list[float] = []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        wait_ms = tokens.wait_ms(CRM, now_ms, policy)
        assert wait_ms is not None
        passes = tokens.take(CRM, now_ms, policy)
        assert passes == (wait_ms == 0)
        if passes:
            passed.append(now_ms)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            allowed = burst + (passed[last] - passed[first]) / 1000 * rate
            assert last - first + 1 <= allowed + 0.01


@settings(max_examples=200, deadline=None)
@given(st.floats(0.01, 1000), st.integers(1, 20), st.floats(0, 1e8))
def test_a_token_is_there_when_it_was_said_to_be(rate: float, burst: int, now_ms: float) -> None:
    tokens, policy = RetryTokens(), DependencyPolicy(retries_per_s=rate, retry_burst=burst)
    assert taken(tokens, burst, now_ms, policy) == burst
    wait_ms = tokens.wait_ms(CRM, now_ms, policy)
    assert wait_ms is not None
    assert not tokens.take(CRM, now_ms + wait_ms * 0.99, policy)
    assert tokens.take(CRM, now_ms + wait_ms, policy)

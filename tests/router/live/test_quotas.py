from __future__ import annotations

import doctest
import tracemalloc

import pytest

from router.live import quota_window
from router.live import quotas as module
from router.live.quotas import Claim, Quotas, Refused, Usage

SHOP = Claim(("caller", "shop"), 1000, 2, None)
AGENT = Claim(("agent", "a"), 500, 1, None)
TOKENS = Claim(("tokens", "shop"), 1000, None, 100)


def test_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(quota_window).failed == 0


def test_a_call_counts_until_its_window_is_over_to_the_millisecond() -> None:
    quotas = Quotas()
    quotas.reserve("1", [SHOP], 0, 100.0)
    quotas.reserve("2", [SHOP], 0, 700.0)

    assert quotas.reserve("3", [SHOP], 0, 1099.0) == Refused(SHOP, 1.0)
    assert quotas.reserve("3", [SHOP], 0, 1100.0) is None
    assert quotas.reserve("4", [SHOP], 0, 1100.0) == Refused(SHOP, 600.0)
    assert quotas.reserve("4", [SHOP], 0, 1700.0) is None
    assert quotas.usage(SHOP.key, 1700.0) == [Usage(1000, 2, 0)]


def test_of_several_claims_all_are_reserved_or_none() -> None:
    quotas = Quotas()
    quotas.reserve("1", [AGENT], 0, 0.0)

    assert quotas.reserve("2", [SHOP, AGENT], 0, 0.0) == Refused(AGENT, 500.0)
    assert quotas.usage(SHOP.key, 0.0) == []
    assert quotas.reserve("2", [SHOP, AGENT], 0, 500.0) is None
    assert quotas.usage(SHOP.key, 500.0) == [Usage(1000, 1, 0)]


def test_the_claim_that_has_room_last_is_the_one_named() -> None:
    quotas = Quotas()
    for name in "12":
        quotas.reserve(name, [SHOP], 0, 0.0)
    quotas.reserve("3", [AGENT], 0, 0.0)

    assert quotas.peek([AGENT, SHOP], 0, 0.0) == Refused(SHOP, 1000.0)
    assert quotas.peek([AGENT], 0, 0.0) == Refused(AGENT, 500.0)


def test_a_peek_reserves_nothing() -> None:
    quotas = Quotas()

    assert [quotas.peek([AGENT, TOKENS], 100, 0.0) for _ in range(5)] == [None] * 5
    assert (quotas.n_windows, quotas.n_open) == (0, 0)


def test_no_waiting_helps_a_request_that_is_too_much_by_itself() -> None:
    quotas = Quotas()
    nothing = Claim(("none",), 1000, 0, None)

    assert quotas.reserve("1", [TOKENS], 101, 0.0) == Refused(TOKENS, None)
    assert quotas.reserve("1", [nothing], 0, 0.0) == Refused(nothing, None)
    assert quotas.reserve("1", [TOKENS], 100, 0.0) is None
    assert quotas.reserve("2", [TOKENS], 101, 0.0) == Refused(TOKENS, None)


def test_a_wait_for_tokens_lasts_until_enough_of_them_have_left() -> None:
    quotas = Quotas()
    for nth, at_ms in enumerate((0.0, 100.0, 200.0)):
        quotas.reserve(str(nth), [Claim(("t",), 1000, 10, 90)], 30, at_ms)

    waits = [quotas.peek([Claim(("t",), 1000, 10, 90)], n_tokens, 300.0) for n_tokens in (30, 31, 60, 61)]

    assert [refused and refused.retry_after_ms for refused in waits] == [700.0, 800.0, 800.0, 900.0]


def test_settling_replaces_the_estimate_and_an_excess_makes_later_ones_wait() -> None:
    quotas = Quotas()
    quotas.reserve("low", [TOKENS], 60, 0.0)
    assert quotas.reserve("next", [TOKENS], 41, 0.0) is not None

    assert quotas.settle("low", 10, 5.0)
    assert quotas.reserve("next", [TOKENS], 41, 5.0) is None
    assert quotas.settle("next", 500, 10.0)
    assert quotas.usage(TOKENS.key, 10.0) == [Usage(1000, 2, 510)]
    assert quotas.reserve("later", [TOKENS], 1, 10.0) is not None


def test_what_is_settled_stays_counted() -> None:
    quotas = Quotas()
    quotas.reserve("1", [AGENT], 0, 0.0)

    assert quotas.settle("1", 7, 10.0)
    assert [quotas.refund("1"), quotas.settle("1", 9, 10.0)] == [False, False]
    assert quotas.usage(AGENT.key, 10.0) == [Usage(500, 1, 7)]


def test_an_amended_outcome_counts_instead_of_the_earlier_one_while_in_the_window() -> None:
    quotas = Quotas()
    quotas.reserve("1", [AGENT, SHOP], 5, 0.0)
    assert not quotas.amend("1", 6, 0.0)
    quotas.settle("1", 7, 10.0)

    assert quotas.amend("1", 20, 499.0)
    assert quotas.usage(AGENT.key, 499.0) == [Usage(500, 1, 20)]
    assert quotas.amend("1", 30, 999.0)
    assert (quotas.usage(AGENT.key, 999.0), quotas.usage(SHOP.key, 999.0)) == ([], [Usage(1000, 1, 30)])
    assert not quotas.amend("1", 40, 1000.0)


def test_a_refund_happens_once() -> None:
    quotas = Quotas()
    for name in "12":
        quotas.reserve(name, [SHOP, TOKENS], 40, 0.0)

    assert [quotas.refund("1"), quotas.refund("1"), quotas.refund("never")] == [True, False, False]
    assert quotas.usage(SHOP.key, 0.0) == [Usage(1000, 1, 40)]
    assert not quotas.settle("1", 40, 0.0)
    assert quotas.refund("2")
    assert (quotas.usage(SHOP.key, 0.0), quotas.n_windows, quotas.n_open) == ([], 0, 0)


def test_a_refund_after_the_window_takes_nothing_from_what_came_since() -> None:
    quotas = Quotas()
    quotas.reserve("old", [AGENT, SHOP], 5, 0.0)
    quotas.reserve("new", [AGENT], 3, 600.0)

    assert quotas.refund("old")
    assert quotas.usage(AGENT.key, 600.0) == [Usage(500, 1, 3)]


def test_claims_on_one_window_count_a_call_once() -> None:
    quotas = Quotas()
    calls, tokens = Claim(("c",), 1000, 5, None), Claim(("c",), 1000, None, 50)

    assert quotas.reserve("1", [calls, tokens], 20, 0.0) is None
    assert quotas.usage(("c",), 0.0) == [Usage(1000, 1, 20)]


def test_a_key_has_a_window_for_each_length() -> None:
    quotas = Quotas()
    second, hour = Claim(("c",), 1000, 1, None), Claim(("c",), 3_600_000, 10, None)
    quotas.reserve("1", [hour, second], 1, 0.0)
    quotas.reserve("2", [hour], 1, 0.0)

    assert quotas.usage(("c",), 0.0) == [Usage(1000, 1, 1), Usage(3_600_000, 2, 2)]


def test_without_claims_nothing_is_kept() -> None:
    quotas = Quotas()

    assert quotas.reserve("1", [], 10, 0.0) is None
    assert (quotas.n_open, quotas.settle("1", 10, 0.0)) == (0, False)


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_reservation_made_twice_is_a_mistake(is_settled: bool) -> None:
    quotas = Quotas()
    quotas.reserve("1", [SHOP], 0, 0.0)
    if is_settled:
        quotas.settle("1", 0, 0.0)

    with pytest.raises(ValueError, match="'1' exists already"):
        quotas.reserve("1", [SHOP], 0, 0.0)


def test_tokens_below_0_are_a_mistake_that_changes_nothing() -> None:
    quotas = Quotas()
    with pytest.raises(ValueError, match="-1"):
        quotas.reserve("1", [SHOP], -1, 0.0)
    quotas.reserve("1", [SHOP], 3, 0.0)
    with pytest.raises(ValueError, match="-2"):
        quotas.settle("1", -2, 0.0)

    assert quotas.settle("1", 4, 0.0)
    with pytest.raises(ValueError, match="-3"):
        quotas.amend("1", -3, 0.0)
    assert quotas.usage(SHOP.key, 0.0) == [Usage(1000, 1, 4)]


def test_a_window_limited_in_tokens_only_counts_a_call_up_to_a_thousandth_longer() -> None:
    quotas = Quotas()
    daily = Claim(("t",), 1_000_000, None, 10)
    quotas.reserve("early", [daily], 5, 200.0)
    quotas.reserve("late", [daily], 5, 900.0)

    refused = quotas.peek([daily], 1, 900.0)

    assert refused == Refused(daily, 1_000_100.0)
    assert quotas.peek([daily], 10, 1_001_000.0) is None


def test_a_clock_that_stands_still_or_goes_back_counts_on() -> None:
    quotas = Quotas()
    quotas.reserve("1", [SHOP], 0, 100.0)
    quotas.reserve("2", [SHOP], 0, 50.0)

    assert quotas.peek([SHOP], 0, 1099.0) == Refused(SHOP, 1.0)
    assert quotas.peek([SHOP], 0, 1100.0) is None
    assert quotas.usage(SHOP.key, 1100.0) == []


def test_a_wait_is_long_enough_where_the_clock_went_back() -> None:
    quotas = Quotas()
    both = Claim(("t",), 1000, 10, 90)
    quotas.reserve("1", [both], 30, 100.0)
    quotas.reserve("2", [both], 30, 50.0)

    assert quotas.peek([both], 90, 1000.0) == Refused(both, 100.0)


def test_a_rule_may_turn_from_parts_to_instants() -> None:
    quotas = Quotas()
    quotas.reserve("1", [Claim(("c",), 1000, None, 10)], 1, 0.5)
    quotas.reserve("2", [Claim(("c",), 1000, 2, None)], 1, 0.6)

    assert quotas.peek([Claim(("c",), 1000, 2, None)], 0, 0.7) == Refused(Claim(("c",), 1000, 2, None), 1001.0 - 0.7)


def test_windows_that_hold_nothing_are_forgotten() -> None:
    quotas = Quotas()
    for n in range(1000):
        quotas.reserve(str(n), [Claim(("caller", n), 100, 1, None)], 1, float(n))

    assert quotas.n_windows <= 101
    assert quotas.n_open <= 101
    quotas.sweep(5000.0)
    assert (quotas.n_windows, quotas.n_open) == (0, 0)


def test_at_the_most_windows_the_one_used_longest_ago_is_forgotten() -> None:
    quotas = Quotas(max_windows=2)
    claims = [Claim(("caller", n), 1000, 2, None) for n in range(3)]
    for nth, n in enumerate((0, 1, 0, 2)):
        assert quotas.reserve(f"{nth}", [claims[n]], 0, float(nth)) is None

    assert [len(quotas.usage(claim.key, 3.0)) for claim in claims] == [1, 0, 1]
    assert quotas.refund("1")
    assert quotas.reserve("again", [claims[1]], 0, 4.0) is None
    assert [len(quotas.usage(claim.key, 4.0)) for claim in claims] == [0, 1, 1]


def test_at_the_most_reservations_the_oldest_is_forgotten_and_counts_on() -> None:
    quotas = Quotas(max_open=2, max_settled=1)
    many = Claim(("c",), 1000, 9, None)
    for name in "123":
        quotas.reserve(name, [many], 1, 0.0)

    assert [quotas.refund("1"), quotas.settle("2", 5, 0.0), quotas.settle("3", 5, 0.0)] == [False, True, True]
    assert [quotas.amend("2", 9, 0.0), quotas.amend("3", 8, 0.0)] == [False, True]
    assert quotas.usage(("c",), 0.0) == [Usage(1000, 3, 14)]
    assert quotas.usage(("c",), 1000.0) == []


def test_memory_does_not_grow_with_refunds_or_with_calls_of_a_window_limited_in_tokens() -> None:
    quotas = Quotas(max_settled=100)
    hourly, tokens = Claim(("c",), 3_600_000, 5, None), Claim(("t",), 3_600_000, None, 10**9)
    tracemalloc.start()
    try:
        for n in range(5000):
            quotas.reserve(f"r{n}", [hourly], 1, 100.0 * n)
            quotas.refund(f"r{n}")
            quotas.reserve(f"s{n}", [tokens], 1, 100.0 * n)
            quotas.settle(f"s{n}", 2, 100.0 * n)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert quotas.usage(("t",), 500_000.0) == [Usage(3_600_000, 5000, 10_000)]
    assert grown < 300_000

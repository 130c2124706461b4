from __future__ import annotations

import doctest
from itertools import count
from random import Random

import pytest

from router.live import witnesses
from router.live.keys import CallId
from router.live.witnesses import FREE, Tellers, Witnesses

WINDOW_MS = 1000.0
_NUMBERS = count()


def call() -> CallId:
    return ("decision", next(_NUMBERS))


def tell(tellers: Tellers, teller: str, outcomes: str, now_ms: float = 0.0, share: float = 0.1) -> str:
    """Outcomes that count, F a failure and s a success; a dot stands for one that does not."""
    return "".join(
        each if tellers.counts(teller, call(), each == "F", now_ms, WINDOW_MS, share) else "." for each in outcomes
    )


def test_examples_hold() -> None:
    failed, tried = doctest.testmod(witnesses)
    assert (failed, tried > 0) == (0, True)


def test_all_counts_while_nobody_else_tells_anything() -> None:
    assert tell(Tellers(), "one", "FFFFFFFFsFF") == "FFFFFFFFsFF"


@pytest.mark.parametrize(("n_others", "n_counted"), [(1, FREE), (40, FREE), (50, 5), (99, 9), (100, 10)])
def test_beside_others_a_share_of_their_outcomes_counts_and_a_few_in_any_case(n_others: int, n_counted: int) -> None:
    tellers = Tellers()
    for number in range(n_others):
        tell(tellers, f"honest {number % 4}", "s")
    assert tell(tellers, "eve", "F" * 1000).count("F") == n_counted
    assert tell(tellers, "eve", "s" * 10) == "s" * 10


def test_what_has_left_the_window_is_held_against_nobody_and_supports_nobody() -> None:
    tellers = Tellers()
    tell(tellers, "honest", "s", now_ms=0)
    assert tell(tellers, "eve", "FFFFFF", now_ms=500) == "FFFF.."
    tell(tellers, "honest", "s", now_ms=900)
    assert tell(tellers, "eve", "F", now_ms=1499) == "."
    assert tell(tellers, "eve", "FFFFF", now_ms=1500) == "FFFF."
    assert tell(tellers, "eve", "FFFFF", now_ms=1900) == "FFFFF"


@pytest.mark.parametrize("n_tellers", [2, 3, 10])
def test_most_failures_count_where_all_tellers_have_them(n_tellers: int) -> None:
    tellers, rng = Tellers(), Random(n_tellers)
    for _ in range(10):
        for number in range(n_tellers):
            tell(tellers, str(number), "s")
    heard = "".join(tell(tellers, str(rng.randrange(n_tellers)), "F") for _ in range(200))
    assert heard.count("F") >= 150


def test_a_teller_with_most_of_the_traffic_is_heard_as_far_as_another_one_says_the_same() -> None:
    tellers = Tellers()
    tell(tellers, "small", "ssss")
    tell(tellers, "large", "s" * 40)
    assert tell(tellers, "large", "F" * 20).count("F") == FREE
    assert tell(tellers, "small", "FFFF") == "FFFF"
    assert tell(tellers, "large", "F" * 20).count("F") == 4


def test_two_who_lie_alike_do_not_raise_each_other_beyond_a_few_more() -> None:
    tellers, heard = Tellers(), 0
    for number in range(40):
        tell(tellers, f"honest {number % 4}", "s")
    for _ in range(500):
        heard += tell(tellers, "eve", "F").count("F") + tell(tellers, "mallory", "F").count("F")
    # each has its part of what the other one raises it by, beside a share of all that the other one tells
    assert heard <= 2 * max(0.1 * (40 + 250), FREE + 2)


def test_a_flood_pushes_nobody_out_and_begins_no_new_count() -> None:
    tellers = Tellers(max_calls=100)
    for number in range(40):
        tell(tellers, f"honest {number % 4}", "s")
    assert tell(tellers, "eve", "F" * 10_000).count("F") == FREE
    assert tell(tellers, "honest 0", "F") == "F"


def test_calls_are_bounded_with_ever_so_many_tellers() -> None:
    tellers = Tellers(max_calls=100)
    for number in range(1000):
        tell(tellers, str(number), "F")
    assert tellers.trim(WINDOW_MS - 1)
    assert len(tellers._calls) == len(tellers._tallies) == 100
    assert not tellers.trim(WINDOW_MS)
    assert (len(tellers._calls), len(tellers._tallies), tellers._n_counted) == (0, 0, 0)


def test_what_is_taken_back_leaves_all_as_if_it_had_never_come() -> None:
    rng, plain, amended = Random(5), Tellers(), Tellers()
    told: list[CallId] = []
    for number in range(400):
        teller, failed, now_ms = rng.choice("abc"), rng.random() < 0.5, float(number)
        if rng.random() < 0.5:
            gone = call()
            amended.counts(rng.choice("abcd"), gone, rng.random() < 0.5, now_ms, WINDOW_MS, 0.1)
            amended.take_back(gone)
        told.append(call())
        heard = [each.counts(teller, told[-1], failed, now_ms, WINDOW_MS, 0.1) for each in (plain, amended)]
        assert heard[0] == heard[1]
    assert (amended._calls, amended._tallies, amended._n_counted) == (plain._calls, plain._tallies, plain._n_counted)
    for each in told:
        amended.take_back(each)
    amended.take_back(call())
    assert (len(amended._calls), amended._tallies, amended._n_counted) == (0, {}, 0)


def test_the_same_call_again_takes_the_place_of_the_first() -> None:
    tellers, same = Tellers(), call()
    tell(tellers, "honest", "s")
    assert [tellers.counts("eve", same, True, 0.0, WINDOW_MS, 0.1) for _ in range(20)] == [True] * 20
    assert tell(tellers, "eve", "FFFF") == "FFF."


@pytest.mark.parametrize(
    ("told", "are_spread"),
    [
        ("aaaaa", True),
        ("aaaa", False),
        ("Baaaaa", False),
        ("Baaabb", True),
        ("BCaabbc", True),
        ("BCaaaabb", False),
        ("BCDEabcda", False),
        ("BCDEabcde", True),
        ("BCDEeaaaabaaacd", True),
        ("BCDEabcAde", False),
    ],
)
def test_failures_in_a_row_are_spread_where_no_teller_has_more_than_its_even_part(told: str, are_spread: bool) -> None:
    """A letter is a failure of its teller, a capital one a success."""
    tellers = Tellers()
    for each in told:
        tellers.counts(each.lower(), call(), each.islower(), 0.0, WINDOW_MS, 1.0)
    assert tellers.are_spread(5) is are_spread


def test_what_has_had_its_effect_is_held_against_nobody_but_all_stay_known() -> None:
    tellers = Tellers()
    tell(tellers, "honest", "s")
    assert tell(tellers, "eve", "FFFFF") == "FFFF."
    tellers.begin_anew()
    assert not tellers.are_spread(1)
    assert tell(tellers, "eve", "FFFFF") == "FFFF."
    assert tellers.are_spread(1)


def test_a_success_that_is_not_noted_any_more_ends_a_row_of_failures() -> None:
    tellers = Tellers(max_calls=8)
    tell(tellers, "a", "sFF")
    assert tellers.are_spread(2)
    tell(tellers, "a", "s")
    assert not tellers.are_spread(1)


def test_subjects_are_apart_bounded_and_forgotten_when_idle() -> None:
    board = Witnesses(max_subjects=2)

    def heard(subject: str, teller: str, now_ms: float, failed: bool = True) -> bool:
        return board.counts(subject, teller, call(), failed, now_ms, WINDOW_MS, 0.1)

    assert heard("a", "honest", 0.0, failed=False)
    assert [heard("a", "eve", 0.0) for _ in range(5)] == [True] * 4 + [False]
    assert [heard("b", "eve", 0.0) for _ in range(5)] == [True] * 5
    assert len(board) == 2
    heard("c", "eve", 1.0)
    assert len(board) == 2
    heard("c", "eve", 1000.0)
    assert len(board) == 1
    board.take_back("nobody", call())


@pytest.mark.parametrize("make", [lambda: Tellers(3), lambda: Witnesses(0)])
def test_bounds_that_leave_no_room_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match="needs max_"):
        make()

from __future__ import annotations

import doctest
from timeit import repeat

from hypothesis import given
from hypothesis import strategies as st

from intent.llm import window
from intent.llm.window import Use, Window


def test_the_examples_in_the_docstrings_hold() -> None:
    failed, tried = doctest.testmod(window)
    assert (failed, tried > 0) == (0, True)


def test_what_was_taken_slides_out_one_by_one() -> None:
    window = Window(100.0)
    for at_ms in (0.0, 40.0, 80.0):
        window.take(at_ms, 10)
    assert [window.used(at_ms) for at_ms in (80.0, 99.0, 100.0, 139.0, 140.0, 180.0)] == [30, 30, 20, 20, 10, 0]


def test_settling_after_the_span_changes_nothing() -> None:
    window = Window(100.0)
    use = window.take(0.0, 10)
    assert window.used(100.0) == 0
    window.settle(use, 500)
    assert window.used(100.0) == 0
    later = window.take(100.0, 5)
    window.settle(later, 7)
    assert window.used(100.0) == 7


def test_an_amount_that_nobody_knows_stays_as_taken() -> None:
    window = Window(100.0)
    window.settle(window.take(0.0, 10), None)
    assert window.used(1.0) == 10


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 50), st.none() | st.integers(0, 50), st.integers(0, 9))))
def test_the_sum_is_that_of_the_uses_within_the_span(steps: list[tuple[int, int, int | None, int]]) -> None:
    window, now_ms = Window(100.0), 0
    uses: list[Use] = []
    for wait_ms, amount, settled, which in steps:
        now_ms += wait_ms
        uses.append(window.take(now_ms, amount))
        window.settle(uses[which % len(uses)], settled)
        assert window.used(now_ms) == sum(use.amount for use in uses if use.at_ms > now_ms - 100)


def test_asking_takes_no_longer_where_much_was_used() -> None:
    def best_s(n_uses: int) -> float:
        window = Window(1e9)
        for number in range(n_uses):
            window.take(number, 1)
        assert window.used(1e6) == n_uses
        return min(repeat(lambda: window.used(1e6), number=1000, repeat=5))

    assert best_s(200_000) < 20 * best_s(1)

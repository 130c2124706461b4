from __future__ import annotations

import doctest

from intent.llm import window
from intent.llm.window import Window


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
    use.settle(500)
    assert window.used(100.0) == 0


def test_an_amount_that_nobody_knows_stays_as_taken() -> None:
    window = Window(100.0)
    window.take(0.0, 10).settle(None)
    assert window.used(1.0) == 10

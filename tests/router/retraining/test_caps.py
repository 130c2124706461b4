from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.retraining.caps import (
    ALL_OUTCOMES_SHARE,
    CORRECTION_SHARE,
    OUTCOME_SHARE,
    capped_corrections,
    capped_outcomes,
    newest_of_callers,
)
from router.retraining.kept import MOST_OF_CALLER
from router.retraining.rows import Row, Source

KNOWN = {"track": 8.0, "invoice": 4.0, "hotel": 40.0}


def correction(n: int, intent: str = "track", caller: str = "web", read: str | None = "invoice") -> Row:
    return Row(f"review:{n}", f"text {n}", intent, Source.CORRECTIONS, 1.0, caller, read)


def outcome(n: int, intent: str = "track", caller: str = "web", weight: float = 0.25) -> Row:
    return Row(f"decision:{n}", f"text {n}", intent, Source.OUTCOMES, weight, caller)


ROWS = st.lists(
    st.builds(
        correction,
        st.integers(0, 10_000),
        st.sampled_from(["track", "invoice", "hotel", "unheard"]),
        st.sampled_from("abc"),
        st.sampled_from(["track", "invoice", None]),
    ),
    max_size=60,
)


@given(ROWS)
def test_no_caller_weighs_more_than_its_share_of_any_intent(rows: list[Row]) -> None:
    meant, read, all_outcomes, of_caller = (defaultdict[object, float](float) for _ in range(4))
    for row in capped_corrections(rows, KNOWN):
        assert 0 < row.weight <= 1
        meant[row.caller, row.intent] += row.weight
        read[row.caller, row.read] += row.weight
    for row in capped_outcomes(rows, KNOWN):
        all_outcomes[row.intent] += row.weight
        of_caller[row.caller, row.intent] += row.weight
    for intent in ("track", "invoice", "hotel", "unheard"):
        known = KNOWN.get(intent, 0.0)
        assert all_outcomes[intent] <= max(1.0, ALL_OUTCOMES_SHARE * known) + 1e-9
        for caller in "abc":
            assert meant[caller, intent] <= max(1.0, CORRECTION_SHARE * known) + 1e-9
            assert read[caller, intent] <= max(1.0, CORRECTION_SHARE * known) + 1e-9
            assert of_caller[caller, intent] <= max(1.0, OUTCOME_SHARE * known) + 1e-9


def test_the_intent_that_a_text_is_taken_from_is_protected_as_well() -> None:
    rows = [correction(n, "hotel", read="invoice") for n in range(10)]  # hotel would bear 20 of them, invoice bears 2
    assert [row.weight for row in capped_corrections(rows, KNOWN)] == pytest.approx([0.2] * 10)
    assert [row.weight for row in capped_corrections(rows[:2], KNOWN)] == [1.0, 1.0]


def test_one_correction_counts_in_full_however_small_its_intent() -> None:
    assert capped_corrections([correction(1, "unheard", read=None)], KNOWN)[0].weight == 1.0


def test_callers_do_not_take_each_others_share() -> None:
    rows = [outcome(n, caller=caller, weight=1.0) for n, caller in enumerate("aaaaaaaab")]
    weights = [row.weight for row in capped_outcomes(rows, KNOWN)]
    assert weights == pytest.approx([0.25] * 8 + [1.0])


def test_of_a_text_the_last_correction_counts_and_of_a_caller_the_last_twenty() -> None:
    twice = [correction(1, "track"), correction(1, "invoice"), correction(2, "track")]
    assert newest_of_callers(twice) == (twice[1:], 1)
    many = [correction(n) for n in range(50)]
    assert newest_of_callers(many) == (many[-MOST_OF_CALLER:], 50 - MOST_OF_CALLER)

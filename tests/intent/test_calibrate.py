from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intent.calibrate import Calibration

COSINES = st.lists(st.floats(-1, 1), min_size=1, max_size=8).map(lambda found: sorted(found, reverse=True))


def logistic(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def test_a_confidence_is_platts_formula() -> None:
    own = Calibration(similarity_weight=5, lead_weight=10, bias=-4, max_lead=0.2)
    best, second, third = own.confidences([0.9, 0.8, 0.4])
    assert best == pytest.approx(logistic(-4 + 5 * 0.9 + 10 * 0.1))
    assert second == pytest.approx(logistic(-4 + 5 * 0.8 - 10 * 0.1))
    assert third == pytest.approx(logistic(-4 + 5 * 0.4 - 10 * 0.5))


def test_a_lead_counts_up_to_its_bound() -> None:
    own = Calibration(similarity_weight=5, lead_weight=10, bias=-4, max_lead=0.2)
    assert own.confidences([0.9, 0.7])[0] == own.confidences([0.9, -0.5])[0]


def test_the_lead_of_a_single_neighbour_is_taken_over_zero() -> None:
    own = Calibration(similarity_weight=5, lead_weight=10, bias=-4, max_lead=0.2)
    assert own.confidences([0.1]) == [pytest.approx(logistic(-4 + 0.5 + 1.0))]
    assert own.confidences([0.9]) == own.confidences([0.9, 0.0])[:1]


def test_no_neighbours_have_no_confidences() -> None:
    assert Calibration().confidences([]) == []


def test_as_shipped_an_identical_text_is_sure_and_a_distant_one_is_not() -> None:
    shipped = Calibration()
    assert shipped.confidences([1.0, 0.5])[0] > 0.95
    assert shipped.confidences([0.2, 0.15])[0] < 0.05
    # two meanings equally near: neither may be acted on as sure
    assert max(shipped.confidences([0.7, 0.7])) < 0.5


@settings(max_examples=300, derandomize=True, deadline=None)
@given(COSINES)
def test_confidences_are_probabilities_in_the_order_of_the_neighbours(similarities: list[float]) -> None:
    confidences = Calibration().confidences(similarities)
    assert len(confidences) == len(similarities)
    assert all(0 < confidence < 1 for confidence in confidences)
    assert confidences == sorted(confidences, reverse=True)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(best=st.floats(-1, 1), second=st.floats(-1, 1), closer=st.floats(0, 1))
def test_a_rival_that_comes_nearer_lowers_the_confidence_in_the_best(best: float, second: float, closer: float) -> None:
    best, second = max(best, second), min(best, second)
    nearer = second + (best - second) * closer
    confidences = Calibration().confidences
    assert confidences([best, nearer])[0] <= confidences([best, second])[0]

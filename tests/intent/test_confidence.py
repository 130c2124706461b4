from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from intent.confidence import Confidence, RiskTable
from intent.fit_stages import rising_logistic


def test_a_confidence_is_a_logistic_function() -> None:
    assert Confidence((2.0, 1.0), -1.0).of([0.25, 0.5]) == 0.5
    assert Confidence((1.0,), 0.0).of([1e9]) == pytest.approx(1.0)
    assert Confidence((1.0,), 0.0).of([-1e9]) == pytest.approx(0.0, abs=1e-12)


def _world(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    confidences = random.beta(4, 1, n)
    return confidences, random.random(n) > confidences


@pytest.mark.parametrize("risk", [0.02, 0.05])
@pytest.mark.parametrize("n", [200, 1000])
def test_the_threshold_bounds_the_mean_share_of_wrong_answers(risk: float, n: int) -> None:
    random = np.random.default_rng(3)
    wrong, answered = [], []
    for _ in range(300):
        threshold = RiskTable.of(*_world(random, n)).threshold(risk)
        confidences, is_wrong = _world(random, 1000)
        wrong.append((is_wrong & (confidences >= threshold)).mean())
        answered.append((confidences >= threshold).mean())
    assert np.mean(wrong) <= risk + 0.001
    assert np.mean(wrong) >= risk * 0.5  # not by answering nothing
    assert np.mean(answered) > 0.2


def test_weights_count_as_repeats_do() -> None:
    random = np.random.default_rng(1)
    confidences, is_wrong = _world(random, 500)
    is_wrong[confidences > 0.9] = False
    times = random.integers(1, 4, 500)
    weighted = RiskTable.of(confidences, is_wrong, times.astype(np.float64))
    repeated = RiskTable.of(np.repeat(confidences, times), np.repeat(is_wrong, times))
    assert weighted.threshold(0.05) == pytest.approx(repeated.threshold(0.05), abs=0.02)
    assert weighted.n_above[-1] == pytest.approx(500)


def test_too_few_texts_show_no_risk() -> None:
    table = RiskTable.of(np.array([0.9, 0.8]), np.array([False, False]))
    assert table.threshold(0.05) == RiskTable.empty().threshold(0.05) == 1.01


def test_all_right_means_answer_all() -> None:
    assert RiskTable.of(np.linspace(0, 1, 200), np.zeros(200, dtype=np.bool_)).threshold(0.01) == 0.0


@given(st.integers(0, 2**31), st.floats(0.005, 0.3))
def test_a_larger_risk_never_asks_for_more_confidence(seed: int, risk: float) -> None:
    table = RiskTable.of(*_world(np.random.default_rng(seed), 400))
    assert table.threshold(risk * 1.5) <= table.threshold(risk)


@given(
    arrays.arrays(np.float64, (40, 3), elements=st.floats(-5, 5)),
    arrays.arrays(np.bool_, 40).filter(lambda each: each.any() and not each.all()),
)
def test_slopes_are_never_negative(features: np.ndarray, verdicts: np.ndarray) -> None:
    found = rising_logistic(features, verdicts, np.ones(40))
    assert min(found.weights) >= 0
    assert np.isfinite([*found.weights, found.bias]).all()


def test_slopes_that_are_there_are_found() -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(20_000, 2))
    true = Confidence((1.5, 0.5), -0.7)
    verdicts = random.random(20_000) < [true.of(row) for row in features.tolist()]
    found = rising_logistic(features, verdicts, np.ones(20_000))
    np.testing.assert_allclose([*found.weights, found.bias], [1.5, 0.5, -0.7], atol=0.08)

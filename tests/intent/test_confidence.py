from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import binom

from intent.confidence import DOUBT, Confidence, RiskTable, most_wrong
from intent.fit_stages import rising_logistic


def test_a_confidence_is_a_logistic_function() -> None:
    assert Confidence((2.0, 1.0), -1.0).of([0.25, 0.5]) == 0.5
    assert Confidence((1.0,), 0.0).of([1e9]) == pytest.approx(1.0)
    assert Confidence((1.0,), 0.0).of([-1e9]) == pytest.approx(0.0, abs=1e-12)


def _world(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    confidences = random.beta(4, 1, n)
    return confidences, random.random(n) > confidences


@pytest.mark.parametrize("risk", [0.02, 0.05])
@pytest.mark.parametrize("n", [400, 2000])
def test_a_stated_risk_is_kept_in_nine_draws_of_ten(risk: float, n: int) -> None:
    random = np.random.default_rng(3)
    sample, is_wrong = _world(random, 200_000)
    wrong, answered = [], []
    for _ in range(300):
        threshold = RiskTable.of(*_world(random, n)).threshold(risk)
        wrong.append((is_wrong & (sample >= threshold)).mean())
        answered.append((sample >= threshold).mean())
    assert np.mean(np.array(wrong) <= risk) >= 0.87
    assert np.mean(wrong) >= risk * 0.4  # not by answering nothing
    assert np.mean(answered) > 0.2


@pytest.mark.parametrize(("n", "risk"), [(300, 0.05), (1000, 0.02), (5000, 0.01)])
def test_the_most_that_may_be_wrong_is_the_exact_binomial_bound(n: int, risk: float) -> None:
    k = most_wrong(n, risk)
    assert binom.cdf(k, n, risk) <= DOUBT < binom.cdf(k + 1, n, risk)


def test_weights_count_as_repeats_do() -> None:
    random = np.random.default_rng(1)
    confidences, is_wrong = _world(random, 500)
    times = random.integers(1, 4, 500)
    weighted = RiskTable.of(confidences, is_wrong, times.astype(np.float64))
    repeated = RiskTable.of(np.repeat(confidences, times), np.repeat(is_wrong, times))
    last_of_each = np.cumsum(times[np.argsort(-confidences, kind="stable")]) - 1
    assert weighted.n_above[-1] == pytest.approx(500)
    for name in ("n_wrong", "n_above"):
        expected = getattr(repeated, name)[last_of_each] * 500 / len(repeated.confidences)
        np.testing.assert_allclose(getattr(weighted, name), expected)


def test_too_few_texts_show_no_risk() -> None:
    table = RiskTable.of(np.array([0.9, 0.8]), np.array([False, False]))
    assert table.threshold(0.05) == RiskTable.empty().threshold(0.05) == 1.01


def test_all_right_means_answer_all() -> None:
    assert RiskTable.of(np.linspace(0, 1, 300), np.zeros(300, dtype=np.bool_)).threshold(0.01) == 0.0


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

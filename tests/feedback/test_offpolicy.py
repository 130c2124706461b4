from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from feedback.choices import Choices, Floats, Row
from feedback.excess import Excess
from feedback.offpolicy import (
    Log,
    Method,
    difference_of,
    mean_estimate,
    mean_of,
    method_for,
    value_of,
)


def no_excess(n: int) -> Excess:
    return Excess(np.zeros(n), np.full(n, 0.25), np.zeros(n), 0.0)


def log_of(
    propensity: list[float],
    target: list[float],
    value: list[float],
    excess: Excess | None = None,
    **arrays: list[float],
) -> Log:
    """A log with an outcome model that knows nothing, but for `arrays`."""
    n = len(value)
    told = {
        "served": [1.0] * n,
        "predicted": [0.0] * n,
        "predicted_target": [0.0] * n,
        "predicted_logged": [0.0] * n,
        **arrays,
    }
    return Log(
        np.array(propensity),
        np.array(target),
        value=np.array(value),
        **{name: np.array(each) for name, each in told.items()},
        excess=excess or no_excess(n),
    )


HALVES = log_of([0.5, 0.5, 0.5, 0.5], [1.0, 0.5, 0.25, 0.25], [1.0, 0.0, 1.0, 0.0])


def test_snips_is_the_weighted_mean_by_hand() -> None:
    # w = 2, 1, .5, .5
    assert value_of(HALVES, Method.SNIPS).value == pytest.approx((2 + 0.5) / 4)
    assert difference_of(HALVES, Method.SNIPS).value == pytest.approx(2.5 / 4 - 0.5)


def test_dr_and_sndr_correct_the_model_by_hand() -> None:
    excess = Excess(np.array([0.25, 0.05, 0, 0]), np.full(4, 0.25), np.array([0.1, 0.0, 0.0, 0.0]), 0.01)
    log = log_of(
        [0.5, 0.5, 0.5, 0.5],
        [1.0, 0.5, 0.25, 0.25],
        [1.0, 0.0, 1.0, 0.0],
        excess,
        predicted=[0.8, 0.4, 0.8, 0.4],
        predicted_target=[0.8, 0.6, 0.5, 0.5],
        predicted_logged=[0.6, 0.6, 0.6, 0.6],
    )
    rest = np.array([0.2, -0.4, 0.2, -0.4])
    weights, bounded = np.array([2, 1, 0.5, 0.5]), np.array([1, 1, 0.5, 0.5])
    assert value_of(log, Method.DR).value == pytest.approx(0.6 + (weights * rest).mean())
    assert difference_of(log, Method.DR).value == pytest.approx(0.0 + ((weights - 1) * rest).mean())
    told = 0.25 * 0.2 - 0.05 * 0.4
    found = value_of(log, Method.SNDR)
    assert found.value == pytest.approx(0.6 + (bounded * rest).mean() + told)
    # what decisions differ in, what the few outcomes of the excess may have by chance, what they do not tell
    terms = np.array([0.8 + 0.1, 0.6, 0.5, 0.5]) + bounded * rest
    noise = 0.25 * (0.25 * (0.25 + 2 / 4) + 0.05 * (0.05 + 2 / 4))
    assert found.se == pytest.approx(np.sqrt(terms.var(ddof=1) / 4 + noise + 0.01))
    assert difference_of(log, Method.SNDR).value == pytest.approx(0.0 + ((bounded - 1) * rest).mean() + told)


def test_effective_size_is_kishs() -> None:
    assert HALVES.effective_size == pytest.approx(16 / (4 + 1 + 0.25 + 0.25))
    assert log_of([0.5], [0.0], [1.0]).effective_size == 0.0


@pytest.mark.parametrize("method", list(Method))
def test_equal_policies_differ_by_nothing(method: Method) -> None:
    rng = np.random.default_rng(1)
    share = rng.uniform(0.05, 1, 500)
    model = rng.uniform(0, 1, 500)
    value, predicted = rng.uniform(0, 1, (2, 500))
    log = Log(share, share, np.ones(500), value, predicted, model, model, no_excess(500))
    found = difference_of(log, method)
    assert abs(found.value) < 1e-12
    assert found.high95 - found.low95 < 1e-12
    assert log.effective_size == pytest.approx(500)


@pytest.mark.parametrize("method", list(Method))
def test_a_target_that_chooses_nobody_for_half_of_them_gets_nothing_there(method: Method) -> None:
    # where it chooses somebody it does as was done: it loses the other half's reward
    rows = [Row(f"d{n}", 0, (0, 1), (0.5, 0.5), (0.5, 0.5) if n < 2 else (0.0, 0.0), 0) for n in range(4)]
    log = Log.of(Choices.of(rows), np.ones(4))
    assert value_of(log, method).value == pytest.approx(0.5)
    assert difference_of(log, method).value == pytest.approx(-0.5)


@pytest.mark.parametrize("method", [Method.SNIPS, Method.SNDR])
def test_no_logged_choice_of_the_target_is_said(method: Method) -> None:
    with pytest.raises(ValueError, match="none of the 2 logged choices"):
        value_of(log_of([0.5, 0.5], [0.0, 0.0], [1.0, 1.0]), method)


def test_an_interval_of_a_mean_is_students() -> None:
    values = np.array([0.1, 0.5, 0.4, 0.9, 0.2])
    found = mean_estimate(values)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(), scale=stats.sem(values))
    assert (found.low95, found.high95) == pytest.approx((low, high))
    assert found.low99 == pytest.approx(stats.t.interval(0.99, 4, loc=values.mean(), scale=stats.sem(values))[0])


def test_what_was_logged_has_the_plain_mean() -> None:
    assert mean_of(HALVES).value == 0.5


def test_few_outcomes_of_great_weight_make_wide_intervals() -> None:
    rng = np.random.default_rng(0)

    def width(share: float, method: Method) -> float:
        chosen = np.arange(2000) < 2000 * share
        rows = (
            Row(f"d{n}", n % 5, (0, 1), (1 - share, share), (0.0, 1.0), int(is_chosen))
            for n, is_chosen in zip(rng.permutation(2000), chosen, strict=True)
        )
        reward = (rng.random(2000) < 0.5).astype(np.float64)
        estimate = value_of(Log.of(Choices.of(rows), reward), method)
        return estimate.high95 - estimate.low95

    for method in Method:
        assert width(0.01, method) > 3.5 * width(0.5, method)


def test_a_log_is_made_of_the_decisions_whose_value_is_known() -> None:
    rows = [Row(f"d{n}", 0, (0, 1), (0.75, 0.25), (0.25, 0.75), n % 2) for n in range(6)]
    value: Floats = np.array([1.0, 0.0, np.nan, 0.5, np.nan, 0.25])
    log = Log.of(Choices.of(rows), value)
    assert len(log) == 4
    assert log.value.tolist() == [1.0, 0.0, 0.5, 0.25]
    assert log.propensity.tolist() == [0.75, 0.25, 0.25, 0.25]
    assert log.weights.tolist() == [1 / 3, 3.0, 3.0, 3.0]
    assert log.served.tolist() == [1.0] * 4


def test_snips_is_gone_by_while_outcomes_are_few() -> None:
    assert [method_for(n) for n in (1, 499, 1000, 100_000)] == [Method.SNIPS, Method.SNIPS, Method.SNDR, Method.SNDR]

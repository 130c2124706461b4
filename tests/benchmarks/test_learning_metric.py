from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.learning_metric import gap_recovered


def _outcomes(n: int = 20_000, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    draw = np.random.default_rng(seed)
    return (draw.random(n) < 0.5).astype(float), (draw.random(n) < 0.8).astype(float)


def test_a_random_order_recovers_half_of_the_gap() -> None:
    weak, strong = _outcomes()
    found = gap_recovered(np.random.default_rng(2).random(len(weak)), weak, strong)
    assert found.apgr == pytest.approx(0.5, abs=0.02)
    assert found.cpt50 == pytest.approx(0.5, abs=0.04)
    assert found.cpt80 == pytest.approx(0.8, abs=0.04)


def test_the_oracle_recovers_more_than_all_of_it_and_the_worst_order_less_than_none() -> None:
    weak, strong = _outcomes()
    assert gap_recovered(strong - weak, weak, strong).apgr > 1
    assert gap_recovered(weak - strong, weak, strong).apgr < 0


def test_requests_that_rank_alike_count_as_if_in_random_order() -> None:
    weak, strong = _outcomes()
    order = np.argsort(strong - weak)
    found = gap_recovered(np.zeros(len(weak)), weak[order], strong[order])
    assert found.apgr == pytest.approx(0.5)
    assert found.cpt50 == pytest.approx(0.5)


def test_an_order_that_puts_all_gains_first_needs_few_calls() -> None:
    weak = np.repeat([0.0, 1.0], [100, 900])
    found = gap_recovered(-np.arange(1000.0), weak, np.ones(1000))
    assert found.cpt50 == pytest.approx(0.05)
    assert found.cpt80 == pytest.approx(0.08)
    assert found.apgr == pytest.approx(0.95)


def test_a_strong_model_that_is_not_the_better_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"right 0\.400 of the time, the weak one 0\.600"):
        gap_recovered(np.arange(5.0), np.array([1.0, 1, 1, 0, 0]), np.array([1.0, 1, 0, 0, 0]))

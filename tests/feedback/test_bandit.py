from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from feedback.bandit import draw, draw_fast, propensities


def test_the_same_seed_gives_the_same_draws() -> None:
    first = draw((3.0, 5.0), (2.0, 1.0), 0.5, 256, seed=7)

    assert first.shape == (256, 2)
    assert np.array_equal(first, draw((3.0, 5.0), (2.0, 1.0), 0.5, 256, seed=7))
    assert not np.array_equal(first, draw((3.0, 5.0), (2.0, 1.0), 0.5, 256, seed=8))


def test_seeds_of_64_bits_are_taken_as_they_are_and_negative_ones_modulo_that() -> None:
    assert np.array_equal(draw((1.0,), (1.0,), 1.0, 4, seed=-1), draw((1.0,), (1.0,), 1.0, 4, seed=2**64 - 1))


@pytest.mark.parametrize(("temperature", "spread"), [(1.0, 0.1206), (0.5, 0.0623)])
def test_temperature_draws_nearer_to_the_mean(temperature: float, spread: float) -> None:
    drawn = draw((8.0,), (4.0,), temperature, 40_000, seed=1)

    # Beta(8, 4) and Beta(32, 16): standard deviations .1307 and .0673 by the formula ab / ((a+b)^2 (a+b+1))
    a, b = 8 / temperature**2, 4 / temperature**2
    assert drawn.mean() == pytest.approx(2 / 3, abs=0.005)
    assert drawn.std() == pytest.approx((a * b / ((a + b) ** 2 * (a + b + 1))) ** 0.5, rel=0.03)
    assert drawn.std() > spread


def test_propensities_are_the_shares_of_wins_above_the_floor() -> None:
    utilities = np.array([[1.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.5]])

    assert propensities(utilities, 0.0).tolist() == [0.75, 0.25, 0.0]
    assert propensities(utilities, 0.3) == pytest.approx([0.625, 0.275, 0.1])


def test_propensities_add_up_to_one() -> None:
    utilities = np.random.default_rng(1).random((256, 24))

    assert propensities(utilities, 0.02).sum() == pytest.approx(1.0, abs=1e-12)
    assert propensities(utilities, 0.02).min() >= 0.02 / 24


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.2, 9.8), (0.5, 9.5), (2.0, 8.0), (5.0, 5.0), (9.8, 0.2), (40.0, 10.0), (400.0, 3.0)]
)
def test_fast_draws_have_the_distribution_of_exact_ones(alpha: float, beta: float) -> None:
    drawn = draw_fast((alpha,), (beta,), 0.5, 200_000, seed=3)[:, 0]
    exact = stats.beta(4 * alpha, 4 * beta)
    assert float(drawn.mean()) == pytest.approx(float(exact.mean()), abs=0.002)
    assert float(drawn.std()) == pytest.approx(float(exact.std()), abs=0.001)
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert float(np.quantile(drawn, share)) == pytest.approx(float(exact.ppf(share)), abs=0.002)


def test_propensities_of_fast_draws_are_as_near_the_truth_as_those_of_exact_ones() -> None:
    rng = np.random.default_rng(5)
    of_fast, of_exact = [], []
    for seed in range(150):
        n_agents = int(rng.integers(2, 25))
        n, mean = rng.uniform(0, 100, n_agents), rng.uniform(0.2, 0.95, n_agents)
        alpha, beta = ((10 + n) * mean).tolist(), ((10 + n) * (1 - mean)).tolist()
        costs = rng.uniform(0, 0.1, n_agents)
        truth = propensities(draw(alpha, beta, 0.5, 20_000, seed + 1_000_000) - costs, 0.0)
        of_fast.append(
            np.abs(propensities(draw_fast(alpha, beta, 0.5, 256, 7_919_777 * seed) - costs, 0.0) - truth).max()
        )
        of_exact.append(np.abs(propensities(draw(alpha, beta, 0.5, 256, seed) - costs, 0.0) - truth).max())
    assert np.mean(of_fast) <= 1.2 * np.mean(of_exact)


@pytest.mark.parametrize("n_agents", [1, 3, 128, 129, 400])
def test_fast_draws_follow_from_the_seed_for_any_number_of_agents(n_agents: int) -> None:
    both = [draw_fast((2.0,) * n_agents, (3.0,) * n_agents, 0.5, 256, seed=2**63 - 7) for _ in range(2)]
    assert np.array_equal(both[0], both[1])
    assert both[0].shape == (256, n_agents)
    assert 0 < both[0].min() < both[0].max() < 1
    other = draw_fast((2.0,) * n_agents, (3.0,) * n_agents, 0.5, 256, seed=2**63 - 8)
    assert not np.array_equal(both[0], other)

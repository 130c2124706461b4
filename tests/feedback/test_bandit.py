from __future__ import annotations

import numpy as np
import pytest

from feedback.bandit import draw, propensities


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

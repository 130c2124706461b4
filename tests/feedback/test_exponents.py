from __future__ import annotations

import numpy as np
import pytest

from feedback.exponents import BOUNDS, PULL, SUM_UNIT, Exponents

ONES = (1.0, 1.0, 1.0, 1.0)


def world(true: tuple[float, ...], n: int, seed: int) -> tuple[list[list[float]], list[float]]:
    rng = np.random.default_rng(seed)
    features = rng.uniform(0.3, 1.0, (n, 4))
    return features.tolist(), (rng.random(n) < np.prod(features ** np.array(true), axis=1)).astype(float).tolist()


@pytest.mark.parametrize("true", [(1.5, 0.8, 1.0, 2.0), (0.6, 1.4, 1.0, 1.0), (1.0, 2.0, 0.5, 1.0)])
def test_known_exponents_are_recovered_from_20000_outcomes(true: tuple[float, ...]) -> None:
    exponents = Exponents()
    for features, reward in zip(*world(true, 20_000, seed=1), strict=True):
        exponents.learn_one(features, reward)

    assert exponents.value(ONES) == pytest.approx(true, abs=0.25)


def test_without_information_exponents_stay_those_of_the_policy() -> None:
    exponents, rng = Exponents(), np.random.default_rng(1)
    for reward in rng.random(2000).tolist():
        exponents.learn_one((1.0, 1.0, 1.0, 1.0), reward)

    assert exponents.value((0.5, 1.0, 2.0, 3.0)) == (0.5, 1.0, 2.0, 3.0)


def test_where_the_policy_is_right_exponents_stay_near_it() -> None:
    exponents = Exponents()
    for features, reward in zip(*world(ONES, 20_000, seed=2), strict=True):
        exponents.learn_one(features, reward)

    assert exponents.value(ONES) == pytest.approx(ONES, abs=0.15)


def test_learned_exponents_stay_within_bounds() -> None:
    low, high = Exponents(), Exponents()
    for _ in range(3000):
        low.learn_one((0.2, 1.0, 1.0, 1.0), 1.0)
        high.learn_one((0.8, 1.0, 1.0, 1.0), 0.0)

    assert low.value(ONES)[0] == BOUNDS[0]
    assert 2.0 < high.value(ONES)[0] <= BOUNDS[1]


def test_a_feature_that_the_policy_takes_out_stays_out() -> None:
    exponents = Exponents()
    for _ in range(100):
        exponents.learn_one((0.5, 0.5, 1.0, 1.0), 0.0)

    assert exponents.value((0.0, 1.0, 1.0, 10.0))[0::3] == (0.0, 10.0)
    assert exponents.value((0.0, 1.0, 1.0, 10.0))[1] > 1.0


def test_an_outcome_is_undone_exactly() -> None:
    exponents = Exponents()
    contributions = [exponents.learn_one((0.9, 0.1 + 0.04 * k, 0.7, 1.0), k % 2) for k in range(20)]
    sums = exponents.sums()
    later = [exponents.learn_one((0.5, 0.6, 0.7, 0.2), 1.0) for _ in range(5)]
    for added in later:
        exponents.add(added, -1)

    assert exponents.sums() == sums
    for added in contributions:
        exponents.add(added, -1)
    assert exponents.sums() == [0] * 14
    assert exponents.n == 0


def test_an_outcome_of_no_weight_changes_nothing() -> None:
    exponents = Exponents()
    exponents.learn_one((0.5, 0.5, 0.5, 0.5), 0.0, weight=0.0)

    assert exponents.sums() == [0] * 14


def test_taking_back_what_is_not_there_leaves_a_model_that_can_be_solved() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        exponents, other = Exponents(), Exponents()
        for features, reward in zip(*world(ONES, 20, seed=int(rng.integers(1000))), strict=True):
            exponents.learn_one(features, reward)
        for features in rng.uniform(0.01, 1.0, (40, 4)).tolist():
            exponents.add(other.learn_one(features, 1.0), -1)
            sums = exponents.sums()
            matrix = np.zeros((4, 4))
            matrix[np.triu_indices(4)] = sums[4:]
            matrix = (matrix + np.triu(matrix, 1).T) / SUM_UNIT

            assert matrix.diagonal().min() >= 0
            assert np.linalg.eigvalsh(matrix + PULL * np.eye(4)).min() > 0
            assert all(BOUNDS[0] <= w <= BOUNDS[1] for w in exponents.value(ONES))

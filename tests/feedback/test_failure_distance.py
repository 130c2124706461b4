from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from feedback.failure import Failure, FailureStage
from feedback.failure_distance import coordinates

EAST, NORTH, NONE = (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)


def failure(stage: FailureStage = FailureStage.AGENT, **fields: Any) -> Failure:
    given: dict[str, Any] = {"agent": "a", "error": "E"}
    return Failure("d", "t", 0, "default", stage, "failed", **(given | fields))


def distance2(one: Failure, other: Failure, texts: tuple[tuple[float, float], tuple[float, float]]) -> float:
    points = coordinates([one, other], np.array(texts, dtype=np.float32))
    return float(((points[0] - points[1]) ** 2).sum())


@pytest.mark.parametrize(
    ("fields", "texts", "expected"),
    [
        ({}, (EAST, EAST), 0.0),
        ({}, (EAST, NORTH), 0.05),
        ({}, (EAST, NONE), 0.025),
        ({"agent": "b"}, (EAST, EAST), 1.0),
        ({"error": "F"}, (EAST, EAST), 0.45),
        ({"error": None}, (EAST, EAST), 0.225),
        ({"agent": "b", "error": "F"}, (EAST, NORTH), 1.5),
        ({"charged": "caller"}, (EAST, EAST), 0.0),
    ],
)
def test_what_is_not_shared_adds_up(fields: dict[str, Any], texts: Any, expected: float) -> None:
    assert distance2(failure(), failure(**fields), texts) == pytest.approx(expected, abs=1e-6)


def test_words_weigh_fully_where_nothing_was_read() -> None:
    one, other = failure(FailureStage.READING), failure(FailureStage.READING, agent="b")

    assert distance2(one, other, (EAST, NORTH)) == pytest.approx(1.0)
    assert distance2(one._replace(meant="x"), other._replace(meant="x"), (EAST, NORTH)) == pytest.approx(0.4)


def test_rare_values_are_about_as_far_apart_as_frequent_ones() -> None:
    given = [failure(error=f"E{number}") for number in range(60)]
    points = coordinates(given, np.zeros((60, 2), dtype=np.float32))
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)[np.triu_indices(60, 1)]

    assert points.shape[1] < 60
    assert squared.mean() == pytest.approx(0.45, abs=0.02)
    assert squared.min() > 0.1


def test_texts_keep_their_distances_on_the_axes_that_are_kept() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((50, 20)) @ rng.standard_normal((20, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    given = [failure(FailureStage.READING)] * 50
    points = coordinates(given, vectors.astype(np.float32))
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)

    assert np.allclose(squared, 1 - vectors @ vectors.T, atol=1e-4)

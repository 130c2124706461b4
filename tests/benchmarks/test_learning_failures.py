from __future__ import annotations

import pytest

from benchmarks.learning_failures import CAUSES, planted_failures, planted_log
from intent.embedder import bundled


@pytest.mark.parametrize("seed", [0, 1])
def test_six_planted_causes_are_found_and_named(seed: int) -> None:
    found = planted_failures(seed, bundled())

    assert found.adjusted_rand >= 0.8
    assert found.named == frozenset(CAUSES)


def test_a_seed_plants_the_same_log() -> None:
    assert planted_log(7) == planted_log(7)
    assert planted_log(7).truth != planted_log(8).truth

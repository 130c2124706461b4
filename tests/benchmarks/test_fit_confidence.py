import numpy as np
import pytest

from benchmarks.bench_cards import Answered, share, shares_of_actions
from benchmarks.data_sets import Row
from benchmarks.fit_confidence import Set, confidences, fit, joined, log_loss, pooled_all, read
from benchmarks.index_search import clustered
from intent.calibrate import Calibration
from router.index import POOL_WIDTH, POOLED_ROWS, pooled


def test_pooling_of_many_rows_gives_what_the_index_gives() -> None:
    generator = np.random.default_rng(0)
    cosines = generator.uniform(0.2, 0.95, size=(20, 200))
    owners = generator.integers(30, size=200)
    scores = pooled_all(cosines, owners, 30, POOL_WIDTH, POOLED_ROWS)
    for row, found in zip(cosines, scores, strict=True):
        nearest = np.argsort(-row)
        served = pooled(owners[nearest], row[nearest].astype(np.float32))
        assert int(found.argmax()) == served[0][0]
        assert found[[owner for owner, _ in served]] == pytest.approx([score for _, score in served], abs=1e-5)


def _made_up(n_rows: int) -> Set:
    """Rows in scope lie near their own text, the others near none."""
    generator = np.random.default_rng(1)
    gold = np.where(np.arange(n_rows) % 2 == 0, np.arange(n_rows) // 2 % 5, -1)
    cosines = generator.uniform(0.0, 0.5, size=(n_rows, 5))
    inside = np.flatnonzero(gold >= 0)
    cosines[inside, gold[inside]] += generator.uniform(-0.1, 0.5, size=len(inside))
    return Set("made up", cosines, np.arange(5), gold)


def test_a_fit_is_no_worse_than_the_numbers_it_starts_from() -> None:
    whole, weights = joined([read(_made_up(400))])
    fitted = fit(whole, weights, 0.2)
    found = [log_loss(confidences(numbers, whole), whole.is_right, weights) for numbers in (fitted, Calibration())]
    assert found[0] <= found[1]
    assert fitted.similarity_weight > 0


def test_rows_in_and_out_of_scope_weigh_the_same_in_every_set() -> None:
    reads = [read(_made_up(401)), read(_made_up(30))]
    whole, weights = joined(reads)
    assert weights.sum() == pytest.approx(1)
    assert weights[whole.is_inside].sum() == pytest.approx(0.5)
    assert weights[:401].sum() == pytest.approx(0.5)


def test_shares_count_readings_and_actions() -> None:
    answered = [
        Answered(Row("x", "greet"), "greet", 0.9, "invoke", "selected"),
        Answered(Row("y", "greet"), None, 0.0, "fallback", "out_of_scope"),
    ]
    assert share(answered) == 0.5
    assert shares_of_actions(answered) == {"invoke/selected": 0.5, "fallback/out_of_scope": 0.5}


def test_clustered_vectors_have_unit_length_and_lie_together() -> None:
    vectors = clustered(10, 64, seed=0)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(10), abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[5]

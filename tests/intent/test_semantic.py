from __future__ import annotations

import numpy as np

from intent.fit_classifiers import MAX_PROTOTYPES, N_PROTOTYPES, Example, fit_classifiers
from intent.semantic import Semantic
from tests.intent.labelled import sentences, vectors_of

ROWS = sentences(("parcel", "invoice"))
VECTORS = vectors_of(row.text for row in ROWS)


def _semantic(rows: list[Example], vectors: dict[str, bytes]) -> Semantic:
    semantic = fit_classifiers(rows, vectors, 0).semantic
    assert semantic is not None
    return semantic


def test_nearness_is_that_of_the_nearest_prototype_of_each_label() -> None:
    unit = np.eye(3, dtype=np.float32)
    semantic = Semantic(np.zeros((2, 3), np.float32), np.zeros(2, np.float32), unit, np.array([0, 2]))
    scores = semantic.score(np.array([0.6, 0.8, 0.0], dtype="<f4").tobytes())
    np.testing.assert_allclose(scores.nearness, [0.8, 0.0], atol=1e-6)


def test_logits_are_linear_in_the_vector() -> None:
    weights = np.array([[1.0, 2.0], [0.0, -1.0]], dtype=np.float32)
    semantic = Semantic(weights, np.array([0.5, 0.0], np.float32), np.eye(2, dtype=np.float32), np.array([0, 1]))
    np.testing.assert_allclose(
        semantic.score(np.array([0.6, 0.8], dtype="<f4").tobytes()).logits, [2.7, -0.8], rtol=1e-5
    )


def test_few_examples_are_their_own_prototypes() -> None:
    rows = [Example("check the parcel", "a"), Example("track my parcel", "a"), Example("cancel it", "b")]
    semantic = _semantic(rows, vectors_of(row.text for row in rows))
    assert semantic.first.tolist() == [0, 2]
    for row, label in zip(rows, (0, 0, 1), strict=True):
        assert semantic.score(vectors_of([row.text])[row.text]).nearness[label] > 0.9999


def test_many_examples_have_clusters_of_unit_length() -> None:
    semantic = _semantic(ROWS, VECTORS)
    counts = np.diff([*semantic.first.tolist(), len(semantic.prototypes)])
    assert counts.max() == N_PROTOTYPES
    assert len(semantic.prototypes) <= MAX_PROTOTYPES
    np.testing.assert_allclose(np.linalg.norm(semantic.prototypes, axis=1), 1.0, atol=1e-5)


def test_two_labels_have_opposite_logits() -> None:
    rows = [Example("open the door", "open"), Example("shut the window", "shut")]
    vectors = vectors_of(row.text for row in rows)
    logits = _semantic(rows, vectors).score(vectors["open the door"]).logits
    assert logits[0] > 0 > logits[1]


def test_an_intent_without_a_trusted_vector_leaves_no_head() -> None:
    rows = [Example("open the door", "open"), Example("关门", "shut")]
    assert fit_classifiers(rows, vectors_of(row.text for row in rows), 0).semantic is None


def test_examples_without_vectors_are_left_out_of_the_head_only() -> None:
    rows = [*ROWS, Example("查一下快递", ROWS[0].intent)]
    heads = fit_classifiers(rows, VECTORS, 0)
    assert heads.semantic is not None
    assert int(heads.lexical.score("查一下快递").scores.argmax()) == heads.labels.index(ROWS[0].intent)

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.fit_job import EXAMPLES, MODEL, VECTORS, main
from intent.model_folder import load_heads, read_manifest

PAIRS = [
    ["please cancel my order", "cancel"],
    ["stop the order", "cancel"],
    ["where is my parcel", "track"],
    ["has it shipped", "track"],
]


def job(folder: Path, pairs: list[list[str]], rows: list[int]) -> None:
    """A job whose examples have a vector in these rows."""
    origin = {"encoder_id": "dummy-64", "n_examples": len(pairs), "data": {"examples": "abc"}}
    (folder / EXAMPLES).write_text(json.dumps({"examples": pairs, "origin": origin, "seed": 3}), encoding="utf-8")
    points = [np.frombuffer(DummyEmbedder().embed(pairs[row][0]).vector, dtype="<f4") for row in rows]
    np.savez(folder / VECTORS, rows=np.array(rows, dtype=np.int64), points=np.stack(points or [np.zeros(1)]))


def test_a_job_becomes_a_model_folder(tmp_path: Path) -> None:
    job(tmp_path, PAIRS, [0, 1, 2, 3])
    main(tmp_path)
    heads = load_heads(tmp_path / MODEL, encoder_id="dummy-64")
    assert heads.labels == ("cancel", "track")
    assert heads.semantic is not None
    for text, intent in PAIRS:
        assert heads.labels[int(heads.lexical.score(text).scores.argmax())] == intent
        assert heads.labels[int(heads.semantic.score(DummyEmbedder().embed(text).vector).logits.argmax())] == intent
    manifest = read_manifest(tmp_path / MODEL)
    assert (manifest.encoder_id, manifest.n_examples, manifest.data) == ("dummy-64", 4, {"examples": "abc"})


def test_a_vector_belongs_to_the_text_of_its_row(tmp_path: Path) -> None:
    # only the second example of each intent has one
    job(tmp_path, PAIRS, [3, 1])
    main(tmp_path)
    heads = load_heads(tmp_path / MODEL)
    assert heads.semantic is not None
    for text, intent in (PAIRS[1], PAIRS[3]):
        nearness = heads.semantic.score(DummyEmbedder().embed(text).vector).nearness
        assert heads.labels[int(nearness.argmax())] == intent
        assert nearness.max() == pytest.approx(1, abs=1e-5)


def test_without_any_vector_there_is_no_semantic_head(tmp_path: Path) -> None:
    job(tmp_path, PAIRS, [])
    main(tmp_path)
    assert load_heads(tmp_path / MODEL).semantic is None


def test_one_intent_is_nothing_to_fit(tmp_path: Path) -> None:
    job(tmp_path, PAIRS[:2], [0])
    with pytest.raises(ValueError, match="at least 2 intents"):
        main(tmp_path)
    assert not (tmp_path / MODEL).exists()

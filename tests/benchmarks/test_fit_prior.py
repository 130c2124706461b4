from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fit_prior import N_FAR, N_NEAR, Pool, draw, readings_of
from benchmarks.labelled import labelled, texts_of
from intent.dummy_embedder import DummyEmbedder
from intent.fit_classifiers import Example
from intent.vector_cache import VectorCache
from tests.intent.labelled import sentences

ROWS = sentences()
POOL = Pool(ROWS[:500], ROWS[500:], [f"outside {number}" for number in range(50)])


def test_rows_are_chosen_by_part_and_language(tmp_path: Path) -> None:
    rows = [
        {"text": "one", "intent": "a", "part": "val", "lang": "en"},
        {"text": "二", "intent": "a", "part": "train", "lang": "zh"},
        {"text": "two", "intent": "b"},
    ]
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    path = tmp_path / "x.jsonl"
    assert [row.text for row in labelled(path)] == ["one", "二", "two"]
    assert labelled(path, part="val") == [Example("one", "a")]
    assert labelled(path, lang="zh") == [Example("二", "a")]
    with pytest.raises(FileNotFoundError, match="neither"):
        labelled(tmp_path / "y.jsonl")


def test_texts_are_normalized_and_come_once() -> None:
    assert texts_of([Example("a  b", "x"), Example("a b", "y")], [Example("c", "x")]) == ["a b", "c"]


def test_a_world_reads_no_example_and_has_texts_of_all_three_kinds() -> None:
    for seed in range(10):
        examples, texts = draw(POOL, np.random.default_rng(seed))
        known = {each.text for each in examples}
        intents = {each.intent for each in examples}
        assert not known & {text for text, _ in texts}
        assert {intent for _, intent in texts} - {None} <= intents
        far = [text for text, intent in texts if intent is None and text.startswith("outside")]
        assert len(far) == N_FAR
        assert sum(intent is None for _, intent in texts) == N_FAR + N_NEAR


def test_readings_are_the_same_for_the_same_seed() -> None:
    cache = VectorCache(DummyEmbedder())
    one, again = (readings_of([POOL], 2, 7, cache) for _ in range(2))
    assert one == again
    assert one != readings_of([POOL], 2, 8, cache)
    assert all(each.full is not None for each in one)

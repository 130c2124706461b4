"""What the product's intake reads prompts to mean: soft intents, always by heads that were trained on other prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning_data import OutcomeTable
from benchmarks.learning_stream import Intents
from intent.cascade import N_FOUND
from intent.fit_classifiers import Example
from intent.heads import Heads
from intent.normalize import match_form, normalize
from intent.prior import stage_by_both
from intent.train import train
from intent.vector_cache import VectorCache

N_FOLDS = 5

Ints = NDArray[np.int64]


def readings_of(heads: Heads, vectors: VectorCache, prompts: Sequence[str]) -> list[Intents]:
    """(intent, confidence) of the best six, as a reading of the full stage has them."""
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    texts = [normalize(prompt) for prompt in prompts]
    known = vectors.of(texts)
    found = []
    for text in texts:
        stage = stage_by_both(heads, text, vectors.embedder.languages)
        scores = heads.lexical.score(match_form(text))
        ranked = heads.by_both(scores, known[text].vector, allowed, N_FOUND, stage)
        names = [heads.labels[place] for place in ranked.places]
        found.append(tuple(zip(names, ranked.confidences, strict=True)))
    return found


def read_by_others(vectors: VectorCache, table: OutcomeTable, cache: Path, seed: int = 0) -> tuple[list[Intents], Ints]:
    """Each fifth of the table is read by heads that were trained on the groups of the other four.

    Args:
        cache: folder in which the readings are kept, as the trainings take minutes.

    Returns:
        The readings, and of each row its fold.
    """
    folds: Ints = np.random.default_rng(seed).permutation(len(table)) % N_FOLDS
    path = cache / f"readings-{_digest(vectors, table.prompts, table.groups)}-{seed}.json"
    if not path.exists():
        found: list[Intents] = [()] * len(table)
        for fold in range(N_FOLDS):
            asked = np.flatnonzero(folds == fold)
            of_fold = read_after(vectors, table, np.flatnonzero(folds != fold), [table.prompts[each] for each in asked])
            for place, reading in zip(asked, of_fold, strict=True):
                found[place] = reading
        path.write_text(json.dumps(found), encoding="utf-8")
    kept = json.loads(path.read_text(encoding="utf-8"))
    return [tuple((intent, confidence) for intent, confidence in each) for each in kept], folds


def read_after(vectors: VectorCache, table: OutcomeTable, fitted: Ints, prompts: Sequence[str]) -> list[Intents]:
    """Prompts, by heads that were trained on these rows of the table."""
    examples = [Example(table.prompts[place], table.groups[place]) for place in fitted]
    return readings_of(train(examples, vectors).heads, vectors, prompts)


def share_read_right(readings: Sequence[Intents], groups: Sequence[str]) -> float:
    """Whose best intent is the label."""
    return sum(each[0][0] == group for each, group in zip(readings, groups, strict=True)) / len(groups)


def _digest(vectors: VectorCache, prompts: Sequence[str], groups: Sequence[str]) -> str:
    told = json.dumps([vectors.embedder.encoder_id, list(prompts), list(groups)]).encode("utf-8", "replace")
    return sha256(told).hexdigest()[:16]

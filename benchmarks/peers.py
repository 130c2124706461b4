"""Rows of bench_intents about what others do with the same encoder: the nearest example, and semantic-router."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data_sets import Row
from benchmarks.measured import Bench
from benchmarks.processes import ROOT
from benchmarks.report import Goal, Quantiles
from benchmarks.targets import NAMES
from intent.embedder import read_manifest
from intent.exam import auroc, fpr_at_recall
from intent.examples import distinct
from intent.normalize import normalize
from intent.vector_cache import VectorCache

AGGREGATIONS = {"mean": "mean of the top 5, its default", "sum": "sum of the top 5, its best"}
_N_TIMED = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer says of a text; no name where it found nothing."""

    name: str | None
    score: float


def nearest_example(bench: Bench) -> None:
    """The intent of the nearest example, and its cosine as confidence."""
    for name, title in NAMES.items():
        rows, test = distinct(bench.examples(f"{name}/train")), bench.rows(f"{name}/test")
        outside = bench.outside() if name == "clinc150" else []
        known = stacked(bench.vectors, [each.text for each in rows])
        asked = stacked(bench.vectors, [*(row.text for row in test), *outside])
        cosines = asked @ known.T
        places = cosines.argmax(axis=1).tolist()
        scores = cosines.max(axis=1).tolist()
        add_answers(bench, title, test, [Answer(rows[p].intent, s) for p, s in zip(places, scores, strict=True)])


def semantic_router(bench: Bench, python: Path, ours: Mapping[str, float], p50_ms: float) -> None:
    """semantic-router 1.1.1 with the same examples as utterances of its routes, by the same vectors.

    Args:
        bench: by whose encoder.
        python: of an environment that has it.
        ours: set → our accuracy.
        p50_ms: of our intake.
    """
    found = _answered(bench, python)
    for name in ("clinc150", "banking77"):
        test = bench.rows(f"{name}/test")
        best = 0.0
        for aggregation, what in AGGREGATIONS.items():
            answers = [Answer(*pair) for pair in found["answers"][name][aggregation]]
            best = max(best, add_answers(bench, f"{NAMES[name]}, {what}", test, answers))
        bench.report.add(f"  ours less its best on {NAMES[name]}", ours[name] - best, "%", Goal(">", 0))
    ways = {how: Quantiles.of(repeats) for how, repeats in found["ms"].items()}
    for how, quantiles in ways.items():
        bench.report.add_latency(f"a decision, CLINC150's train part, our int8 weights, {how}", quantiles)
    faster = min(quantiles.p50 for quantiles in ways.values())
    bench.report.add("  our intake is faster (p50)", faster / p50_ms, "times", Goal(">", 1))


def add_answers(bench: Bench, title: str, rows: Sequence[Row], answers: Sequence[Answer]) -> float:
    """Accuracy over the rows, and how well the score tells answers to them from the rest; the accuracy."""
    inside, outside = answers[: len(rows)], answers[len(rows) :]
    right = float(np.mean([answer.name == row.intent for answer, row in zip(inside, rows, strict=True)]))
    bench.report.add(title, right, "%", note=f"{len(rows)} rows")
    if outside:
        positive, negative = (np.array([answer.score for answer in some]) for some in (inside, outside))
        bench.report.add("  out-of-scope AUROC of its score", auroc(positive, negative), "")
        bench.report.add("  out-of-scope FPR at 95 % recall", fpr_at_recall(positive, negative), "%")
    return right


def stacked(vectors: VectorCache, texts: Sequence[str]) -> Any:
    """float32, shape (n, dim): vectors of texts as they were written."""
    forms = [normalize(text) for text in texts]
    known = vectors.of(forms)
    return np.stack([np.frombuffer(known[form].vector, dtype="<f4") for form in forms])


def _answered(bench: Bench, python: Path) -> dict[str, Any]:
    """What semantic_router_exam prints, run by another Python; the vectors go there in a file."""
    sets: dict[str, dict[str, Any]] = {}
    texts: dict[str, None] = {}
    for name in ("clinc150", "banking77"):
        routes: dict[str, list[str]] = {}
        for each in distinct(bench.examples(f"{name}/train")):
            routes.setdefault(each.intent, []).append(each.text)
        asked = [row.text for row in bench.rows(f"{name}/test")]
        asked += bench.outside() if name == "clinc150" else []
        sets[name] = {"routes": routes, "asked": [normalize(text) for text in asked]}
        texts |= dict.fromkeys(text for several in (*routes.values(), sets[name]["asked"]) for text in several)
    every = max(1, len(sets["clinc150"]["asked"]) // _N_TIMED)
    with as_file(files("intent").joinpath("weights")) as weights, tempfile.TemporaryDirectory(prefix="bench-") as made:
        file = Path(made) / "vectors.npy"
        np.save(file, stacked(bench.vectors, list(texts)))
        given = {
            "weights": str(weights),
            "max_tokens": read_manifest(weights).max_tokens,
            "vectors": str(file),
            "texts": list(texts),
            "sets": sets,
            "timed": {"set": "clinc150", "texts": sets["clinc150"]["asked"][::every], "n_repeats": 2},
        }
        command = [str(python), "-m", "benchmarks.semantic_router_exam"]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            command, input=json.dumps(given), check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=one_thread
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found

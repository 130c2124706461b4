"""How well sentences are read after training on the public sets, by the targets of the project.

`python -m benchmarks.bench_intents --data DIR [--cache FOLDER] [--quick] [--json]`

Confidences and thresholds come from training and validation rows, by cross-validation where there are none; a test file
is opened to be measured on and for nothing else.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.labelled import labelled, texts_of
from benchmarks.report import Goal, Quantiles, Report
from intent.embedder import bundled
from intent.evaluate import Embed, Read, figures, read_all
from intent.exam import auroc, fpr_at_recall
from intent.fit_classifiers import Example
from intent.heads import Heads
from intent.normalize import match_form, normalize
from intent.train import Trained, train
from intent.vector_cache import VectorCache
from models.ports import Embedded
from router.assemble import capability_texts
from router.card_files import read_card_files

N_SEEDS = 5
NEVER = 1.01
OUT_OF_SCOPE_FILES = ("oos_val", "oos_train", "oos_train_plus")


@dataclass(frozen=True, slots=True)
class Bench:
    """What every part needs.

    Attributes:
        intents: folder of the data sets.
        quick: leaves out what takes long.
    """

    report: Report
    intents: Path
    cards: Path
    vectors: VectorCache
    quick: bool

    def rows(self, name: str, lang: str = "") -> list[Example]:
        """`set/part` → its rows."""
        return labelled(self.intents / f"{name}.jsonl", lang=lang)

    def embed(self, texts: Sequence[str]) -> Embed:
        """An encoder that remembers these texts."""
        known = self.vectors.of(map(normalize, texts))
        return lambda text: known[text]

    def read(self, heads: Heads, inside: Sequence[Example], outside: Sequence[str] = ()) -> list[Read]:
        """Readings by remembered vectors."""
        texts = [*inside, *((text, None) for text in outside)]
        return read_all(heads, self.embed([text for text, _ in texts]), texts)

    def accuracy(self, name: str, found: Trained, test: Sequence[Example], goal: Goal | None) -> None:
        """One line: how many of the test rows are read right."""
        readings = self.read(found.heads, test)
        note = f"{len(test)} rows, {found.metrics['n_examples']} examples, fitted in {found.metrics['fit_s']:.1f} s"
        self.report.add(name, _accuracy(readings), "%", goal, note)


def _accuracy(readings: Sequence[Read]) -> float:
    return sum(each.intent == each.expected for each in readings) / len(readings)


def clinc(bench: Bench) -> None:
    """The full set, its out-of-scope rows, stated risk, the light path, latency."""
    report = bench.report
    outside_known = texts_of(*(bench.rows(f"clinc150/{name}") for name in OUT_OF_SCOPE_FILES))
    train_rows, val = bench.rows("clinc150/train"), bench.rows("clinc150/val")
    bench.vectors.of([*texts_of(train_rows, val), *outside_known])
    found = train(train_rows, bench.vectors, held_out=val, out_of_scope=outside_known)
    test, outside = bench.rows("clinc150/test"), [each.text for each in bench.rows("clinc150/oos_test")]
    readings = bench.read(found.heads, test, outside)
    shown = figures(found.heads, readings)
    report.section(f"CLINC150: train, confidences on val and {len(outside_known)} out-of-scope rows of train and val")
    report.add("right in scope", shown["accuracy"], "%", Goal(">=", 0.965), f"{len(test)} rows")
    report.add("out-of-scope AUROC", shown["oos_auroc"], "", Goal(">=", 0.98), f"{len(outside)} rows")
    report.add("out of scope above the confidence that keeps 95 % in scope", shown["oos_fpr95"], "%")
    report.add("expected calibration error", shown["ece"], "")
    report.add("macro F1", shown["macro_f1"], "")
    report.add("read by words alone, of rows in scope", shown["lexical_share"], "%", Goal(">=", 0.7))
    report.add("  right among those", shown["lexical_accuracy"], "%")
    always = bench.read(replace(found.heads, early=NEVER), test, outside)
    n_lost = sum(each.intent == each.expected for each in always if each.expected)
    n_lost -= sum(each.intent == each.expected for each in readings if each.expected)
    report.add("  rows lost by it", n_lost, "", Goal("<=", 0))
    report.add("  out-of-scope AUROC with the encoder always", _auroc(always), "")
    for risk, wrong, answered in (("0.01", None, None), ("0.02", 0.026, 0.88), ("0.05", 0.058, 0.96)):
        name = f"risk stated as {float(risk):.0%} of all requests"
        goals = (None if wrong is None else Goal("<=", wrong), None if answered is None else Goal(">=", answered))
        report.add(f"{name}: wrong", shown["wrong_at_risk"][risk], "%", goals[0])
        report.add(f"{name}: answered in scope", shown["coverage_at_risk"][risk], "%", goals[1])
    report.add("training, vectors at hand, val given", found.metrics["fit_s"], "s", Goal("<=", 15))
    latency(bench, found.heads, test, outside)
    if not bench.quick:
        started = time.perf_counter()
        train(train_rows, VectorCache(bench.vectors.embedder))
        report.add("training, nothing at hand, cross-validated", time.perf_counter() - started, "s", Goal("<=", 60))


def latency(bench: Bench, heads: Heads, test: Sequence[Example], outside: Sequence[str]) -> None:
    """One thread, each text encoded anew."""
    texts = [*test, *((text, None) for text in outside)][:: 4 if bench.quick else 1]
    repeats = 1 if bench.quick else 3
    gc.collect()
    gc.freeze()
    whole = [[each.ms for each in read_all(heads, bench.vectors.embedder.embed, texts)] for _ in range(repeats)]
    words = [[_lexical_ms(heads, text) for text, _ in texts] for _ in range(repeats)]
    gc.unfreeze()
    bench.report.add_latency("a reading, one thread", Quantiles.of(whole), Goal("<=", 0.15), Goal("<=", 3))
    bench.report.add_latency("words alone, 150 intents", Quantiles.of(words), Goal("<=", 0.1), Goal("<=", 0.25))
    matrix_mb = heads.lexical.weights.nbytes / 2**20
    bench.report.add("matrix of the words", matrix_mb, "MB", Goal("<=", 64))


def _lexical_ms(heads: Heads, raw: str) -> float:
    form = match_form(normalize(raw))
    started = time.perf_counter()
    heads.lexical.score(form)
    return 1000 * (time.perf_counter() - started)


def _auroc(readings: Sequence[Read]) -> float:
    inside, outside = _confidences(readings)
    return auroc(inside, outside)


def _confidences(readings: Sequence[Read]) -> tuple[Any, Any]:
    inside = np.array([each.confidence for each in readings if each.expected is not None])
    return inside, np.array([each.confidence for each in readings if each.expected is None])


def full_and_few(bench: Bench) -> None:
    """The other full sets, and 10 examples an intent."""
    bench.report.section("full training sets; BANKING77 all of train, cross-validated; HWU64 confidences on val")
    banking = train(bench.rows("banking77/train"), bench.vectors)
    bench.accuracy("BANKING77", banking, bench.rows("banking77/test"), Goal(">=", 0.942))
    hwu = train(bench.rows("hwu64/train"), bench.vectors, held_out=bench.rows("hwu64/val"))
    bench.accuracy("HWU64", hwu, bench.rows("hwu64/test"), Goal(">=", 0.92))
    bench.report.section("the published lists of 10 examples an intent, cross-validated")
    for name, goal in (("banking77", 0.87), ("clinc150", 0.915), ("hwu64", 0.825)):
        found = train(bench.rows(f"{name}/fewshot_10"), bench.vectors)
        bench.accuracy(name, found, bench.rows(f"{name}/test"), Goal(">=", goal))


def cards_alone(bench: Bench) -> None:
    """Examples and descriptions of the cards."""
    bench.report.section("the cards alone (examples, descriptions, names of the intents), cross-validated")
    for name, goal in (("clinc150", Goal(">=", 0.905)), ("banking77", None)):
        examples = [
            Example(text, capability.intent)
            for card in read_card_files([bench.cards / f"{name}.yaml"]).cards
            if card.enabled
            for capability in card.capabilities
            for text in capability_texts(capability)
        ]
        found = train(examples, bench.vectors)
        test = bench.rows(f"{name}/test")
        bench.accuracy(name, found, test, goal)
        readings = bench.read(found.heads, test, [each.text for each in bench.rows("clinc150/oos_test")])
        bench.report.add("  AUROC against the out-of-scope rows of CLINC150", _auroc(readings), "")


def near_out_of_scope(bench: Bench) -> None:
    """Intents of the same set, withheld."""
    n_seeds = 1 if bench.quick else N_SEEDS
    bench.report.section(f"near out of scope: intents of the set withheld, cross-validated, mean of {n_seeds} seed(s)")
    for name, n_withheld, goal in (("banking77", 27, 0.915), ("clinc150", 50, 0.935)):
        rows, test = bench.rows(f"{name}/train"), bench.rows(f"{name}/test")
        labels = sorted({each.intent for each in rows})
        served, both, fpr = [], [], []
        for seed in range(n_seeds):
            random = np.random.default_rng(seed)
            withheld = set(random.choice(labels, n_withheld, replace=False).tolist())
            heads = train([each for each in rows if each.intent not in withheld], bench.vectors, seed=seed).heads
            inside = [each for each in test if each.intent not in withheld]
            outside = [each.text for each in test if each.intent in withheld]
            readings = bench.read(heads, inside, outside)
            served.append(_auroc(readings))
            fpr.append(fpr_at_recall(*_confidences(readings)))
            both.append(_auroc(bench.read(replace(heads, early=NEVER), inside, outside)))
        title = f"{name}: {n_withheld} of {len(labels)} withheld, AUROC"
        spread = f"{min(served):.3f} to {max(served):.3f}"
        bench.report.add(title, float(np.mean(served)), "", Goal(">=", goal), spread)
        bench.report.add("  the same with the encoder always", float(np.mean(both)), "")
        bench.report.add("  withheld above the confidence that keeps 95 %", float(np.mean(fpr)), "%")


def chinese(bench: Bench) -> None:
    """By words: the bundled encoder knows too few of the characters."""
    bench.report.section("Chinese, by words")
    for name, parts, lang, goal in (
        ("xsid", ("valid", "test"), "zh", 0.89),
        ("home_assistant", ("train", "test"), "zh-CN", 0.93),
        ("crosswoz", ("train", "test"), "", 0.82),
    ):
        rows, test = (bench.rows(f"{name}/{part}", lang) for part in parts)
        found = train(rows, bench.vectors)
        bench.accuracy(f"{name} {lang}".strip(), found, test, Goal(">=", goal))


def nearest_example(bench: Bench) -> None:
    """What the plainest reading does: the intent of the nearest example."""
    bench.report.section("for comparison: the intent of the nearest example, same encoder")
    for name in ("clinc150", "banking77", "hwu64"):
        rows, test = bench.rows(f"{name}/train"), bench.rows(f"{name}/test")
        known = _stacked(bench.embed([each.text for each in rows]), rows)
        asked = _stacked(bench.embed([each.text for each in test]), test)
        nearest = (asked @ known.T).argmax(axis=1).tolist()
        right = [rows[place].intent == each.intent for place, each in zip(nearest, test, strict=True)]
        bench.report.add(name, float(np.mean(right)), "%")


def _stacked(embed: Embed, rows: Sequence[Example]) -> Any:
    vectors: list[Embedded] = [embed(normalize(each.text)) for each in rows]
    return np.stack([np.frombuffer(each.vector, dtype="<f4") for each in vectors])


def run(report: Report, data: Path, cache: Path, *, quick: bool) -> None:
    """All parts."""
    cache.mkdir(parents=True, exist_ok=True)
    vectors = VectorCache(bundled(), cache / "vectors.npz")
    bench = Bench(report, data / "intents", data / "cards", vectors, quick)
    for part in (clinc, full_and_few, cards_alone, near_out_of_scope, chinese, nearest_example):
        part(bench)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with cards/ and intents/ in it")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors for the next run")
    parser.add_argument("--quick", action="store_true", help="one seed, one repeat, no cold training")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    made = Report("Sentences read after training", options.json)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run(made, options.data, options.cache or Path(folder), quick=options.quick)
    made.close()

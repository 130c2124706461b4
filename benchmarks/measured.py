"""Readings of test rows by trained heads, one training a seed, and figures that several rows of the report share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data_sets import Row, read_rows
from benchmarks.labelled import labelled, texts_of
from benchmarks.report import Goal, Report
from intent.evaluate import Embed, Read, read_all
from intent.exam import auroc, fpr_at_recall
from intent.fit_classifiers import Example
from intent.heads import Heads
from intent.normalize import normalize
from intent.train import Trained, train
from intent.vector_cache import VectorCache

N_SEEDS = 5
OUT_OF_SCOPE_FILES = ("oos_val", "oos_train", "oos_train_plus")
NEVER = 1.01
"""No confidence reaches it: with heads that are early from there on the encoder always runs."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What every part needs.

    Attributes:
        intents: folder of the data sets.
        vectors: of the encoder whose heads are trained.
        n_seeds: trainings of each kind.
        n_draws: of the intents that are withheld, each with a training of its own.
        is_quick: leaves out what takes long, and repeats nothing.
    """

    report: Report
    intents: Path
    cards: Path
    vectors: VectorCache
    n_seeds: int = N_SEEDS
    n_draws: int = N_SEEDS
    is_quick: bool = False

    def task(self, name: str, part: str = "train", held_out: str = "", *, out_of_scope: bool = False) -> Task:
        """To read the test part of a set after training on other parts of it.

        Args:
            name: of the set.
            part: to train on.
            held_out: the part to fit confidences on; none means cross-validation.
            out_of_scope: whether CLINC150's out-of-scope rows of train and val are given as such.
        """
        kept = self.examples(f"{name}/{held_out}") if held_out else []
        files = OUT_OF_SCOPE_FILES if out_of_scope else ()
        outside = texts_of(*(self.examples(f"clinc150/{file}") for file in files))
        return Task(self.examples(f"{name}/{part}"), kept, outside, self.rows(f"{name}/test"))

    def examples(self, name: str, lang: str = "") -> list[Example]:
        """`set/part` → its rows, to train on."""
        return labelled(self.intents / f"{name}.jsonl", lang=lang)

    def rows(self, name: str, lang: str = "") -> list[Row]:
        """`set/part` → its rows, to measure on."""
        return read_rows(self.intents / f"{name}.jsonl", lang=lang)

    def outside(self) -> list[str]:
        """The out-of-scope test texts."""
        return [row.text for row in self.rows("clinc150/oos_test")]

    def trained(self, task: Task) -> Subject:
        """Heads of every seed, without fine-tuning."""
        texts = [each.text for each in (*task.examples, *task.held_out)]
        self.vectors.of([*map(normalize, texts), *task.out_of_scope])
        found = [
            train(task.examples, self.vectors, held_out=task.held_out, out_of_scope=task.out_of_scope, seed=seed)
            for seed in range(self.n_seeds)
        ]
        return Subject(found, self.vectors)


class Task(NamedTuple):
    """What is trained on, and what is read after it.

    Attributes:
        held_out: to fit confidences on; none means cross-validation.
        out_of_scope: texts known to mean none of the intents.
        rows: of the test part.
    """

    examples: Sequence[Example]
    held_out: Sequence[Example]
    out_of_scope: Sequence[str]
    rows: Sequence[Row]


class Readings(NamedTuple):
    """What heads make of test rows; the readings of `rows` are in their order."""

    rows: Sequence[Row]
    inside: Sequence[Read]
    outside: Sequence[Read]

    @property
    def all(self) -> list[Read]:
        """Those in scope, then those that are not."""
        return [*self.inside, *self.outside]

    @property
    def accuracy(self) -> float:
        """Share of the rows whose best reading is the label, whatever the confidence."""
        return share_right(self.inside)

    @property
    def fresh_accuracy(self) -> float:
        """The same without rows whose text is in the train part."""
        return share_right([read for row, read in zip(self.rows, self.inside, strict=True) if not row.is_repeat])

    @property
    def auroc(self) -> float:
        """Of the confidence, in scope against out of scope."""
        return auroc(confidences(self.inside), confidences(self.outside))

    @property
    def fpr95(self) -> float:
        """Share of the out-of-scope texts above the confidence that keeps 95 % of those in scope."""
        return fpr_at_recall(confidences(self.inside), confidences(self.outside))


class Subject(NamedTuple):
    """What is measured: heads, one training a seed, and the vectors that they read by."""

    trained: Sequence[Trained]
    vectors: VectorCache

    @property
    def first(self) -> Heads:
        """Those of the first seed."""
        return self.trained[0].heads

    def readings(self, rows: Sequence[Row], outside: Sequence[str] = (), *, early: bool = True) -> list[Readings]:
        """By every seed's heads.

        Args:
            rows: in scope.
            outside: texts that are not.
            early: False lets the encoder look at every text.
        """
        return [
            readings_of(each.heads if early else replace(each.heads, early=NEVER), self.vectors, rows, outside)
            for each in self.trained
        ]


def readings_of(heads: Heads, vectors: VectorCache, rows: Sequence[Row], outside: Sequence[str] = ()) -> Readings:
    """By remembered vectors."""
    texts = [*((row.text, row.intent) for row in rows), *((text, None) for text in outside)]
    embed = remembered(vectors, [text for text, _ in texts])
    found = read_all(heads, embed, texts, languages=vectors.embedder.languages)
    return Readings(rows, found[: len(rows)], found[len(rows) :])


def remembered(vectors: VectorCache, texts: Sequence[str]) -> Embed:
    """An encoder that remembers these texts."""
    known = vectors.of(map(normalize, texts))
    return lambda text: known[text]


def share_right(readings: Sequence[Read]) -> float:
    """The share whose best reading is the label; 0 of none."""
    return sum(each.intent == each.expected for each in readings) / len(readings) if readings else 0.0


def confidences(readings: Sequence[Read]) -> Any:
    """float64, shape (n,)."""
    return np.array([each.confidence for each in readings])


def add_accuracy(
    report: Report, name: str, found: Sequence[Readings], goal: Goal | None = None, note: str = ""
) -> None:
    """How many rows are read right, and, where rows stand in the train part too, how many of the others."""
    rows = found[0].rows
    n_repeats = sum(row.is_repeat for row in rows)
    size = f"{len(rows)} rows"
    report.add_spread(name, [each.accuracy for each in found], "%", goal, f"{size}, {note}" if note else size)
    if n_repeats:
        fresh = [each.fresh_accuracy for each in found]
        report.add_spread("  without rows whose text is in the train part", fresh, "%", note=f"{n_repeats} are")


Figure = Callable[[Readings], float]


def add_figure(
    report: Report, name: str, found: Sequence[Readings], figure: Figure, unit: str, goal: Goal | None = None
) -> None:
    """A figure of the readings of every seed."""
    report.add_spread(name, [figure(each) for each in found], unit, goal)

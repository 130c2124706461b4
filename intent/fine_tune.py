"""Fine-tuning: an encoder tuned on the examples, kept only where the exam says that it reads better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from intent.embedder import OnnxEmbedder
from intent.examples import distinct
from intent.export import Source, export_encoder
from intent.fit_classifiers import Example, fit_classifiers
from intent.label_text import with_label_texts
from intent.pair_embedder import PairEmbedder, write_pair
from intent.train import Trained, train
from intent.tune import Recipe, tune
from intent.vector_cache import Progress, VectorCache, silent, trusted
from models.errors import ModelError

Bar = Callable[[str], AbstractContextManager[Progress]]
"""Opens a progress bar with a title."""

HELD_OUT_SHARE = 1 / 6
"""Of the examples, and of the intents, that the exam takes where no labelled texts are held out for it."""

LEAST_INTENTS = 12
"""With fewer intents none is withheld."""

MAX_AUROC_LOSS = 0.005
"""A tuned encoder may tell unknown intents worse by so much, if it reads the known ones better."""

_N_CHECKED = 200


class Split(NamedTuple):
    """Examples divided for an exam.

    Attributes:
        rest: to tune and fit on.
        held_out: of the intents in `rest`.
        unknown: texts of intents that are not in `rest`.
    """

    rest: list[Example]
    held_out: list[Example]
    unknown: list[str]


class Contender(NamedTuple):
    """An encoder in the exam.

    Attributes:
        vectors: of it.
        trained: heads on them, and what they are worth.
        folder: where it is; None for the base.
    """

    vectors: VectorCache
    trained: Trained
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class FineTuned:
    """What came of it.

    Attributes:
        trained: heads on the vectors of the best encoder.
        encoder: folder of the encoder, for `open_encoder`; None where the base reads best.
        chosen: name of the best: `base`, `tuned`, or `both`, the two side by side.
        exam: figures of each.
    """

    trained: Trained
    encoder: Path | None
    chosen: str
    exam: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FineTuning:
    """A run over one set of examples.

    Attributes:
        base: vectors of the encoder as it is.
        folder: of that encoder.
        source: the sentence-transformers model that it was exported from.
        work: folder for what is made on the way; the tuned encoder is in it at the end.
        recipe: None takes what the number of examples speaks for.
        n_epochs: instead of the recipe's.
        seed: of the tuning, the folds and the clusters.
        bar: shows how far it is.
    """

    base: VectorCache
    folder: Path | Traversable
    source: Source
    work: Path
    recipe: Recipe | None = None
    n_epochs: int | None = None
    seed: int = 0
    bar: Bar = field(default=lambda _: nullcontext(silent))

    def run(
        self, examples: Sequence[Example], *, held_out: Sequence[Example] = (), out_of_scope: Sequence[str] = ()
    ) -> FineTuned:
        """Tune, examine the encoders on texts that none of them saw, and fit the heads of the best one.

        Without `held_out` a part of the examples and all of some intents are held out for the exam. If a tuned encoder
        passes, it is tuned again on all examples; the confidences stay those of the exam.

        Args:
            examples: texts as they were written.
            held_out: labelled texts beside the examples.
            out_of_scope: texts that mean none of the intents.

        Raises:
            ModelError: the examples have fewer than two intents, or the encoder can read those of fewer.
            EncoderError: the encoder cannot be tuned or exported.
        """
        known = distinct(examples)
        split = Split(known, list(held_out), []) if held_out else hold_out(known, self.seed)
        exam = self._exam(split, [*out_of_scope, *split.unknown])
        figures = {name: contender.trained.metrics for name, contender in exam.items()}
        chosen = best_of(figures)
        if held_out:
            return FineTuned(exam[chosen].trained, exam[chosen].folder, chosen, figures)
        if chosen == "base":
            return FineTuned(self._trained(known, self.base, (), out_of_scope), None, chosen, figures)
        tuned = self._tuned(known, "tuned", split.held_out)
        vectors, folder = VectorCache(OnnxEmbedder(tuned)), tuned
        if chosen == "both":
            vectors, folder = VectorCache(PairEmbedder(self.base.embedder, vectors.embedder)), self.work / "both"
            write_pair(self.folder, tuned, folder)
        return FineTuned(self._refitted(known, vectors, exam[chosen].trained), folder, chosen, figures)

    def _exam(self, split: Split, outside: Sequence[str]) -> dict[str, Contender]:
        """Each encoder by name, with heads fitted on the rest of the examples."""
        folder = self._tuned(split.rest, "tuned", split.held_out)
        tuned = VectorCache(OnnxEmbedder(folder))
        found = {"base": Contender(self.base, self._trained(split.rest, self.base, split.held_out, outside))}
        found["tuned"] = Contender(tuned, self._trained(split.rest, tuned, split.held_out, outside), folder)
        write_pair(self.folder, folder, self.work / "both")
        both = self.base.beside(tuned)
        found["both"] = Contender(both, self._trained(split.rest, both, split.held_out, outside), self.work / "both")
        return found

    def _trained(
        self, examples: Sequence[Example], vectors: VectorCache, held_out: Sequence[Example], outside: Sequence[str]
    ) -> Trained:
        with self.bar("embedding") as told:
            return train(examples, vectors, held_out=held_out, out_of_scope=outside, seed=self.seed, progress=told)

    def _tuned(self, examples: Sequence[Example], name: str, texts: Sequence[Example]) -> Path:
        """The folder of an encoder tuned on the examples whose vectors are to be trusted."""
        known = [Example(*pair) for pair in with_label_texts(examples)]
        vectors = trusted(self.base.of(example.text for example in known))
        readable = [example for example in known if example.text in vectors]
        n_intents = len({example.intent for example in readable})
        if n_intents < 2:
            raise ModelError(f"the encoder can read the examples of {n_intents} intent(s), tuning needs at least 2")
        recipe = self.recipe or Recipe.of(len(readable), n_intents)
        if self.n_epochs is not None:
            recipe = replace(recipe, n_epochs=self.n_epochs)
        with self.bar("tuning") as told:
            out = self.work / f"{name}.torch"
            tuned = tune(self.source, readable, out, recipe=recipe, seed=self.seed, progress=told)
        checked = [example.text for example in distinct(texts)][:_N_CHECKED]
        export_encoder(tuned, self.work / name, checked or None)
        return self.work / name

    def _refitted(self, known: Sequence[Example], vectors: VectorCache, exam: Trained) -> Trained:
        """Classifiers on all examples with the confidences that the exam fitted."""
        examples = [Example(*pair) for pair in with_label_texts(known)]
        with self.bar("embedding") as told:
            embedded = vectors.of((example.text for example in examples), told)
        heads, judged = fit_classifiers(examples, trusted(embedded), self.seed), exam.heads
        heads = replace(heads, lexical_stage=judged.lexical_stage, full_stage=judged.full_stage, early=judged.early)
        metrics = {**exam.metrics, "n_labels": len(heads.labels), "n_examples": len(examples)}
        return Trained(heads, {**metrics, "has_semantic_head": heads.semantic is not None}, len(examples))


def hold_out(examples: Sequence[Example], seed: int) -> Split:
    """A part of each intent's examples, and some intents as a whole; an intent of one example keeps it."""
    random = np.random.default_rng(seed)
    by_intent: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_intent[example.intent].append(example)
    labels = sorted(by_intent)
    n_withheld = round(HELD_OUT_SHARE * len(labels)) if len(labels) >= LEAST_INTENTS else 0
    withheld = {labels[place] for place in random.permutation(len(labels))[:n_withheld].tolist()}
    found = Split([], [], [])
    for label in labels:
        rows = [by_intent[label][place] for place in random.permutation(len(by_intent[label])).tolist()]
        if label in withheld:
            found.unknown.extend(example.text for example in rows)
            continue
        n_held = max(round(HELD_OUT_SHARE * len(rows)), 1) if len(rows) > 1 else 0
        found.held_out.extend(rows[:n_held])
        found.rest.extend(rows[n_held:])
    return found


def best_of(exam: Mapping[str, Mapping[str, Any]]) -> str:
    """The name of the best encoder.

    An encoder passes that reads more texts right than the base, and tells unknown intents at least nearly as well; of
    those that pass, the one with the largest sum of accuracy and AUROC is best.

    >>> base = {"accuracy": 0.96, "oos_auroc": 0.984}
    >>> best_of({"base": base, "tuned": {"accuracy": 0.97, "oos_auroc": 0.981}})
    'tuned'
    >>> best_of({"base": base, "tuned": {"accuracy": 0.97, "oos_auroc": 0.97}})
    'base'
    """
    base = exam["base"]
    passed = {name: _sum(figures) for name, figures in exam.items() if _passes(figures, base)}
    return max(passed, key=passed.__getitem__) if passed else "base"


def _passes(figures: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    if "accuracy" not in figures or "accuracy" not in base:
        return False
    loss = base.get("oos_auroc", 0.0) - figures.get("oos_auroc", 0.0)
    return bool(figures["accuracy"] > base["accuracy"] and loss <= MAX_AUROC_LOSS)


def _sum(figures: Mapping[str, Any]) -> float:
    return float(figures["accuracy"] + figures.get("oos_auroc", 0.0))

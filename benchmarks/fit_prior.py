"""Fits the confidences of `intent.prior`, which hold while there are few examples, on training rows only.

`python -m benchmarks.fit_prior --data DIR [--worlds 60] [--cache FILE] [--json]`

Many small worlds are drawn: 4 to 60 intents of a set with 2 to 12 examples each and their label texts. Texts of the
same intents that are no examples are in scope; texts of the set's other intents, and of no intent at all, are out of
scope. What both stages make of them is pooled. It prints what it finds beside the shipped numbers; it changes none.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.labelled import labelled, texts_of
from benchmarks.report import Report
from intent.confidence import Confidence
from intent.embedder import bundled
from intent.exam import auroc
from intent.examples import distinct
from intent.fit_classifiers import Example, fit_classifiers
from intent.fit_stages import (
    EARLY_WITHHELD,
    OUT_OF_SCOPE_WEIGHT,
    HeldOut,
    balanced,
    early_from,
    read_held_out,
    rising_logistic,
)
from intent.heads import Stage
from intent.label_text import with_label_texts
from intent.prior import PRIOR
from intent.vector_cache import VectorCache, trusted

T = TypeVar("T")

N_IN_SCOPE, N_NEAR, N_FAR = 60, 20, 20


@dataclass(frozen=True, slots=True)
class Pool:
    """A data set to draw worlds from.

    Attributes:
        examples: rows to take examples from.
        others: rows to read.
        far: texts that have nothing to do with the set.
    """

    examples: Sequence[Example]
    others: Sequence[Example]
    far: Sequence[str]


def english_pools(intents: Path) -> list[Pool]:
    """CLINC150, BANKING77 and HWU64."""

    def rows(name: str, part: str = "") -> list[Example]:
        return distinct(labelled(intents / name, part=part))

    far = texts_of(*(labelled(intents / f"clinc150/{name}.jsonl") for name in ("oos_val", "oos_train")))
    return [
        Pool(rows("clinc150/train.jsonl"), rows("clinc150/val.jsonl"), far),
        Pool(rows("banking77/train.jsonl", "train"), rows("banking77/train.jsonl", "val"), far),
        Pool(rows("hwu64/train.jsonl"), rows("hwu64/val.jsonl"), far),
    ]


def chinese_pools(intents: Path, random: np.random.Generator) -> list[Pool]:
    """The training parts of xSID, Home Assistant and CrossWOZ in two halves; far are the rows of the other sets."""
    files = (("xsid/valid.jsonl", "zh"), ("home_assistant/train.jsonl", "zh-CN"), ("crosswoz/train.jsonl", ""))
    sets = [distinct(labelled(intents / name, lang=tag)) for name, tag in files]
    pools = []
    for number, rows in enumerate(sets):
        mixed = [rows[place] for place in random.permutation(len(rows)).tolist()]
        far = [each.text for other, rows in enumerate(sets) if other != number for each in rows]
        pools.append(Pool(mixed[::2], mixed[1::2], far))
    return pools


def draw(pool: Pool, random: np.random.Generator) -> tuple[list[Example], list[tuple[str, str | None]]]:
    """(examples, texts to read) of one world."""
    labels = sorted({each.intent for each in pool.examples})
    n_labels = int(np.exp(random.uniform(np.log(4), np.log(min(60, len(labels) * 0.7)))))
    n_each = int(random.integers(2, 13))
    chosen = set(random.choice(labels, n_labels, replace=False).tolist())
    examples: list[Example] = []
    for label in sorted(chosen):
        examples += _some([each for each in pool.examples if each.intent == label], n_each, random)
    texts = {each.text for each in examples}
    known = [each for each in pool.others if each.intent in chosen and each.text not in texts]
    near = [each for each in pool.others if each.intent not in chosen and each.text not in texts]
    read: list[tuple[str, str | None]] = [*_some(known, N_IN_SCOPE, random)]
    read += [(each.text, None) for each in _some(near, N_NEAR, random)]
    read += [(text, None) for text in _some(pool.far, N_FAR, random)]
    return [Example(*pair) for pair in with_label_texts(examples)], read


def _some(items: Sequence[T], n: int, random: np.random.Generator) -> list[T]:
    return [items[place] for place in random.permutation(len(items))[:n].tolist()]


def readings_of(pools: Sequence[Pool], n_worlds: int, seed: int, vectors: VectorCache | None) -> list[HeldOut]:
    """Readings of all worlds, pooled."""
    random = np.random.default_rng(seed)
    found: list[HeldOut] = []
    for number in range(n_worlds):
        examples, texts = draw(pools[number % len(pools)], random)
        known: Mapping[str, bytes] = {}
        if vectors is not None:
            known = trusted(vectors.of([*(each.text for each in examples), *(text for text, _ in texts)]))
        found += read_held_out(fit_classifiers(examples, known, seed), texts, known)
    return found


def fitted(
    features: NDArray[np.float64], is_right: NDArray[np.bool_], in_scope: NDArray[np.bool_], shipped: Stage
) -> Stage:
    """The stage that these readings ask for."""
    scope = rising_logistic(features, in_scope, balanced(in_scope, OUT_OF_SCOPE_WEIGHT))
    right = rising_logistic(features[in_scope], is_right[in_scope], np.ones(int(in_scope.sum())))
    return Stage(scope, right, shipped.risk)


def report_stage(
    report: Report, name: str, rows: Sequence[list[float]], is_right: list[bool], in_scope: list[bool], shipped: Stage
) -> Stage:
    """What is found, what is shipped, and how far they differ."""
    report.section(f"{name}: {len(rows)} readings")
    right, inside = np.array(is_right), np.array(in_scope)
    found = fitted(np.array(rows), right, inside, shipped)
    for part in ("in_scope", "is_right"):
        report.say(f"  {part}: fitted {_shown(getattr(found, part))}")
        report.say(f"  {part}: shipped {_shown(getattr(shipped, part))}")
    by_found = np.array([found.confidence(row) for row in rows])
    by_shipped = np.array([shipped.confidence(row) for row in rows])
    report.add("mean difference of the confidences", float(np.abs(by_found - by_shipped).mean()), "")
    report.add("accuracy in scope", float(right[inside].mean()), "%")
    for how, confidences in (("fitted", by_found), ("shipped", by_shipped)):
        report.add(f"AUROC out of scope, {how}", auroc(confidences[inside], confidences[~inside]), "")
    return found


def _shown(confidence: Confidence) -> str:
    slopes = ", ".join(f"{weight:.3f}" for weight in confidence.weights)
    return f"Confidence(({slopes}), {confidence.bias:.3f})"


def run(report: Report, data: Path, n_worlds: int, cache: Path | None) -> None:
    """All three stages."""
    vectors = VectorCache(bundled(), cache)
    readings = [each for each in readings_of(english_pools(data / "intents"), n_worlds, 0, vectors) if each.full]
    inside = [each.intent is not None for each in readings]
    by_lexical = [each.by_lexical == each.intent for each in readings]
    by_both = [each.by_both == each.intent for each in readings]
    lexical = report_stage(
        report, "lexical_stage", [each.lexical for each in readings], by_lexical, inside, PRIOR.lexical_stage
    )
    report_stage(report, "full_stage", [each.full or [] for each in readings], by_both, inside, PRIOR.full_stage)
    report.section("early")
    report.add("fitted", early_from(lexical, readings, EARLY_WITHHELD), "")
    report.add("shipped", PRIOR.early, "")
    foreign = readings_of(chinese_pools(data / "intents", np.random.default_rng(0)), n_worlds, 0, None)
    report_stage(
        report,
        "foreign_stage",
        [each.lexical for each in foreign],
        [each.by_lexical == each.intent for each in foreign],
        [each.intent is not None for each in foreign],
        PRIOR.foreign_stage,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with intents/ in it")
    parser.add_argument("--worlds", type=int, default=60, help="worlds drawn for each language")
    parser.add_argument("--cache", type=Path, help="file that keeps vectors for the next run")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    made = Report("Confidences for few examples", options.json)
    run(made, options.data, options.worlds, options.cache)
    made.close()

"""Precision and recall of entities on the labelled sentences, and what it costs to look for them.

`python -m benchmarks.bench_entities [--labels FILE] [--misses] [--json]`
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.report import Goal, Quantiles, Report
from intent.entities.find import find_entities
from intent.entities.fold import fold
from intent.entities.patterns import CUES
from intent.entities.slots import fill

LABELS = Path(__file__).parents[1] / "tests" / "data" / "entities.jsonl"
SCHEMA = {"type": "object", "properties": {"order_amount": {"type": "number"}, "time": {"type": "string"}}}
N_REPEATS = 5

Label = tuple[str, str, Any]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and what stands in it, as (kind, text, value)."""

    text: str
    now: datetime
    labels: Counter[Label]

    @property
    def is_chinese(self) -> bool:
        """Whether any Chinese character stands in it."""
        return any("一" <= character <= "鿿" for character in self.text)


@dataclass(slots=True)
class Score:
    """Counts of right, surplus and missed entities. An entity is right if kind, words and value all are."""

    right: Counter[str] = field(default_factory=Counter)
    surplus: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)

    def add(self, labels: Counter[Label], found: Counter[Label]) -> None:
        """Count one sentence."""
        for into, some in ((self.right, labels & found), (self.surplus, found - labels), (self.missed, labels - found)):
            into.update({kind: 0 for kind, _, _ in some})
            for (kind, _, _), n in some.items():
                into[kind] += n

    def precision(self, kind: str | None = None) -> float:
        """Share of the found ones that are right; 1 where none was found."""
        return _share(_count(self.right, kind), _count(self.surplus, kind))

    def recall(self, kind: str | None = None) -> float:
        """Share of the labelled ones that were found; 1 where there is none."""
        return _share(_count(self.right, kind), _count(self.missed, kind))


def read_labels(path: Path = LABELS) -> list[Sentence]:
    """The labelled sentences."""
    sentences = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        labels = Counter((each["kind"], each["text"], each["value"]) for each in row["entities"])
        sentences.append(Sentence(row["text"], datetime.fromisoformat(row["now"]), labels))
    return sentences


def found_in(sentence: Sentence) -> Counter[Label]:
    """What the finder says of a sentence, in the form of the labels."""
    found = find_entities(sentence.text, now=sentence.now)
    return Counter((each.kind, each.text, each.value) for each in found)


def score(sentences: Sequence[Sentence]) -> Score:
    """All sentences counted."""
    total = Score()
    for sentence in sentences:
        total.add(sentence.labels, found_in(sentence))
    return total


def _count(counts: Counter[str], kind: str | None) -> int:
    return counts.total() if kind is None else counts[kind]


def _share(right: int, wrong: int) -> float:
    return right / (right + wrong) if right + wrong else 1.0


def _latency(sentences: Sequence[Sentence], look: Callable[[Sentence], object]) -> Quantiles:
    repeats = []
    for _ in range(N_REPEATS):
        took = []
        for sentence in sentences:
            start = time.thread_time()
            look(sentence)
            took.append((time.thread_time() - start) * 1000)
        repeats.append(took)
    return Quantiles.of(repeats)


def _add_scores(report: Report, name: str, sentences: Sequence[Sentence]) -> None:
    total = score(sentences)
    n_labels = sum(sentence.labels.total() for sentence in sentences)
    report.section(f"{name}: {len(sentences)} sentences, {n_labels} entities")
    report.add("precision", total.precision(), "%", Goal(">=", 0.95))
    report.add("recall", total.recall(), "%", Goal(">=", 0.95))
    for kind in sorted(total.right | total.missed | total.surplus):
        n = total.right[kind] + total.missed[kind]
        report.add(f"{kind}: precision", total.precision(kind), "%")
        report.add(f"{kind}: recall", total.recall(kind), "%", note=f"{n} labelled")


def _add_latencies(report: Report, sentences: Sequence[Sentence]) -> None:
    without = [sentence for sentence in sentences if not found_in(sentence)]
    cueless = [sentence for sentence in without if not CUES.search(fold(sentence.text))]
    holding = [sentence for sentence in sentences if found_in(sentence)]
    report.section("CPU time, one thread")
    report.add_latency("no digit, no word of a number", _latency(cueless, found_in), p50=Goal("<=", 0.1))
    report.add_latency("nothing to find", _latency(without, found_in), p50=Goal("<=", 0.1))
    report.add_latency("one or more entities", _latency(holding, found_in), p99=Goal("<=", 3.0))
    found = {sentence.text: find_entities(sentence.text, now=sentence.now) for sentence in holding}
    filled = _latency(holding, lambda sentence: fill(found[sentence.text], SCHEMA, sentence.text))
    report.add_latency("filling a schema of two properties", filled)
    long = [Sentence("A-1042 costs 988 块 昨天 at 5 pm, " * 3000, sentences[0].now, Counter())] * 20
    report.add_latency("100,000 characters full of them", _latency(long, found_in))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--misses", action="store_true", help="print each sentence that is not read as labelled")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sentences = read_labels(options.labels)
    report = Report("Entities", as_json=options.json)
    _add_scores(report, "all", sentences)
    _add_scores(report, "English", [each for each in sentences if not each.is_chinese])
    _add_scores(report, "Chinese", [each for each in sentences if each.is_chinese])
    _add_latencies(report, sentences)
    for sentence in sentences if options.misses else ():
        found = found_in(sentence)
        if found != sentence.labels:
            report.say(
                f"{sentence.text}\n  missed {[*(sentence.labels - found)]}\n  surplus {[*(found - sentence.labels)]}"
            )
    report.close()


if __name__ == "__main__":
    main()

"""Several intents in one sentence: NLU++ after training on texts with several labels, and sentences that join wishes.

`python -m benchmarks.bench_parts --data DIR [--cache FOLDER] [--seeds 5] [--misses] [--json]`
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
import yaml

from benchmarks.joined_wishes import report_joined
from benchmarks.report import Goal, Report
from benchmarks.serving import router_in_process
from intent.embedder import bundled
from intent.evaluate import Read, read_all
from intent.exam import set_scores
from intent.examples import Labelled, read_examples
from intent.expressed import in_order
from intent.heads import Heads
from intent.label_text import label_text
from intent.model_folder import Origin, save_heads
from intent.multi import Multi
from intent.normalize import match_form, normalize
from intent.train import Trained, train
from intent.vector_cache import VectorCache
from models.decision import Action, RouteDecision
from models.policy import Confidence
from models.request import RouteRequest
from router.permit import Grants
from router.running import Parts

DOMAINS = ("banking", "hotels")
N_NEAREST = 8
JOINT = " "
Rows = list[tuple[str, frozenset[str]]]
Sets = Sequence[Collection[str]]


def rows_of(labelled: Labelled) -> Rows:
    """(text as it is written, all that it means); nothing for what is out of scope."""
    rows = [(text, frozenset((intent,))) for text, intent in labelled.examples]
    rows += [(text, frozenset(intents)) for text, intents in labelled.multi]
    return [*rows, *((text, frozenset()) for text in labelled.out_of_scope)]


def trained_on(given: Labelled, vectors: VectorCache, seed: int = 0) -> Trained:
    """Heads as `train --examples` fits them, by cross-validation of the train part."""
    multi = Multi(given.multi, none=given.out_of_scope)
    return train(given.examples, vectors, out_of_scope=given.out_of_scope, seed=seed, multi=multi)


def nearest_sets(known: Rows, asked: Rows, vectors: VectorCache, n: int) -> list[set[str]]:
    """What the nearest examples mean: each intent that more than half of them have."""
    texts = [normalize(text) for text, _ in (*known, *asked)]
    embedded = vectors.of(texts)
    points = np.stack([np.frombuffer(embedded[text].vector, dtype="<f4") for text in texts])
    near = np.argsort(-(points[len(known) :] @ points[: len(known)].T), axis=1, kind="stable")[:, :n]
    found = []
    for places in near.tolist():
        meant = [known[place][1] for place in places]
        labels = {label for each in meant for label in each}
        found.append({label for label in labels if 2 * sum(label in each for each in meant) > n})
    return found


def report_sets(report: Report, name: str, read: Sets, meant: Sets, goal: Goal | None = None) -> None:
    """Set F1 and what goes with it."""
    found = set_scores(read, meant)
    note = f"precision {100 * found['precision']:.1f} %, recall {100 * found['recall']:.1f} %"
    report.add(f"{name}: set F1", found["f1"], "%", goal, note)
    report.add(f"{name}: sets exactly right", found["exact"], "%")
    report.add(f"{name}: F1 of each text, mean", found["f1_by_text"], "%")


def named_by(decision: RouteDecision, actions: Collection[Action]) -> set[str]:
    """Intents of the decision and its parts that ended in one of these actions."""
    each = (decision, *decision.parts)
    return {part.intent.name for part in each if part.intent is not None and part.action in actions}


async def served_sets(parts: Parts, rows: Rows) -> list[RouteDecision]:
    """What `POST /route` answers."""
    grants = Grants("bench", frozenset())
    return [(await parts["service"].route(RouteRequest(utterance=text), grants))[0] for text, _ in rows]


def cards_for(labels: Sequence[str], path: Path) -> Path:
    """A card file with one agent for all intents; nothing is to be read from it but their names."""
    schemas = {"input_schema": "none", "output_schema": "text"}
    capabilities = [{"intent": label, "description": label_text(label) or label, **schemas} for label in labels]
    card = {"agent_id": "all", "endpoint": "http://all.example/invoke", "capabilities": capabilities}
    path.write_text(yaml.safe_dump({"agents": [card]}), encoding="utf-8")
    return path


async def report_served(report: Report, trained: Trained, encoder_id: str, rows: Rows, folder: Path) -> None:
    """The same through the running service."""
    save_heads(trained.heads, folder / "model", Origin(encoder_id=encoder_id))
    cards = cards_for(trained.heads.labels, folder / "cards.yaml")
    async with router_in_process([cards], model=folder / "model") as parts:
        decisions = await served_sets(parts, rows)
    meant = [meant for _, meant in rows]
    answered = [named_by(each, (Action.INVOKE, Action.CLARIFY)) for each in decisions]
    acted = [named_by(each, (Action.INVOKE,)) for each in decisions]
    report_sets(report, "POST /route, parts that are invoked or asked about", answered, meant)
    report_sets(report, "POST /route, parts that are invoked", acted, meant)


def report_order(report: Report, heads: Heads, rows: Rows, read: Callable[[Rows], list[Read]]) -> None:
    """Two texts of one intent each, one after the other: do the parts come in that order?"""
    single = [(text, next(iter(meant))) for text, meant in rows if len(meant) == 1]
    pairs = [(first, second) for first, second in itertools.pairwise(single) if first[1] != second[1]]
    texts = [(JOINT.join((first[0], second[0])), frozenset((first[1], second[1]))) for first, second in pairs]
    both = [
        (pair, text)
        for pair, (text, meant), each in zip(pairs, texts, read(texts), strict=True)
        if meant <= each.named(Confidence().plausible)
    ]
    right = [_order(heads, text, pair) == [pair[0][1], pair[1][1]] for pair, text in both]
    report.add("two texts in one: both found", len(both) / len(pairs), "%", None, f"{len(pairs)} pairs")
    report.add("two texts in one: found in the order of the texts", float(np.mean(right)), "%", Goal(">=", 0.9))


def _order(heads: Heads, text: str, pair: tuple[tuple[str, str], tuple[str, str]]) -> list[str]:
    assert heads.relevance is not None
    form = match_form(normalize(text))
    places = [heads.labels.index(intent) for _, intent in (pair[1], pair[0])]
    found = in_order(form, heads.lexical.score(form), heads.lexical, heads.relevance.lexical, places)
    return [heads.labels[place] for place in found]


def report_seeds(report: Report, given: Labelled, asked: Rows, vectors: VectorCache, n_seeds: int) -> None:
    """What the seed of folds and clusters does to set F1."""
    found = []
    for seed in range(n_seeds):
        heads, embedder = trained_on(given, vectors, seed).heads, vectors.embedder
        readings = read_all(heads, embedder.embed, asked, languages=embedder.languages)
        named = [each.named(Confidence().plausible) for each in readings]
        found.append(set_scores(named, [meant for _, meant in asked])["f1"])
    note = f"{n_seeds} seeds, {100 * min(found):.2f} to {100 * max(found):.2f} %"
    report.add("heads, intents at least plausible: set F1, mean", float(np.mean(found)), "%", None, note)


async def report_domain(report: Report, name: str, data: Path, vectors: VectorCache, n_seeds: int) -> None:
    """Train folds to test folds of one domain."""
    given = read_examples([data / f"intents/nlupp/{name}_train.jsonl"])
    known, asked = rows_of(given), rows_of(read_examples([data / f"intents/nlupp/{name}_test.jsonl"]))
    meant = [each for _, each in asked]
    trained = trained_on(given, vectors)
    n_several = sum(len(each) > 1 for each in meant)
    about = f"{len(trained.heads.labels)} intents, {len(known)} rows to train on"
    report.section(f"nlupp {name}: {len(asked)} test rows, {n_several} of several intents, {about}")
    nearest = nearest_sets(known, asked, vectors, 1)
    report_sets(report, "nearest example's set", nearest, meant)
    report_sets(
        report, f"what most of the {N_NEAREST} nearest mean", nearest_sets(known, asked, vectors, N_NEAREST), meant
    )
    embedder = vectors.embedder

    def read(rows: Rows) -> list[Read]:
        return read_all(trained.heads, embedder.embed, rows, languages=embedder.languages)

    readings, thresholds = read(asked), Confidence()
    alone = [{each.intent} if each.confidence >= thresholds.plausible else set() for each in readings]
    report_sets(report, "the best intent alone", alone, meant)
    named = [each.named(thresholds.plausible) for each in readings]
    least = set_scores(nearest, meant)["f1"]
    report_sets(report, "heads, intents at least plausible", named, meant, Goal(">=", round(least + 0.1, 4)))
    report_seeds(report, given, asked, vectors, n_seeds)
    report_sets(report, "heads, intents that are acted on", [each.named(thresholds.accept) for each in readings], meant)
    report.add("set F1 that training states of itself", trained.metrics["set_f1"], "%", None, "cross-validation")
    report.add("reading, median", float(np.median([each.ms for each in readings])), "ms")
    report_order(report, trained.heads, asked, read)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        await report_served(report, trained, embedder.encoder_id, asked, Path(folder))


async def run(report: Report, data: Path, cache: Path | None, *, n_seeds: int, misses: bool) -> None:
    """Both domains, then the sentences of our own."""
    vectors = VectorCache(bundled(), None if cache is None else cache / "parts.vectors.npz")
    for name in DOMAINS:
        await report_domain(report, name, data, vectors, n_seeds)
    await report_joined(report, misses=misses)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with intents/ in it")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors for the next run")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each domain")
    parser.add_argument("--misses", action="store_true", help="print sentences of our own that were read wrongly")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    made = Report("Several intents in one sentence", options.json)
    asyncio.run(run(made, options.data, options.cache, n_seeds=options.seeds, misses=options.misses))
    made.close()

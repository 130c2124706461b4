"""Rows of bench_intents about what reading takes: light path, time, training, and calls of a language model."""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

import uvloop

from benchmarks.data_sets import one_namespace, permissions_of
from benchmarks.measured import Bench, Readings, Subject, Task
from benchmarks.processes import free_port
from benchmarks.report import Goal, Quantiles
from benchmarks.serving import CachedEmbedder, router_in_process
from benchmarks.targets import (
    COLD_TRAINING_S,
    INTAKE_P50_MS,
    INTAKE_P99_MS,
    LEXICAL_MB,
    LEXICAL_P50_MS,
    LEXICAL_P99_MS,
    LEXICAL_SHARE,
    MEAN_INTAKE_AIM_MS,
    MEAN_INTAKE_ASKED_MS,
    TRAINING_S,
    WITHOUT_LLM,
)
from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.evaluate import read_all
from intent.heads import Heads
from intent.intake import Intake
from intent.model_folder import Origin, save_heads
from intent.normalize import match_form, normalize
from intent.train import train
from intent.vector_cache import VectorCache
from models.decision import Action, RouteDecision
from models.policy import Confidence
from models.ports import Embedder
from models.request import RouteRequest
from router.permit import Grants
from router.running import Parts

_WARM_UP = 200
_WAIT_MS = 60_000
_THRESHOLDS: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("as shipped", {}),
    ("risk stated as 5 %", {"risk": 0.05}),
    ("risk stated as 2 %", {"risk": 0.02}),
)


def light_path(bench: Bench, subject: Subject, found: Sequence[Readings]) -> None:
    """What is read by words alone, and what that costs in accuracy."""
    always = subject.readings(found[0].rows, early=False)
    early = [[read for read in each.inside if read.is_early] for each in found]
    shares = [len(kept) / len(each.inside) for kept, each in zip(early, found, strict=True)]
    right = [sum(read.intent == read.expected for read in kept) / max(1, len(kept)) for kept in early]
    lost = [
        (with_encoder.accuracy - each.accuracy) * len(each.inside)
        for with_encoder, each in zip(always, found, strict=True)
    ]
    bench.report.add_spread("read by words alone, of rows in scope", shares, "%", Goal(">=", LEXICAL_SHARE))
    bench.report.add_spread("  right among those", right, "%")
    bench.report.add_spread("  rows lost by it", lost, "", Goal("<=", 0), f"of {len(found[0].rows)}")


def latency(bench: Bench, heads: Heads, texts: Sequence[str]) -> list[list[float]]:
    """Requests one after the other, encoded anew; the latencies of each repeat, in ms.

    Args:
        bench: with the cards that intake reads over.
        heads: in force.
        texts: in and out of scope, as they come.
    """
    asked = texts[:: 4 if bench.is_quick else 1]
    n_repeats = 1 if bench.is_quick else 3
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as made,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        cards = one_namespace(bench.cards / "clinc150.yaml", Path(made) / "clinc150.yaml")
        intake = runner.run(_intake_ms(cards, heads, bench.vectors.embedder, asked, n_repeats))
    gc.collect()
    pairs, encoder = [(text, None) for text in asked], bench.vectors.embedder
    alone = [
        [each.ms for each in read_all(heads, encoder.embed, pairs, languages=encoder.languages)]
        for _ in range(n_repeats)
    ]
    words = [[_lexical_ms(heads, text) for text in asked] for _ in range(n_repeats)]
    report = bench.report
    goals = Goal("<=", INTAKE_P50_MS), Goal("<=", INTAKE_P99_MS)
    report.add_latency("intake as served, on the event loop", Quantiles.of(intake), *goals)
    report.add_latency("  its classifiers and encoder alone, in one thread", Quantiles.of(alone))
    goals = Goal("<=", LEXICAL_P50_MS), Goal("<=", LEXICAL_P99_MS)
    report.add_latency(f"  words alone, {len(heads.labels)} intents", Quantiles.of(words), *goals)
    report.add("  matrix of the words", heads.lexical.weights.nbytes / 2**20, "MB", Goal("<=", LEXICAL_MB))
    report.say("  sentences/s over HTTP, one process: python -m benchmarks.bench_sentences")
    return intake


def mean_intake(bench: Bench, intake: Sequence[Sequence[float]]) -> None:
    """Of all test requests, in and out of scope; the median over the repeats."""
    mean = median(fmean(took) for took in intake)
    bench.report.add("mean intake, as asked for", mean, "ms", Goal("<", MEAN_INTAKE_ASKED_MS))
    bench.report.add("mean intake, our aim", mean, "ms", Goal("<", MEAN_INTAKE_AIM_MS))


def without_llm(bench: Bench, heads: Heads, inside: Sequence[str], outside: Sequence[str]) -> None:
    """Share of the requests for which a language model is not asked though one is configured.

    The router is served with these heads and an endpoint that refuses every connection; a decision that would have
    asked says `llm: …` in `degraded`, whatever the reason why it got no answer. So what is counted is what the served
    code does, not what a rule repeated here would say it does.
    """
    for title, confidence in _THRESHOLDS:
        decisions = asyncio.run(decided(bench, heads, [*inside, *outside], confidence))
        unasked = [not asks(each) for each in decisions]
        bench.report.add(f"answered without an LLM, {title}", fmean(unasked), "%", Goal(">=", WITHOUT_LLM))
        for name, part in (("in scope", slice(len(inside))), ("out of scope", slice(len(inside), None))):
            shares = Counter(each.action for each in decisions[part] if not asks(each))
            n = len(decisions[part])
            told = ", ".join(f"{action.value} {100 * shares[action] / n:.1f} %" for action in Action if shares[action])
            bench.report.add(f"  of {n} requests {name}", fmean(unasked[part]), "%", note=told)


async def decided(
    bench: Bench, heads: Heads, texts: Sequence[str], confidence: Mapping[str, float]
) -> list[RouteDecision]:
    """Decisions of a served router whose language model cannot be reached.

    Args:
        bench: with the cards and the encoder.
        heads: in force.
        texts: one request each, all permissions.
        confidence: of the policy.
    """
    encoder = await asyncio.to_thread(CachedEmbedder, bench.vectors.embedder, map(normalize, texts))
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        folder = Path(made)
        cards = one_namespace(bench.cards / "clinc150.yaml", folder / "clinc150.yaml")
        policy = folder / "policy.yaml"
        policy.write_text(json.dumps({"version": 1, "defaults": {"confidence": confidence}}), encoding="utf-8")
        save_heads(heads, folder / "heads", Origin(encoder_id=encoder.encoder_id))
        llm = {"llm_url": f"http://127.0.0.1:{free_port()}/v1", "llm_model": "nobody"}
        async with router_in_process([cards], encoder, model=folder / "heads", policy=policy, **llm) as parts:
            return await _routed(parts, texts)


def asks(decision: RouteDecision) -> bool:
    """Whether a language model was to be asked for it, or for a part of it; it must not have answered."""
    return any(note.startswith("llm:") for each in (decision, *decision.parts) for note in each.degraded)


def training_time(bench: Bench, subject: Subject, task: Task) -> None:
    """Fitting with everything at hand, and all of it from nothing."""
    warm = [each.metrics["fit_s"] for each in subject.trained]
    bench.report.add_spread("vectors at hand, val given", warm, "s", Goal("<=", TRAINING_S))
    if not bench.is_quick:
        started = time.perf_counter()
        train(task.examples, VectorCache(bench.vectors.embedder))
        took = time.perf_counter() - started
        bench.report.add("nothing at hand, cross-validated", took, "s", Goal("<=", COLD_TRAINING_S))


async def _intake_ms(
    cards: Path, heads: Heads, encoder: Embedder, texts: Sequence[str], n_repeats: int
) -> list[list[float]]:
    cascade = Cascade(Calibration())
    cascade.use(heads)
    async with router_in_process([cards], encoder, classifier=False) as parts:
        snapshot = parts["registry"].snapshot
        source, intake = snapshot.scope(("default",)), Intake(parts["pool"], cascade)
        repeats = []
        for number in range(n_repeats + 1):
            took = []
            for text in texts[:_WARM_UP] if number == 0 else texts:
                start = time.perf_counter()
                await intake.read(
                    text,
                    source,
                    rules=snapshot.rules,
                    namespace="default",
                    thresholds=Confidence(),
                    wait_ms=_WAIT_MS,
                )
                took.append(1000 * (time.perf_counter() - start))
                await asyncio.sleep(0)
            repeats.append(took)
    return repeats[1:]


def _lexical_ms(heads: Heads, raw: str) -> float:
    form = match_form(normalize(raw))
    started = time.perf_counter()
    heads.lexical.score(form)
    return 1000 * (time.perf_counter() - started)


async def _routed(parts: Parts, texts: Sequence[str]) -> list[RouteDecision]:
    grants = Grants("bench", permissions_of(parts["registry"].snapshot.cards))
    return [(await parts["service"].route(RouteRequest(utterance=text), grants))[0] for text in texts]

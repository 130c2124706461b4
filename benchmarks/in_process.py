"""Latency of a decision in this process, with and without the encoder."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.data_sets import cycled, permissions_of
from benchmarks.report import Goal, Quantiles, Report
from benchmarks.serving import CachedEmbedder, router_in_process
from intent.embedder import bundled
from models.request import RouteRequest
from router.permit import Grants
from router.running import Parts

WITHOUT_ENCODER = (Goal("<=", 0.15), Goal("<=", 0.5))
WITH_ENCODER = Goal("<=", 1.2)
_WARM_UP = 200


async def decisions_in_process(
    report: Report, cards: Sequence[Path], sentences: Sequence[str], n_calls: int, n_repeats: int, note: str
) -> Quantiles:
    """Measure and report; the quantiles with the encoder.

    Args:
        cards: card files; none means the example set.
        sentences: what is asked; taken from the start again where there are fewer than `n_calls`.
        note: what the sentences are.
    """
    utterances = [RouteRequest(utterance=text) for text in cycled(sentences, n_calls)]
    async with router_in_process(cards) as parts:
        names = sorted({entry.capability.intent for entry in parts["registry"].snapshot.entries if entry.flaw is None})
        given = [RouteRequest(intent=name) for name in cycled(names, n_calls)]
        report.add_latency("given intents", await _latencies(parts, given, n_repeats), *WITHOUT_ENCODER)
        with_encoder = await _latencies(parts, utterances, n_repeats)
    encoder = await asyncio.to_thread(bundled)
    cached = CachedEmbedder(encoder, ())
    async with router_in_process(cards, cached) as parts:
        await _latencies(parts, utterances, 1)  # fills the table with all that is looked at of each sentence
        n_before = cached.n_encoded
        without = await _latencies(parts, utterances, n_repeats)
        if cached.n_encoded > n_before:
            raise ValueError(f"{cached.n_encoded - n_before} texts were encoded where 0 should have been")
    report.add_latency(
        "sentences, the encoder replaced by a table of its vectors",
        without,
        *WITHOUT_ENCODER,
        note=f"{note}; the hop to the encoder's thread is in it",
    )
    report.add_latency("sentences with the encoder", with_encoder, WITH_ENCODER, note=note)
    return with_encoder


async def _latencies(parts: Parts, requests: Sequence[RouteRequest], n_repeats: int) -> Quantiles:
    grants = Grants("bench", permissions_of(parts["registry"].snapshot.cards))
    route, journal = parts["service"].route, parts["journal"]
    for request in requests[:_WARM_UP]:
        await route(request, grants)
    repeats = []
    for _ in range(n_repeats):
        await journal.flush(60_000)
        gc.collect()
        took = []
        for request in requests:
            start = perf_counter()
            await route(request, grants)
            took.append((perf_counter() - start) * 1000)
            # between requests the loop turns, as it does in a server: journal and timers get their share there
            await asyncio.sleep(0)
        repeats.append(took)
    return Quantiles.of(repeats)

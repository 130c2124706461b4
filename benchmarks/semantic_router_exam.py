"""semantic-router 1.1.1 examined on labelled sets; run by bench_intents with the Python of another environment.

It imports nothing of ours but `benchmarks.semantic_router_peer`, which says what that environment has. What it reads
comes as JSON on standard input: {"weights": folder, "max_tokens": n, "vectors": file of a float32 array, "texts": [of
its rows], "sets": {set: {"routes": {name: [utterance]}, "asked": [text]}}, "timed": {"set": set, "texts": [...],
"n_repeats": n}}. It prints JSON: {"answers": {set: {aggregation: [[name, score]]}}, "ms": {how it was called: latencies
of each repeat}}. For the answers the vectors are looked up; for the latencies each text is encoded.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from semantic_router import IndexedRouter, Route
from semantic_router.encoders.base import DenseEncoder

from benchmarks.semantic_router_peer import awaited, int8_encoder, repeats_of

AGGREGATIONS = ("mean", "sum")


def table_encoder(texts: Sequence[str], vectors: Any) -> Any:
    """An encoder that looks texts up."""
    places = {text: place for place, text in enumerate(texts)}

    class TableEncoder(DenseEncoder):  # type: ignore[misc]
        def __call__(self, docs: list[Any]) -> list[list[float]]:
            return [vectors[places[text]].tolist() for text in docs]

        async def acall(self, docs: list[Any]) -> list[list[float]]:
            return self(docs)

    return TableEncoder(name="table of vectors")


async def answers(router: Any, texts: Sequence[str]) -> list[tuple[str | None, float]]:
    """The best route and its score, for each text; no threshold."""
    found = []
    for text in texts:
        choice = await router.acall(text)
        found.append((choice.name, choice.confidence or 0.0))
    return found


def routes_of(utterances: Mapping[str, Sequence[str]]) -> list[Any]:
    """As it takes them."""
    return [Route(name=name, utterances=list(texts)) for name, texts in utterances.items()]


def main() -> None:
    given = json.load(sys.stdin)
    table = table_encoder(given["texts"], np.load(given["vectors"]))
    found: dict[str, dict[str, Any]] = {}
    for name, each in given["sets"].items():
        routes = routes_of(each["routes"])
        found[name] = {
            aggregation: asyncio.run(answers(IndexedRouter(table, routes, aggregation=aggregation), each["asked"]))
            for aggregation in AGGREGATIONS
        }
    timed = given["timed"]
    router = IndexedRouter(table, routes_of(given["sets"][timed["set"]]["routes"]))
    # with the index filled by the table, each text asked is encoded by the same weights as they run here
    router.encoder = int8_encoder(Path(given["weights"]), given["max_tokens"])
    ms = {
        "called": repeats_of(router, timed["texts"], timed["n_repeats"]),
        "awaited": asyncio.run(awaited(router.acall, timed["texts"], timed["n_repeats"])),
    }
    json.dump({"answers": found, "ms": ms}, sys.stdout)


if __name__ == "__main__":
    main()

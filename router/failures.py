"""Failure clusters of a store's log: embedded, compared with the cards, clustered, and told as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feedback.clusters import Cluster, Example, FailureReport, cluster_failures
from feedback.failure import Failure
from intent.normalize import normalize
from models.card import AgentCard
from models.ports import Embedded
from router.assemble import capability_texts
from router.failure_log import FailureLog

EmbedAll = Callable[[Sequence[str]], Mapping[str, Embedded]]
"""Text → vector."""


def failure_report(
    log: FailureLog, cards: Sequence[AgentCard], embed_all: EmbedAll, *, min_size: int | None = None
) -> FailureReport:
    """Cluster what a log tells of failures; takes seconds to minutes, so not on the event loop.

    Args:
        log: the failures.
        cards: those in force: corrected utterances are compared with the texts of their intents.
        embed_all: gives unit vectors, of normalized texts; those not to be trusted are left aside.
        min_size: see `cluster_failures`.
    """
    of_intent = _texts_of(cards, log.failures)
    texts = {failure.utterance: normalize(failure.utterance) for failure in log.failures if failure.utterance}
    wanted = dict.fromkeys([*texts.values(), *(text for each in of_intent.values() for text in each)])
    found = embed_all([text for text in wanted if text]) if wanted else {}
    known = {text: np.frombuffer(each.vector, dtype="<f4") for text, each in found.items() if each.is_trusted}
    dim = next((len(vector) for vector in known.values()), 1)
    vectors = np.zeros((len(log.failures), dim), dtype=np.float32)
    for row, failure in enumerate(log.failures):
        vector = known.get(texts.get(failure.utterance, "")) if failure.utterance else None
        if vector is not None:
            vectors[row] = vector
    failures = _compared(log.failures, vectors, of_intent, known)
    return cluster_failures(
        failures, vectors, log.traffic, from_ms=log.from_ms, until_ms=log.until_ms, min_size=min_size
    )


def _texts_of(cards: Sequence[AgentCard], failures: Sequence[Failure]) -> Mapping[tuple[str, str], list[str]]:
    """By namespace and intent the texts on cards, of the intents that corrections speak of."""
    wanted = {
        (failure.namespace, intent)
        for failure in failures
        if failure.meant is not None
        for intent in (failure.intent, failure.meant)
        if intent is not None
    }
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for card in cards:
        for capability in card.capabilities if card.enabled else ():
            if (card.namespace, capability.intent) in wanted:
                texts[card.namespace, capability.intent] += capability_texts(capability)
    return texts


def _compared(
    failures: Sequence[Failure],
    vectors: NDArray[np.float32],
    texts: Mapping[tuple[str, str], list[str]],
    known: Mapping[str, NDArray[np.float32]],
) -> list[Failure]:
    """With how near the utterance is to the intents that were read and meant."""
    stacked = {
        key: np.stack(rows) for key, each in texts.items() if (rows := [known[text] for text in each if text in known])
    }

    def near(failure: Failure, vector: NDArray[np.float32], intent: str | None) -> float | None:
        rows = stacked.get((failure.namespace, intent or ""))
        return None if rows is None or not vector.any() else float((rows @ vector).max())

    return [
        failure
        if failure.meant is None
        else failure._replace(
            near_read=near(failure, vector, failure.intent), near_meant=near(failure, vector, failure.meant)
        )
        for failure, vector in zip(failures, vectors, strict=True)
    ]


def told(report: FailureReport, log: FailureLog) -> dict[str, Any]:
    """A report as JSON values."""
    return {
        "n_outcomes": log.n_outcomes,
        "n_failures": report.n_failures,
        "n_left_out": log.n_left_out,
        "from_ms": report.from_ms,
        "until_ms": report.until_ms,
        "clusters": [_cluster(cluster) for cluster in report.clusters],
        "rest": {
            "size": report.n_rest,
            "share": report.n_rest / report.n_failures if report.n_failures else 0.0,
            "examples": [_example(example) for example in report.rest],
        },
    }


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "phrases": list(cluster.phrases),
        "stage": cluster.stage.value,
        "size": cluster.size,
        "share": cluster.share,
        "trend": {**cluster.trend._asdict(), "bars": list(cluster.trend.bars)},
        "first_seen": cluster.first_seen,
        "last_seen": cluster.last_seen,
        "agents": [each._asdict() for each in cluster.agents],
        "errors": [each._asdict() for each in cluster.errors],
        "intents": [each._asdict() for each in cluster.intents],
        "fix": {**cluster.fix._asdict(), "kind": cluster.fix.kind.value},
        "examples": [_example(example) for example in cluster.examples],
    }


def _example(example: Example) -> dict[str, Any]:
    return example._asdict()

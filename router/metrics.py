"""Metrics: counters and gauges in a Prometheus registry of the service's own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from router.live_metrics import live_metrics
from router.metric_families import counter, gauge
from router.running import Parts
from router.snapshot import Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS_S = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

_MAX_KEPT = 256
"""Counters kept at hand: looking one up by its labels takes longer than counting."""


class Metrics:
    """What `/metrics` tells; agents are not named in it.

    Attributes:
        in_flight: requests under way now.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.in_flight = 0
        decisions = Counter("agency_router_decisions", "Decisions", ["action", "reason"], registry=self.registry)
        answers = Counter("agency_router_http_requests", "HTTP answers", ["status"], registry=self.registry)
        self._decisions = lru_cache(_MAX_KEPT)(decisions.labels)
        self._answers = lru_cache(_MAX_KEPT)(answers.labels)
        self._seconds = Histogram(
            "agency_router_decision_seconds", "Time of a decision", buckets=_BUCKETS_S, registry=self.registry
        )
        ProcessCollector(registry=self.registry)

    def decided(self, action: str, reason: str, seconds: float) -> None:
        """Count a decision and how long it took."""
        self._decisions(action, reason).inc()
        self._seconds.observe(seconds)

    def answered(self, status: int) -> None:
        """Count an answered HTTP request."""
        self._answers(status).inc()

    def observe(self, parts: Parts) -> None:
        """Tell of these running parts too."""
        self.registry.register(_PartsCollector(parts, self))

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)


class _PartsCollector(Collector):
    """Reads the figures where they are kept, when they are asked for."""

    def __init__(self, parts: Parts, metrics: Metrics) -> None:
        self._parts = parts
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        journal, pool = self._parts["journal"], self._parts["pool"]
        yield gauge("http_in_flight", "Requests under way", self._metrics.in_flight)
        yield gauge("journal_pending_rows", "Rows that wait to be written", journal.n_pending)
        yield gauge("journal_oldest_wait_ms", "Wait of the oldest such row", journal.oldest_wait_ms)
        yield counter("journal_written_rows", "Rows written", journal.n_written)
        yield counter("journal_failures", "Writes that failed and were tried again", journal.n_failures)
        yield counter("journal_refused_rows", "Rows that the store would not take", journal.n_refused)
        learning = self._parts["live"].learning
        yield counter("learned_outcomes", "Outcomes that were learned from", learning.n_learned)
        yield counter("learner_failures", "Failures of the learner; decisions went on without it", learning.n_failures)
        yield gauge("learning_frozen", "1 while nothing is learned", int(learning.learner.is_frozen))
        yield gauge("distrusted_callers", "Callers that are not learned from now", len(learning.watch.distrusted))
        shadow = self._parts["promotion"].shadow
        yield counter("shadow_read", "Utterances that a candidate read without an effect", shadow.n_read)
        yield counter("shadow_dropped", "Utterances that came while too many waited for it", shadow.n_dropped)
        yield counter("shadow_failed", "Utterances that it could not read", shadow.n_failed)
        yield gauge("embed_waiting", "Utterances with the encoder", pool.n_waiting)
        yield gauge("ready", "Whether decisions can be made", float(self._parts["readiness"].ready.is_set()))
        yield gauge("problems", "Parts with a problem", len(self._parts["readiness"].problems))
        yield from self._snapshot()
        yield from live_metrics(self._parts["live"].live, self._in_force(), self._parts["clock"].monotonic_ms())
        yield from _garbage()

    def _in_force(self) -> Snapshot | None:
        return self._parts["registry"].snapshot if self._parts["readiness"].ready.is_set() else None

    def _snapshot(self) -> Iterator[Metric]:
        snapshot = self._in_force()
        if snapshot is None:
            return
        yield gauge("cards", "Agent cards", len(snapshot.cards))
        yield gauge("capabilities", "Capabilities", len(snapshot.entries))
        yield gauge("index_rows", "Texts in the index", snapshot.index.n_rows)
        yield gauge("cards_generation", "Generation of the cards", snapshot.cards_generation)
        yield gauge("policy_generation", "Generation of the policy", snapshot.policy_generation)


def _garbage() -> Iterator[Metric]:
    collections = CounterMetricFamily("agency_router_gc_collections", "Garbage collections", labels=["generation"])
    collected = CounterMetricFamily("agency_router_gc_collected", "Objects collected", labels=["generation"])
    for generation, stats in enumerate(gc.get_stats()):
        collections.add_metric([str(generation)], stats["collections"])
        collected.add_metric([str(generation)], stats["collected"])
    yield collections
    yield collected
    yield gauge("gc_frozen_objects", "Objects that the collector passes over", gc.get_freeze_count())

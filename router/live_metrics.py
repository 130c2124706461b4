"""Metrics of live state; agents and callers are not named in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from router.live.breaker_state import BreakerState, BreakerView, TargetKey
from router.live.live import Live
from router.metric_families import gauge, gauges
from router.snapshot import Snapshot


def live_metrics(live: Live, snapshot: Snapshot | None, now_ms: float) -> Iterator[Metric]:
    """All families; figures are read where they are kept.

    Args:
        live: the state.
        snapshot: the cards in force; None before there are any.
        now_ms: steady clock.
    """
    views = live.breakers.listed(now_ms)
    yield gauges(
        "breakers",
        "Breakers that had calls lately or are not closed",
        ("kind", "state", "reason"),
        Counter((_kind(view), str(view.state), str(view.reason or "")) for view in views),
    )
    yield _soonest(views, now_ms)
    yield gauge("leases", "Places at agents that are taken", len(live.leases))
    yield gauge("quota_reservations", "Quota reservations that are not settled", live.quotas.n_open)
    yield gauge("ejections", "Ejections of agents that are not over", len(live.outliers.listed(now_ms)))
    if snapshot is not None:
        yield gauges("agents", "Agents by the state of their health", ("state",), _states(live, snapshot, now_ms))


def _states(live: Live, snapshot: Snapshot, now_ms: float) -> Counter[tuple[str, ...]]:
    return Counter(
        (str(live.health.state(card.key, card.heartbeat_s, now_ms, snapshot.policy.of(card.namespace).health)),)
        for card in snapshot.cards
    )


def _soonest(views: list[BreakerView], now_ms: float) -> GaugeMetricFamily:
    """In how long the next open breaker of a kind turns half open."""
    soonest: dict[tuple[str, ...], float] = {}
    for view in views:
        if view.state is BreakerState.OPEN and view.next_change_ms is not None:
            kind = (_kind(view),)
            soonest[kind] = min(soonest.get(kind, view.next_change_ms - now_ms), view.next_change_ms - now_ms)
    return gauges("breaker_next_change_ms", "Time until the next open breaker is half open", ("kind",), soonest)


def _kind(view: BreakerView) -> str:
    return "target" if isinstance(view.key, TargetKey) else "dependency"

"""Metric families under the service's own prefix."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    """A figure that rises and falls."""
    return GaugeMetricFamily(f"agency_router_{name}", text, value=value)


def gauges(name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
    """The same for each of some labels, in their order."""
    family = GaugeMetricFamily(f"agency_router_{name}", text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


def counter(name: str, text: str, value: float) -> CounterMetricFamily:
    """A figure that only rises."""
    return CounterMetricFamily(f"agency_router_{name}", text, value=value)

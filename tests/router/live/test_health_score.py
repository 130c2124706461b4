from __future__ import annotations

import doctest

import pytest

from models.card import AgentCard
from models.heartbeat import Heartbeat
from models.live_policy import HealthPolicy
from router.live import health_score as module
from router.live.health_score import (
    PROBE_SCORES,
    Layers,
    ProbeResult,
    business_score,
    probe_score,
    score,
    suggested_timeout_ms,
    warmup_factor,
)
from router.live.latencies import NOTHING, Figures
from router.standing import share_weight

CARD = AgentCard(agent_id="a", timeout_ms=1000, max_inflight=10)
POLICY = HealthPolicy()


def reported(**figures: float) -> Heartbeat:
    return Heartbeat.model_validate({"digest": "0" * 64, **figures})


def test_the_examples_hold() -> None:
    assert doctest.testmod(module) == (0, 8)


@pytest.mark.parametrize(
    ("layers", "health"),
    [
        (Layers(1.0, 1.0, 1.0), 1.0),
        (Layers(0.5, 1.0, 0.0), 0.5),
        (Layers(0.5, None, None), 0.5),
        (Layers(None, 0.0, None), 0.0),
        (Layers(None, 0.5, 1.0), 0.75),
        (Layers(), 1.0),
    ],
)
def test_health_is_the_weighted_mean_of_the_layers_with_figures(layers: Layers, health: float) -> None:
    assert score(layers, POLICY) == pytest.approx(health)


def test_a_layer_of_no_weight_is_no_layer() -> None:
    assert score(Layers(heartbeat=0.5), HealthPolicy(heartbeat=0)) == 1.0
    assert score(Layers(0.5, 0.8, 0.0), HealthPolicy(heartbeat=0, business=0)) == 0.8


def test_every_result_of_a_probe_but_a_refused_host_has_a_score() -> None:
    assert set(PROBE_SCORES) == set(ProbeResult) - {ProbeResult.REFUSED_HOST}
    assert probe_score([ProbeResult.REFUSED_HOST]) is None
    assert probe_score([ProbeResult.REFUSED_HOST, ProbeResult.OK]) == 1.0
    assert probe_score([]) is None


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"error_rate": 0.2}, 0.8),
        ({"p95_latency_ms": 1000.0}, 1.0),
        ({"p95_latency_ms": 4000.0}, 0.25),
        ({"mean_latency_ms": 1000.0}, 0.5),
        ({"mean_latency_ms": 0.0}, 1.0),
        ({"queue_depth": 10}, 0.5),
        ({"queue_depth": 0}, 1.0),
        ({"error_rate": 0.5, "p95_latency_ms": 4000.0, "queue_depth": 10}, 0.125),
        ({"load": 0.9}, None),
        ({}, None),
    ],
)
def test_business_is_made_of_what_is_reported(figures: dict[str, float], expected: float | None) -> None:
    assert business_score(CARD, NOTHING, reported(**figures), POLICY) == expected


def test_measured_figures_win_over_reported_ones_once_there_are_enough() -> None:
    beat = reported(error_rate=0.0, p95_latency_ms=10.0)
    few = Figures(19, 0.5, 19, 500.0, 500.0, 2000.0)
    enough = Figures(20, 0.5, 20, 500.0, 500.0, 2000.0)

    assert business_score(CARD, few, beat, POLICY) == 1.0
    assert business_score(CARD, few, None, POLICY) is None
    assert business_score(CARD, enough, beat, POLICY) == 0.25


def test_an_agent_that_warms_up_gets_a_little_from_the_first_moment_on() -> None:
    assert warmup_factor(0, 30) == warmup_factor(-5, 30) == 0.05
    assert warmup_factor(15_000, 30) == 0.5
    assert warmup_factor(30_000, 30) == warmup_factor(float("inf"), 30) == 1.0
    assert warmup_factor(0, 0) == 1.0


def test_the_share_weight_is_rounded_and_load_counts_from_a_tenth() -> None:
    assert share_weight(100, 1.0, 0.0) == share_weight(100, 1.0, 0.1) == 1000.0
    assert share_weight(100, 1.0, 0.3) == 333.33
    assert share_weight(0, 1.0, 0.3) == 0.0


def test_a_timeout_is_no_longer_than_a_card_may_say() -> None:
    assert suggested_timeout_ms(1000, Figures(20, 0.0, 20, 8e7, 8e7, 8e7), POLICY) == 86_400_000
    assert suggested_timeout_ms(1000, Figures(20, 0.0, 20, 0.1, 0.1, 0.1), POLICY) == 501

"""The score of an agent's health from its three layers, and what follows from it; pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import ceil
from typing import NamedTuple

from models.card import AgentCard
from models.heartbeat import Heartbeat
from models.live_policy import HealthPolicy
from router.live.latencies import Figures

LEAST_WARMUP = 0.05
"""An agent that warms up gets little from its first moment on, not nothing: else it would never be seen to work."""

MAX_TIMEOUT_MS = 86_400_000
"""The longest timeout that a card may have, and so the longest that is suggested."""


class ProbeResult(StrEnum):
    """How an interface probe ended.

    `REFUSED_HOST` says that the settings forbid to probe there: nothing was sent, and the agent is not judged by it.
    """

    OK = "ok"
    WRONG_ECHO = "wrong_echo"
    SLOW = "slow"
    GARBAGE = "garbage"
    UNREACHABLE = "unreachable"
    REFUSED_HOST = "refused_host"


PROBE_SCORES = {
    ProbeResult.OK: 1.0,
    ProbeResult.SLOW: 0.5,
    ProbeResult.WRONG_ECHO: 0.0,
    ProbeResult.GARBAGE: 0.0,
    ProbeResult.UNREACHABLE: 0.0,
}


class Layers(NamedTuple):
    """Scores, 0..1, of the layers of health; None for a layer without any figure."""

    heartbeat: float | None = None
    probe: float | None = None
    business: float | None = None


def score(layers: Layers, policy: HealthPolicy) -> float:
    """The mean of the layers that have figures, by the policy's weights; 1.0 where none has (SPEC R2).

    >>> round(score(Layers(heartbeat=1.0, business=0.3), HealthPolicy()), 3)
    0.7
    >>> score(Layers(), HealthPolicy())
    1.0
    """
    heartbeat, probe, business = layers
    total = weighted = 0.0
    if heartbeat is not None:
        total, weighted = policy.heartbeat, policy.heartbeat * heartbeat
    if probe is not None:
        total, weighted = total + policy.probe, weighted + policy.probe * probe
    if business is not None:
        total, weighted = total + policy.business, weighted + policy.business * business
    return weighted / total if total > 0 else 1.0


def probe_score(results: Iterable[ProbeResult]) -> float | None:
    """The mean of the results' scores; None where there are none that count.

    >>> probe_score([ProbeResult.OK, ProbeResult.SLOW, ProbeResult.WRONG_ECHO])
    0.5
    """
    scores = [PROBE_SCORES[result] for result in results if result is not ProbeResult.REFUSED_HOST]
    return sum(scores) / len(scores) if scores else None


def business_score(
    card: AgentCard, measured: Figures, reported: Heartbeat | None, policy: HealthPolicy
) -> float | None:
    """How well the agent does its work; None where no figure is known.

    (1 - error rate) * min(timely, unqueued), with timely = min(1, timeout of the card / P95) and unqueued =
    1 / (1 + queue depth / max_inflight): the smaller of the two, as a queue makes calls late too. Where only a mean
    latency is reported, twice that stands for the P95. A figure that is not known counts as a good one. (The project's
    own formula; the figures are SPEC R2's.)

    Args:
        card: for its timeout and `max_inflight`.
        measured: outcomes; they count from `min_outcomes` of the policy on, and then before what is reported.
        reported: the newest heartbeat, if it is of the window.
        policy: for `min_outcomes`.

    >>> card, measured = AgentCard(agent_id="a", timeout_ms=1000), Figures(40, 0.1, 36, 900.0, 800.0, p95_ms=2000.0)
    >>> business_score(card, measured, None, HealthPolicy())
    0.45
    """
    error_rate = measured.error_rate if measured.n_outcomes >= policy.min_outcomes else None
    p95_ms = measured.p95_ms if measured.n_latencies >= policy.min_outcomes else None
    queue_depth = None
    if reported is not None:
        queue_depth = reported.queue_depth
        error_rate = reported.error_rate if error_rate is None else error_rate
        p95_ms = _reported_p95_ms(reported) if p95_ms is None else p95_ms
    if error_rate is None and p95_ms is None and queue_depth is None:
        return None
    timely = min(1.0, card.timeout_ms / p95_ms) if p95_ms else 1.0
    unqueued = 1.0 / (1.0 + (queue_depth or 0) / card.max_inflight)
    return (1.0 - (error_rate or 0.0)) * min(timely, unqueued)


def _reported_p95_ms(reported: Heartbeat) -> float | None:
    if reported.p95_latency_ms is None and reported.mean_latency_ms is not None:
        return 2 * reported.mean_latency_ms
    return reported.p95_latency_ms


def warmup_factor(age_ms: float, warmup_s: float) -> float:
    """Which part of its share an agent gets that can be used since `age_ms`: age / warm-up, within [0.05, 1].

    >>> [warmup_factor(age_ms, warmup_s=60) for age_ms in (0, 15_000, 90_000)]
    [0.05, 0.25, 1.0]
    """
    if warmup_s <= 0:
        return 1.0
    return min(1.0, max(LEAST_WARMUP, age_ms / (warmup_s * 1000)))


def suggested_timeout_ms(card_timeout_ms: int, measured: Figures, policy: HealthPolicy) -> int:
    """2 * P95 + 500 (SPEC R5) once there are `min_outcomes` of known latency, else the card's timeout.

    >>> suggested_timeout_ms(15_000, Figures(20, 0.0, 20, 600.0, 500.0, p95_ms=1200.0), HealthPolicy())
    2900
    >>> suggested_timeout_ms(15_000, Figures(19, 0.0, 19, 600.0, 500.0, p95_ms=1200.0), HealthPolicy())
    15000
    """
    if measured.p95_ms is None or measured.n_latencies < policy.min_outcomes:
        return card_timeout_ms
    return min(MAX_TIMEOUT_MS, ceil(2 * measured.p95_ms + 500))

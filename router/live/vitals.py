"""Vitals: what is told of an agent's health."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from models.heartbeat import Heartbeat
from router.live.health_score import Layers, ProbeResult
from router.live.latencies import Figures


class HealthState(StrEnum):
    """What the heartbeats say: none ever, all well, some missed, too many missed (or of another card)."""

    UNKNOWN = "unknown"
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    DOWN = "down"


class DownReason(StrEnum):
    """Why an agent is down: too many heartbeats missed, or none yet with the digest of the card in force."""

    SILENT = "silent"
    DIGEST = "digest"


class Vitals(NamedTuple):
    """What a decision needs of an agent's health.

    Attributes:
        reason: why it is down; None while it is not.
        score: 0..1; 0 for one that is down.
        warmup: the part of its share that it gets, (0, 1].
    """

    state: HealthState = HealthState.UNKNOWN
    reason: DownReason | None = None
    score: float = 1.0
    warmup: float = 1.0


NEVER_HEARD = Vitals()


class ProbeReport(NamedTuple):
    """One probe; `age_ms` is how long ago it ended."""

    result: ProbeResult
    latency_ms: float
    age_ms: float


class HealthView(NamedTuple):
    """All that is known of an agent's health.

    Attributes:
        layers: the scores that `vitals.score` is made of.
        digest: the one presented with the last heartbeat; None before the first.
        beat_age_ms: how long ago that was, restarts included; None before the first.
        n_missed: periods of the card since then, without the time for which the router stood still or was not there.
        reported: the last heartbeat while it is of the window; None too where a restart has lost it.
        probes: the last ones, oldest first.
        measured: outcomes of the window.
        timeout_ms: suggested timeout.
    """

    vitals: Vitals
    layers: Layers
    digest: str | None
    beat_age_ms: float | None
    n_missed: int
    reported: Heartbeat | None
    probes: tuple[ProbeReport, ...]
    measured: Figures
    timeout_ms: int

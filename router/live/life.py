"""Life: the signs of life of one agent, and what they add up to."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import NamedTuple

from models.card import AgentCard
from models.heartbeat import Heartbeat
from models.live_policy import HealthPolicy
from router.live.health_score import Layers, ProbeResult, business_score, probe_score, score, warmup_factor
from router.live.latencies import Figures
from router.live.vitals import NEVER_HEARD, DownReason, HealthState, Vitals

N_PROBES = 3
"""So many of the last probes make the score of their layer."""

_AGEING = 60
"""Without a new one the outcomes are looked at again so many times in their window."""

_WARMUP_STEPS = 100


class Pulse(NamedTuple):
    """What the heartbeats say, and until when if no other comes."""

    state: HealthState
    reason: DownReason | None
    until_ms: float


class Life:
    """What is known of one agent. Every `time_ms` is of the clock that stands still where the router did.

    Attributes:
        digest: of the card in force.
        presented: the digest that came with the last heartbeat; None before the first.
        beat_ms: when that was.
        heard_ms: the same on the clock that never stands still, and by which `probes` have their times.
        until_ms: until then `vitals` holds for `card` and `policy`.
    """

    def __init__(self, digest: str, warm_from_ms: float) -> None:
        self.digest = digest
        self.warm_from_ms = warm_from_ms
        self.presented: str | None = None
        self.beat_ms = -inf
        self.heard_ms = -inf
        self.heartbeat: Heartbeat | None = None
        self.probes: deque[tuple[ProbeResult, float, float]] = deque(maxlen=N_PROBES)
        self.vitals = NEVER_HEARD
        self.card: AgentCard | None = None
        self.policy: HealthPolicy | None = None
        self.until_ms = -inf

    def pulse(self, heartbeat_s: float, time_ms: float, policy: HealthPolicy) -> Pulse:
        """What the heartbeats say, if one is due every `heartbeat_s`."""
        if self.presented is None:
            return Pulse(HealthState.UNKNOWN, None, inf)
        if self.presented != self.digest:
            return Pulse(HealthState.DOWN, DownReason.DIGEST, inf)
        down_ms = self.beat_ms + policy.down_after * heartbeat_s * 1000
        suspect_ms = self.beat_ms + policy.suspect_after * heartbeat_s * 1000
        if time_ms >= down_ms:
            return Pulse(HealthState.DOWN, DownReason.SILENT, inf)
        if time_ms >= suspect_ms:
            return Pulse(HealthState.SUSPECT, None, down_ms)
        return Pulse(HealthState.HEALTHY, None, min(suspect_ms, down_ms))

    def reported(self, time_ms: float, max_age_ms: float) -> Heartbeat | None:
        """The last heartbeat; None where it is `max_age_ms` old."""
        return self.heartbeat if time_ms < self.beat_ms + max_age_ms else None

    def layers(self, card: AgentCard, time_ms: float, measured: Figures, policy: HealthPolicy) -> Layers:
        """The scores of the layers."""
        return self._layers(self.pulse(card.heartbeat_s, time_ms, policy).state, card, time_ms, measured, policy)

    def look(self, card: AgentCard, time_ms: float, measured: Figures, policy: HealthPolicy) -> Vitals:
        """State and score, kept in `vitals` with the time until which they hold."""
        state, reason, until_ms = self.pulse(card.heartbeat_s, time_ms, policy)
        health = 0.0
        if state is not HealthState.DOWN:
            health = score(self._layers(state, card, time_ms, measured, policy), policy)
        warmup = warmup_factor(time_ms - self.warm_from_ms, card.warmup_s)
        if warmup < 1.0:
            until_ms = min(until_ms, time_ms + card.warmup_s * 1000 / _WARMUP_STEPS)
        if measured.n_outcomes:
            until_ms = min(until_ms, time_ms + policy.window_ms / _AGEING)
        stale_ms = self.beat_ms + policy.window_ms
        if time_ms < stale_ms < until_ms:
            until_ms = stale_ms
        self.vitals = Vitals(state, reason, health, warmup)
        self.card, self.policy, self.until_ms = card, policy, until_ms
        return self.vitals

    def _layers(
        self, state: HealthState, card: AgentCard, time_ms: float, measured: Figures, policy: HealthPolicy
    ) -> Layers:
        heartbeat: float | None = None
        if state is HealthState.HEALTHY:
            heartbeat = 1.0
        elif state is not HealthState.UNKNOWN:
            heartbeat = policy.suspect_score if state is HealthState.SUSPECT else 0.0
        probe = probe_score([result for result, _, _ in self.probes]) if self.probes else None
        reported = self.reported(time_ms, policy.window_ms)
        if reported is None and not measured.n_outcomes:
            return Layers(heartbeat, probe)
        return Layers(heartbeat, probe, business_score(card, measured, reported, policy))

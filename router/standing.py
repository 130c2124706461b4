"""Standing: what an agent can take now, as the selection needs it."""

from __future__ import annotations

from typing import NamedTuple

from models.candidate import Stage
from models.card import AgentCard
from models.live_policy import Quota

HEADROOM = 0.3
"""With less than this share of its places free an agent's load begins to weigh (`docs/selection.md`)."""


LEAST_LOAD = 0.1


class Standing(NamedTuple):
    """Live figures of an agent.

    Attributes:
        health: score, 0..1.
        load: headroom as a feature, 0..1, larger is better.
        share_weight: weight among near-equals (SPEC R2).
        latency_ms: expected; the card's timeout while nothing is measured.
        timeout_ms: suggested timeout.
        stage: what takes it out now; None means it can take a call.
        retry_after_ms: after how long that may be over; None where it is not known.
    """

    health: float
    load: float
    share_weight: float
    latency_ms: float
    timeout_ms: int
    stage: Stage | None = None
    retry_after_ms: float | None = None


class OverQuota(NamedTuple):
    """A quota of the caller's own that is used up.

    Attributes:
        told: which one, in words.
    """

    quota: Quota
    retry_after_ms: float
    told: str


def headroom(utilization: float) -> float:
    """The load feature of a share of places in use: 1 while there is room, falling to 0 as the last 30 % fill.

    >>> [headroom(0.0), headroom(0.7), round(headroom(0.85), 2), headroom(1.0)]
    [1.0, 1.0, 0.5, 0.0]
    """
    return min(1.0, max(0.0, (1.0 - utilization) / HEADROOM))


def share_weight(base: float, health: float, load: float, warmup: float = 1.0) -> float:
    """Weight among near-equals: base * health / max(load, 0.1), rounded to 2 (SPEC R2), and the part of a warm-up.

    Args:
        base: the card's weight.
        health: score, 0..1.
        load: share of the capacity in use, 0..1.
        warmup: `warmup_factor`.

    >>> share_weight(100, health=0.9, load=0.5), share_weight(100, health=0.9, load=0.5, warmup=0.25)
    (180.0, 45.0)
    """
    return round(base * health * warmup / max(load, LEAST_LOAD), 2)


def fresh_standing(card: AgentCard) -> Standing:
    """Of an agent of which nothing is known yet: able, healthy, without load."""
    return Standing(1.0, 1.0, share_weight(card.weight, 1.0, 0.0), float(card.timeout_ms), card.timeout_ms)

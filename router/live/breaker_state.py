"""What the rest of the router sees of breakers: their keys, states and changes."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from models.card import AgentKey


class TargetKey(NamedTuple):
    """The breaker between a caller and an agent."""

    caller: str
    target: AgentKey


class DependencyKey(NamedTuple):
    """The breaker of what several agents of a namespace depend on."""

    dependency: str
    namespace: str


BreakerKey: TypeAlias = TargetKey | DependencyKey


class BreakerState(StrEnum):
    """Whether calls are let through: all, none, or a few that try."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerReason(StrEnum):
    """Why a breaker changed its state."""

    FAILURE_SHARE = "failure_share"
    CONSECUTIVE_FAILURES = "consecutive_failures"
    RETRY_AFTER = "retry_after"
    PROBE_FAILED = "probe_failed"
    OPEN_TIME_OVER = "open_time_over"
    PROBES_SUCCEEDED = "probes_succeeded"
    FORGOTTEN = "forgotten"
    SWITCHED_OFF = "switched_off"


class Transition(NamedTuple):
    """One change of state.

    Attributes:
        at_ms: when it took effect, by the clock of `now_ms`.
        next_change_ms: when the open time is over, later still where a Retry-After comes in between; None where the
            next change does not come by time.
    """

    key: BreakerKey
    before: BreakerState
    after: BreakerState
    reason: BreakerReason
    at_ms: float
    next_change_ms: float | None


class BreakerView(NamedTuple):
    """What a breaker shows of itself.

    Attributes:
        reason: of its last change; None where it never changed.
        n_calls: in the window, as are `n_failures` (see `Breaker`).
        since_ms: when the state began; None where it never changed.
        next_change_ms: as in `Transition`.
    """

    key: BreakerKey
    state: BreakerState
    reason: BreakerReason | None
    n_calls: int
    n_failures: int
    since_ms: float | None
    next_change_ms: float | None

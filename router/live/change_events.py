"""Audit events of what changed in live state."""

from __future__ import annotations

from models.events import EventType
from router.live.breaker_state import TargetKey, Transition
from router.live.outliers import Ejection
from router.spans import Step


def readmitted(ejection: Ejection) -> Step:
    """The end of an ejection as an event of a span."""
    kind, _, told, tokens, latency_ms = step_of(ejection)
    return kind, "readmitted", told, tokens, latency_ms


def step_of(change: Transition | Ejection) -> Step:
    """A breaker's transition, or an ejection, as an event of a span."""
    if isinstance(change, Ejection):
        namespace, agent_id, version = change.agent
        told = {
            "intent": change.group[1],
            "namespace": namespace,
            "agent_id": agent_id,
            "version": version,
            "reason": str(change.reason),
            "for_ms": round(change.until_ms - change.at_ms),
        }
        return EventType.STATE.value, "ejected", told, 0, 0.0
    told = {"before": str(change.before), "reason": str(change.reason)}
    if isinstance(change.key, TargetKey):
        namespace, agent_id, version = change.key.target
        told |= {"caller": change.key.caller, "namespace": namespace, "agent_id": agent_id, "version": version}
    else:
        told |= {"dependency": change.key.dependency, "namespace": change.key.namespace}
    if change.next_change_ms is not None:
        told["for_ms"] = round(change.next_change_ms - change.at_ms)
    return EventType.BREAKER.value, str(change.after), told, 0, 0.0

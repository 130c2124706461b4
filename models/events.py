"""What is written down: audit events and decision records, as flat tuples that the journal batches."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EventType(StrEnum):
    """Kinds of audit events (SPEC A11)."""

    REQUEST = "request"
    READ = "read"
    ROUTE = "route"
    INVOKE = "invoke"
    TOOL_CALL = "tool_call"
    RETRY = "retry"
    FALLBACK = "fallback"
    BREAKER = "breaker"
    STATE = "state"
    VALIDATION = "validation"
    ERROR = "error"
    RESPONSE = "response"


SPAN = "span"
"""In place of an event's type: the row holds several events."""


class EventRow(NamedTuple):
    """One audit event; the store gives it its global sequence number.

    Attributes:
        payload: JSON text.
        caller: name of the key that caused it; "" while keys are off.
        happened_at: epoch, milliseconds.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    node_id: str
    event_type: str
    decision: str | None
    payload: str
    cost_tokens: int
    latency_ms: float
    happened_at: int
    caller: str


class SpanRow(NamedTuple):
    """All events of one span at one time: one row for the store, which numbers them one by one.

    Attributes:
        n_events: how many there are.
        row: holds them in its payload, JSON text: of each its type, decision, payload, cost_tokens and latency_ms. Its
            own type is SPAN.
    """

    n_events: int
    row: EventRow


class DecisionRow(NamedTuple):
    """One decision with what it was made from.

    Attributes:
        request: the request's JSON text as it was understood.
        answer: the decision's JSON text as it was sent.
        inputs: JSON text of what else decided: seed, caller's grants, digests.
    """

    decision_id: str
    trace_id: str
    caller: str
    namespace: str
    action: str
    reason: str
    intent: str | None
    agent_id: str | None
    request: str
    answer: str
    inputs: str
    happened_at: int


class GoalRow(NamedTuple):
    """The goal hash first seen under a task of a namespace."""

    namespace: str
    task_id: str
    goal_hash: str
    first_seen: int


Row = EventRow | SpanRow | DecisionRow | GoalRow

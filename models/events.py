"""What is written down: audit events and decision records, as flat tuples that the journal batches."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple


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
        session_id: the session that it served; None where it named none.
        asker: in whose name it was asked: the caller's agent id, else the name of the key.
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
    session_id: str | None = None
    asker: str = ""


class GoalRow(NamedTuple):
    """The goal hash first seen under a task of a namespace."""

    namespace: str
    task_id: str
    goal_hash: str
    first_seen: int


class OutcomeRow(NamedTuple):
    """One outcome as it came; those of a decision count in the order in which they were put.

    Attributes:
        attempt: the step of the plan, from 1.
        idempotency_key: None where it came without.
        caller: the agent in whose name the decision was asked for, else the name of the key; "" where there is neither.
        body: the outcome's JSON text.
        charged: whom it was charged to.
        received_at: epoch, milliseconds.
        learnt: what was learned from it, JSON text, so that it can be taken back; None where that is nothing.
    """

    decision_id: str
    attempt: int
    idempotency_key: str | None
    caller: str
    body: str
    charged: str
    received_at: int
    learnt: str | None = None


HOUR_MS = 3_600_000


class UsageRow(NamedTuple):
    """What was used within an hour: a difference that is added to what the store has, negative where it takes back.

    Attributes:
        hour: whole hours since the epoch, which is the instant in milliseconds // HOUR_MS.
        n_calls: attempts that have an outcome.
        n_latencies: outcomes that told how long the call took.
        latency_ms: the sum of those.
    """

    hour: int
    caller: str
    team: str
    namespace: str
    agent_id: str
    n_decisions: int
    n_calls: int
    n_succeeded: int
    tokens: int
    cost_usd: float
    n_latencies: int
    latency_ms: float


class RepeatRow(NamedTuple):
    """The decision that a caller's `Idempotency-Key` stands for; the first one put under a key stays.

    Attributes:
        body_sha256: of the request that the key came with.
        created_at: epoch, milliseconds.
    """

    caller: str
    idempotency_key: str
    body_sha256: str
    decision_id: str
    created_at: int


EVIDENCE_UNIT = 1_000_000
"""One outcome of evidence; sums of evidence are whole numbers, so that they add up the same in any order."""


class WeightRow(NamedTuple):
    """Evidence on an agent's intent: a difference that is added to what the store has.

    Attributes:
        caller: in whose name the outcomes came.
        n: outcomes, in parts of `EVIDENCE_UNIT`.
        s: their rewards, in the same parts.
    """

    namespace: str
    agent_id: str
    version: str
    intent: str
    caller: str
    n: int
    s: int


class LearnerRow(NamedTuple):
    """What else is learned of an agent, or of a namespace; replaces what the store has.

    Attributes:
        agent_id: "" for the namespace itself; "" as namespace too for the learner as a whole. So is `version`.
        body: JSON text.
        updated_at: epoch, milliseconds.
    """

    namespace: str
    agent_id: str
    version: str
    body: str
    updated_at: int


class ReviewRow(NamedTuple):
    """A correction that waits for acceptance; the last one of a decision and caller takes the place of those that wait.

    Attributes:
        text: the utterance; None where the decision had none, or it may not be kept.
        intent: the one that was read.
        correct_intent: the one that was meant, as the caller says; "" takes the correction back.
        created_at: epoch, milliseconds.
    """

    review_id: str
    decision_id: str
    caller: str
    namespace: str
    text: str | None
    intent: str | None
    correct_intent: str
    created_at: int


class ShadowRow(NamedTuple):
    """What a candidate that has no effect yet would have decided.

    Attributes:
        promotion_id: of the candidate.
        body: JSON text.
    """

    decision_id: str
    promotion_id: int
    body: str
    happened_at: int


Row = (
    EventRow
    | SpanRow
    | DecisionRow
    | GoalRow
    | OutcomeRow
    | UsageRow
    | RepeatRow
    | WeightRow
    | LearnerRow
    | ReviewRow
    | ShadowRow
)


class UsageQuery(NamedTuple):
    """Which usage is asked for, and how it is summed up.

    Attributes:
        from_hour: the first hour, as in `UsageRow`.
        to_hour: the hour after the last one.
        group: the column whose values are told apart.
        by_hour: whether hours are told apart too.
        caller: only of this one; None means of all. So do the next ones.
        limit: at most so many rows.
    """

    from_hour: int
    to_hour: int
    group: Literal["caller", "team", "namespace", "agent_id"]
    by_hour: bool
    caller: str | None = None
    team: str | None = None
    namespace: str | None = None
    agent_id: str | None = None
    limit: int = 1000

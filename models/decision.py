"""RouteDecision: the answer to a RouteRequest, with the reasons for it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from models.answer import Answer
from models.candidate import Candidate, Share
from models.reading import IntentSourceName


class Action(StrEnum):
    """What the caller should do now."""

    INVOKE = "invoke"
    CLARIFY = "clarify"
    QUEUE = "queue"
    FALLBACK = "fallback"
    DENY = "deny"


class Reason(StrEnum):
    """Why; the list grows in this contract only, never as free text."""

    SELECTED = "selected"
    ONLY_CANDIDATE = "only_candidate"
    PREFERRED_CHEAPER = "preferred_cheaper"
    SHARED = "shared"
    EXPLORED = "explored"
    STICKY_SESSION = "sticky_session"
    AMBIGUOUS = "ambiguous"
    GOAL_MISMATCH = "goal_mismatch"
    OUT_OF_SCOPE = "out_of_scope"
    NO_CAPABLE_AGENT = "no_capable_agent"
    NOT_PERMITTED = "not_permitted"
    DEADLINE = "deadline"
    AT_CAPACITY = "at_capacity"
    QUOTA = "quota"
    BREAKER_OPEN = "breaker_open"
    DEGRADED = "degraded"
    QUEUED = "queued"
    POISON_REQUEST = "poison_request"


class IntentAlternative(Answer):
    """Another intent that may be meant."""

    name: str
    confidence: Share


class IntentReading(Answer):
    """The best reading of the request, whatever the action."""

    name: str
    confidence: Share
    source: IntentSourceName
    alternatives: list[IntentAlternative] = []


class EntityValue(Answer):
    """A value found in the utterance and the words it came from.

    Attributes:
        kind: what it is: amount, quantity, number, id, date, email, phone, url, or enum and pattern where the schema
            of the target named it.
        unit: currency, unit or classifier, grain of a date.
        resolved: for dates, ISO 8601, against the time of the request.
    """

    value: Any
    text: str
    kind: str
    unit: str | None = None
    resolved: str | None = None


class Target(Answer):
    """The agent to call."""

    agent_id: str
    namespace: str
    version: str
    endpoint: str
    protocol: str
    intent: str
    timeout_ms: int
    cost_level: int


class Attempt(Answer):
    """One step of the plan.

    Attributes:
        timeout_ms: slice of the deadline for this attempt.
        backoff_ms: wait before it, jitter included.
        on: outcomes of the attempt before that lead here; empty for the first.
        retry_safe: whether the agent says that doing it twice does no harm.
    """

    target: Target
    timeout_ms: int
    backoff_ms: int
    on: list[str] = []
    retry_safe: bool
    idempotency_key: str


class ClarifyOption(Answer):
    """One meaning that the user may pick."""

    intent: str
    description: str


class Clarify(Answer):
    """A question that would settle the matter."""

    question: str
    options: list[ClarifyOption]


class Fallback(Answer):
    """A degraded answer in two wordings."""

    kind: Literal["full", "partial", "human"]
    message_internal: str
    message_user: str
    intent: str | None = None


class QueueTicket(Answer):
    """A place in the degrade queue."""

    ticket: str
    url: str
    expires_at: int


class Lease(Answer):
    """A slot of the target, given back by the outcome or by expiry (epoch, milliseconds)."""

    id: str
    expires_at: int


class SkippedVersion(Answer):
    """An agent that was passed over because of its version."""

    agent_id: str
    version: str
    wanted: str


class Generations(Answer):
    """Which snapshots decided."""

    cards: int
    index: int
    classifier: int
    weights: int
    policy: int


class Envelope(Answer):
    """The request's ids as they were given."""

    parent_span_id: str | None = None
    task_id: str | None = None
    step_index: int | None = None
    global_goal_hash: str | None = None
    allowed_tools: list[str] | None = None
    retry_of: str | None = None
    attempt: int | None = None
    payload_type: str | None = None
    schema_version: str | None = None
    deadline_ms: int | None = None
    budget_tokens: int | None = None
    caller_agent_id: str | None = None
    session_id: str | None = None


class RouteDecision(Answer):
    """Who should get the request, or an honest reason why nobody should."""

    decision_id: str
    trace_id: str
    span_id: str
    envelope: Envelope
    namespace: str
    text: str | None = None
    language: str | None = None
    parts: list[RouteDecision] = []
    action: Action
    reason: Reason
    intent: IntentReading | None = None
    entities: dict[str, EntityValue] = {}
    target: Target | None = None
    plan: list[Attempt] = []
    utility: float | None = None
    propensity: Share | None = None
    candidates: list[Candidate] = []
    clarify: Clarify | None = None
    queue: QueueTicket | None = None
    retry_after_ms: int | None = None
    fallback: Fallback | None = None
    constraints: dict[str, Any] = {}
    skipped_versions: list[SkippedVersion] = []
    degraded: list[str] = []
    lease: Lease | None = None
    dry_run: bool = False
    generations: Generations
    elapsed_ms: float

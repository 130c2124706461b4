"""RouteRequest: the envelope that a caller sends to `POST /route`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from models.contract import (
    AgentId,
    Contract,
    Identifier,
    IntentName,
    Label,
    Namespace,
    SemanticVersion,
    VersionRange,
)

Preference = Literal["auto", "cheapest", "best"]
MAX_UTTERANCE_CHARS = 200_000
_LARGEST_EXACT = 2**53


class Caller(Contract):
    """Who asks: the agent (or front end) in whose name, and the session it serves."""

    agent_id: AgentId | None = None
    session_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class CallerChoice(Contract):
    """The agent that the caller calls whatever the answer says: it shadows, to learn what it would gain.

    Attributes:
        namespace: None means that of the request.
        version: None means the newest one.
    """

    agent_id: AgentId
    namespace: Namespace | None = None
    version: SemanticVersion | None = None


class RouteRequest(Contract):
    """What should be routed; one of `utterance` and `intent` is needed, `intent` wins where both are given.

    Attributes:
        payload: checked against the input schema of the capabilities; None means none was given.
        version: range of agent versions that may serve.
        constraints: read-only hard constraints; come back equal, never altered.
        target_agent: a wish, checked like any other candidate.
        caller_choice: the caller keeps this choice of its own; ours is recorded beside it, and outcomes are its.
        cross_namespace: True admits all namespaces that the policy allows from here, a list only those of them.
        response_timeout_ms: budget of the whole request, from its arrival.
        deadline_ms: instant (epoch) by which the caller wants its result; the earlier of the two holds.
        limit: how many candidates the answer lists.
        dry_run: decide the same, take no lease, log nothing as traffic.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["utterance"], "properties": {"utterance": {"type": "string"}}},
                {"required": ["intent"], "properties": {"intent": {"type": "string"}}},
            ]
        }
    )

    utterance: Annotated[str, Field(min_length=1, max_length=MAX_UTTERANCE_CHARS)] | None = None
    intent: IntentName | None = None
    payload: Any = None
    namespace: Namespace = "default"
    tenant: Label | None = None
    environment: Label | None = None
    version: VersionRange | None = None
    caller: Caller = Caller()
    trace_id: Identifier | None = None
    parent_span_id: Identifier | None = None
    task_id: Identifier | None = None
    step_index: Annotated[int, Field(ge=0, le=_LARGEST_EXACT)] | None = None
    global_goal_hash: Identifier | None = None
    constraints: dict[str, Any] = Field(default_factory=dict, json_schema_extra={"default": {}})
    allowed_tools: Annotated[list[Label], Field(max_length=1000)] | None = None
    retry_of: Identifier | None = None
    attempt: Annotated[int, Field(ge=1, le=1000)] | None = None
    cross_namespace: bool | Annotated[list[Namespace], Field(max_length=100)] = False
    payload_type: Label | None = None
    schema_version: Label | None = None
    target_agent: AgentId | None = None
    caller_choice: CallerChoice | None = None
    response_timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    deadline_ms: Annotated[int, Field(ge=0, le=_LARGEST_EXACT)] | None = None
    budget_tokens: Annotated[int, Field(ge=0, le=_LARGEST_EXACT)] | None = None
    preference: Preference | None = None
    max_cost_level: Annotated[int, Field(ge=1, le=5)] | None = None
    min_quality: Annotated[float, Field(ge=0, le=1)] | None = None
    exclude: Annotated[list[AgentId], Field(max_length=1000)] = Field(
        default_factory=list, json_schema_extra={"default": []}
    )
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _one_of_utterance_and_intent(self) -> RouteRequest:
        if self.utterance is None and self.intent is None:
            raise ValueError("one of 'utterance' and 'intent' is needed")
        return self

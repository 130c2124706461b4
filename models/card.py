"""AgentCard: one registered agent with what it can do, where it is, and how it may be used."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from models.contract import AgentId, Contract, IntentName, Label, Namespace, Permission, SemanticVersion

Protocol = Literal["http", "grpc", "a2a", "mcp", "queue", "in_process"]
Risk = Literal["low", "normal", "high"]
RetryOn = Literal["timeout", "connection"]
BuiltInSchema = Literal["text", "none"]
JsonSchema = dict[str, Any] | BuiltInSchema
Example = Annotated[str, Field(min_length=1, max_length=4000)]
Message = Annotated[str, Field(max_length=2000)]

AgentKey = tuple[str, str, str]
"""(namespace, agent_id, version): the key of a card."""

MAX_RETRIES = 2
"""After this many retries on the same agent there are no more, whatever a card says."""


class Capability(Contract):
    """One intent that an agent serves.

    Attributes:
        cost_level: 1 (cheapest) to 5.
        quality: declared probability, 0..1, that the agent does it right.
        risk: how much a wrong call would hurt; exploration is for `low` only.
        input_schema: JSON Schema 2020-12, or the name of a built-in one; None makes the capability unroutable
            unless the policy says otherwise.
    """

    intent: IntentName
    description: Annotated[str, Field(max_length=4000)] = ""
    examples: Annotated[list[Example], Field(max_length=10_000)] = []
    languages: list[Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]] = []
    required_permissions: list[Permission] = []
    cost_level: Annotated[int, Field(ge=1, le=5)] = 1
    quality: Annotated[float, Field(ge=0, le=1)] = 0.5
    risk: Risk = "normal"
    input_schema: JsonSchema | None = None
    output_schema: JsonSchema | None = None
    entities: dict[str, Any] = {}


class Retry(Contract):
    """When and how often the same agent is asked again.

    Attributes:
        max_attempts: retries after the first call; never more than `MAX_RETRIES`.
        backoff_ms: wait before the first retry.
        multiplier: growth of the wait.
    """

    max_attempts: Annotated[int, Field(ge=0, le=10)] = 1
    backoff_ms: Annotated[int, Field(ge=0, le=600_000)] = 500
    multiplier: Annotated[float, Field(ge=1, le=10)] = 2.0
    retry_on: list[RetryOn] = ["timeout", "connection"]

    def wait_ms(self, nth: int) -> float:
        """Wait before retry `nth` (from 1), without jitter: the sum of `nth` growing back-offs.

        >>> [Retry().wait_ms(1), Retry().wait_ms(2)]
        [500.0, 1500.0]
        """
        return float(sum(self.backoff_ms * self.multiplier**step for step in range(nth)))


class Probe(Contract):
    """A scheduled minimal task over HTTP that shows whether the agent answers."""

    path: Annotated[str, Field(pattern=r"^/[\x21-\x7e]*$", max_length=500)]
    interval_s: Annotated[float, Field(ge=1, le=86_400)] = 30.0
    timeout_ms: Annotated[int, Field(ge=1, le=600_000)] = 2000


class RateLimit(Contract):
    """At most `max_calls` in any window of `window_ms`."""

    window_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 1000
    max_calls: Annotated[int, Field(ge=0)]


class FallbackForm(Contract):
    """A degraded answer in two wordings.

    Attributes:
        intent: for `partial`, the other intent that would still help; None says nothing of it.
    """

    message_internal: Message
    message_user: Message
    intent: IntentName | None = None


class FallbackForms(Contract):
    """The degraded answers an agent declares: a preset one, a partial one, a hand-over to people."""

    full: FallbackForm | None = None
    partial: FallbackForm | None = None
    human: FallbackForm | None = None


class Price(Contract):
    """What a call costs in US dollars."""

    per_call_usd: Annotated[float, Field(ge=0)] = 0.0
    per_1k_tokens_usd: Annotated[float, Field(ge=0)] = 0.0


@lru_cache(maxsize=32)
def _shipped_retry(max_retries: int | None) -> Retry:
    return Retry() if max_retries is None else Retry(max_attempts=max_retries)


class AgentCard(Contract):
    """One registered agent; the key is (namespace, agent_id, version).

    Attributes:
        weight: base weight among near-equals.
        allowed_sources: agents (`caller.agent_id`) that may reach this one; None means any, an empty list nobody.
        allowed_callers: names of the keys that may reach it; None means any.
        timeout_ms: suggested timeout of a call until latencies are measured.
        max_retries: the flat form of `retry.max_attempts`; `retry` wins where both are given.
    """

    agent_id: AgentId
    namespace: Namespace = "default"
    version: SemanticVersion = "0.0.0"
    display_name: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str, Field(max_length=4000)] = ""
    owner: Annotated[str, Field(max_length=200)] = ""
    labels: Annotated[dict[str, Label], Field(max_length=64)] = {}
    endpoint: Annotated[str, Field(max_length=2000)] = ""
    protocol: Protocol = "http"
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 15_000
    max_inflight: Annotated[int, Field(ge=1, le=1_000_000)] = 32
    max_retries: Annotated[int, Field(ge=0, le=10)] | None = None
    retry: Retry | None = None
    heartbeat_s: Annotated[float, Field(gt=0, le=86_400)] = 15.0
    probe: Probe | None = None
    weight: Annotated[float, Field(ge=0, le=1_000_000)] = 100.0
    warmup_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    enabled: bool = True
    idempotent: bool = False
    backup_agent_id: AgentId | None = None
    depends_on: list[Label] = []
    allowed_sources: list[AgentId] | None = None
    allowed_callers: list[Label] | None = None
    rate_limit: RateLimit | None = None
    fallback: FallbackForms = FallbackForms()
    price: Price | None = None
    capabilities: Annotated[list[Capability], Field(max_length=10_000)] = []
    a2a: dict[str, Any] | None = None

    @property
    def key(self) -> AgentKey:
        """(namespace, agent_id, version)."""
        return (self.namespace, self.agent_id, self.version)

    @property
    def retry_policy(self) -> Retry:
        """`retry` if given, else the shipped one with `max_retries` as its `max_attempts`."""
        return self.retry or _shipped_retry(self.max_retries)

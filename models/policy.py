"""Policy: the operator's declarative configuration of routing, per namespace."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from models.card import FallbackForm, Risk
from models.contract import AgentId, Contract, IntentName, Namespace, Permission
from models.learning_policy import LearningPolicy, RetentionPolicy, RiskPolicy
from models.live_policy import (
    BreakerPolicy,
    DependencyPolicy,
    EjectionPolicy,
    HealthPolicy,
    LeasePolicy,
    PoisonPolicy,
    QueuePolicy,
    Quota,
    SessionPolicy,
)
from models.request import Preference

Exponent = Annotated[float, Field(ge=0, le=10)]
Cost = Annotated[float, Field(ge=0, le=10)]


class BlendWeights(Contract):
    """Exponents w of the merit: similarity^w1 * quality^w2 * health^w3 * load^w4."""

    similarity: Exponent = 1.0
    quality: Exponent = 1.0
    health: Exponent = 1.0
    load: Exponent = 1.0


class CostWeights(Contract):
    """lambda of the utility, by preference."""

    best: Cost = 0.0
    auto: Cost = 0.1
    cheapest: Cost = 0.3


class IntentPolicy(Contract):
    """What holds for one intent, whatever the cards claim.

    Attributes:
        agents: only these may serve it; None leaves it to the cards.
        required_permissions: needed on top of those on the card.
        risk: overrides the risk on the cards.
    """

    agents: list[AgentId] | None = None
    required_permissions: list[Permission] = []
    risk: Risk | None = None


class Confidence(Contract):
    """From which calibrated confidence on a reading is acted on.

    Attributes:
        accept: at and above it the intent is taken as read.
        plausible: below it the utterance is out of scope; between the two it is ambiguous.
        risk: share of all requests that may go to a wrong agent; where it is given, the classifiers' held-out readings
            say from which confidence on that holds, and `accept` is not used.
    """

    accept: Annotated[float, Field(ge=0, le=1)] = 0.5
    plausible: Annotated[float, Field(ge=0, le=1)] = 0.3
    risk: Annotated[float, Field(gt=0, le=0.5)] | None = None


class NamespacePolicy(Contract):
    """What holds in a namespace.

    Attributes:
        default_budget_ms: budget of a request that names no deadline.
        deadline_reserve_ms: kept back of every deadline (SPEC R5).
        require_schemas: which schemas a capability needs to be routable (SPEC R12).
        hide_denied: a denial looks like no agent.
        cost_optimize: False makes every preference `best`.
        cross_namespaces: the namespaces that requests from here may reach when they ask for it.
        latency_weight: nu of the utility.
        share_within: near-equals have a utility of at least best - share_within * |best|.
        fallback: the wording where no agent declares one.
        llm: whether a language model may be asked, if the settings name one.
        unavailable: what a request gets that somebody could take, but nobody now: a degraded answer, a ticket of the
            degrade queue, or the best of those that stand behind an open breaker, marked as a last resort.
        health: how signs of life become a score; so do the next ones govern live state.
    """

    default_budget_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 20_000
    deadline_reserve_ms: Annotated[int, Field(ge=0, le=600_000)] = 200
    require_schemas: Annotated[str, Field(pattern=r"^(both|input|none)$")] = "both"
    hide_denied: bool = False
    cost_optimize: bool = True
    preference: Preference = "auto"
    cross_namespaces: list[Namespace] = []
    weights: BlendWeights = BlendWeights()
    cost_weights: CostWeights = CostWeights()
    latency_weight: Cost = 0.0
    share_within: Annotated[float, Field(ge=0, le=1)] = 0.02
    confidence: Confidence = Confidence()
    intents: dict[IntentName, IntentPolicy] = {}
    llm: bool = True
    unavailable: Literal["fallback", "queue", "last_resort"] = "fallback"
    health: HealthPolicy = HealthPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    dependency: DependencyPolicy = DependencyPolicy()
    ejection: EjectionPolicy = EjectionPolicy()
    lease: LeasePolicy = LeasePolicy()
    poison: PoisonPolicy = PoisonPolicy()
    session: SessionPolicy = SessionPolicy()
    queue: QueuePolicy = QueuePolicy()
    fallback: FallbackForm = FallbackForm(
        message_internal="no agent can take this request",
        message_user="Sorry, we cannot help with this right now.",
    )


class AgentPolicy(Contract):
    """What the operator says of an agent over its own card; None leaves the card's value."""

    enabled: bool | None = None
    weight: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    max_inflight: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None


class Rule(Contract):
    """A pattern or keywords over the utterance that tell the intent, the preference, or both.

    Attributes:
        pattern: RE2 syntax, case ignored, anywhere in the utterance.
        keywords: any of these words or phrases, whole words where they are written with blanks between.
        preference: what the sentence asks for.
        intent: what the sentence means.
        confidence: in that intent, 0..1.
        priority: of several rules that match, the one with the highest counts; then the first.
        namespace: where it holds; None means everywhere.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"anyOf": [{"required": ["pattern"]}, {"required": ["keywords"]}]},
                {"anyOf": [{"required": ["preference"]}, {"required": ["intent"]}]},
            ]
        }
    )

    pattern: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    keywords: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)] = []
    preference: Preference | None = None
    intent: IntentName | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.95
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    namespace: Namespace | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Rule:
        if self.pattern is None and not self.keywords:
            raise ValueError("a rule needs a 'pattern' or 'keywords'")
        if self.preference is None and self.intent is None:
            raise ValueError("a rule needs an 'intent' or a 'preference'")
        return self


class LlmPolicy(Contract):
    """What asking a language model may cost.

    Attributes:
        timeout_ms: the longest a question may take, however much time a request has.
        least_ms: with less time left nothing is asked.
        max_candidates: only so many, the best, are put before the model.
        max_in_flight: questions under way at once.
        calls_per_minute: questions asked in any minute.
        tokens_per_hour: tokens spent in any hour.
        max_answer_tokens: the answer is cut off there; models that think aloud need more.
        cache_entries: answers kept; 0 keeps none.
        cache_ttl_ms: for how long.
    """

    timeout_ms: Annotated[int, Field(ge=1, le=600_000)] = 3000
    least_ms: Annotated[int, Field(ge=0, le=600_000)] = 250
    max_candidates: Annotated[int, Field(ge=2, le=50)] = 8
    max_in_flight: Annotated[int, Field(ge=1, le=1000)] = 8
    calls_per_minute: Annotated[int, Field(ge=0, le=1_000_000)] = 60
    tokens_per_hour: Annotated[int, Field(ge=0, le=1_000_000_000)] = 200_000
    max_answer_tokens: Annotated[int, Field(ge=1, le=10_000)] = 64
    cache_entries: Annotated[int, Field(ge=0, le=1_000_000)] = 10_000
    cache_ttl_ms: Annotated[int, Field(ge=0, le=86_400_000)] = 600_000


class Policy(Contract):
    """The whole policy; `namespaces` are complete after the layers were merged."""

    version: int = 1
    defaults: NamespacePolicy = NamespacePolicy()
    namespaces: dict[Namespace, NamespacePolicy] = {}
    agents: dict[AgentId, AgentPolicy] = {}
    rules: Annotated[list[Rule], Field(max_length=10_000)] = []
    llm: LlmPolicy = LlmPolicy()
    quotas: Annotated[list[Quota], Field(max_length=10_000)] = []
    learning: LearningPolicy = LearningPolicy()
    risk: RiskPolicy = RiskPolicy()
    retention: RetentionPolicy = RetentionPolicy()

    def of(self, namespace: str) -> NamespacePolicy:
        """What holds in `namespace`."""
        return self.namespaces.get(namespace, self.defaults)

"""Policy: the operator's declarative configuration of routing, per namespace."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.card import FallbackForm, Risk
from models.contract import AgentId, Contract, IntentName, Namespace, Permission
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
    fallback: FallbackForm = FallbackForm(
        message_internal="no agent can take this request",
        message_user="Sorry, we cannot help with this right now.",
    )


class AgentPolicy(Contract):
    """What the operator says of an agent over its own card; None leaves the card's value."""

    enabled: bool | None = None
    weight: Annotated[float, Field(ge=0, le=1_000_000)] | None = None


class Rule(Contract):
    """A pattern (RE2 syntax, case ignored) over the utterance that sets the preference.

    Attributes:
        namespace: where it holds; None means everywhere.
    """

    pattern: Annotated[str, Field(min_length=1, max_length=1000)]
    preference: Preference
    namespace: Namespace | None = None


class Policy(Contract):
    """The whole policy; `namespaces` are complete after the layers were merged."""

    version: int = 1
    defaults: NamespacePolicy = NamespacePolicy()
    namespaces: dict[Namespace, NamespacePolicy] = {}
    agents: dict[AgentId, AgentPolicy] = {}
    rules: Annotated[list[Rule], Field(max_length=10_000)] = []

    def of(self, namespace: str) -> NamespacePolicy:
        """What holds in `namespace`."""
        return self.namespaces.get(namespace, self.defaults)

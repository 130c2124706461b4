"""Several wishes in one sentence: each with its own decision, whatever the sentence looks like."""

from __future__ import annotations

import json
import threading

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.fit import fit
from intent.heads import Heads
from models.card import AgentCard
from models.decision import Action, Reason, RouteDecision
from models.policy import Confidence, NamespacePolicy, Policy
from models.ports import Embedded
from tests.builders import capability, card, request
from tests.intent.several import ROWS, VECTORS, multi, nothing, single
from tests.service_builders import Desk, key_grants, service_of

SENTENCE = "please cancel the parcel right away"
INTENTS = ["cancel", "parcel", "urgent"]


@pytest.fixture(scope="module")
def heads() -> Heads:
    """They know texts of several intents."""
    return fit(single(ROWS), VECTORS, out_of_scope=nothing(ROWS), multi=multi(ROWS))


def agents(heads: Heads, *locked: str) -> list[AgentCard]:
    """One for each intent; what is locked needs a permission."""
    return [
        card(f"{label}_agent", capability(label, [], required_permissions=["key"] if label in locked else []))
        for label in heads.labels
    ]


def policy_of(**confidence: float) -> Policy:
    return Policy(defaults=NamespacePolicy(confidence=Confidence(**confidence)))


def each_of(decision: RouteDecision) -> list[RouteDecision]:
    return [decision, *decision.parts]


def intents_of(decision: RouteDecision) -> list[str | None]:
    return [each.intent.name if each.intent else None for each in each_of(decision)]


async def test_all_that_an_undivided_sentence_means_is_decided_and_recorded(heads: Heads) -> None:
    desk = service_of(agents(heads), heads=heads)
    decision, body = await desk.sent(request(SENTENCE))
    assert intents_of(decision) == INTENTS
    assert [each.action for each in each_of(decision)] == [Action.INVOKE] * 3
    assert [each.target.agent_id for each in each_of(decision) if each.target] == [f"{name}_agent" for name in INTENTS]
    assert [each.text for each in each_of(decision)] == [SENTENCE] * 3
    assert len(json.loads(body)["parts"]) == 2
    assert {row.decision_id for row in desk.records.decisions} == {each.decision_id for each in each_of(decision)}


async def test_each_part_has_its_own_permissions(heads: Heads) -> None:
    decision = await service_of(agents(heads, "parcel"), heads=heads).route(request(SENTENCE), key_grants())
    assert [each.action for each in each_of(decision)] == [Action.INVOKE, Action.DENY, Action.INVOKE]


async def test_a_part_that_is_less_sure_is_asked_about(heads: Heads) -> None:
    sure = await service_of(agents(heads), heads=heads).route(request(SENTENCE))
    confidences = [each.intent.confidence for each in each_of(sure) if each.intent]
    accept = sorted(confidences)[1]
    decision = await service_of(agents(heads), policy_of(accept=accept, plausible=0.3), heads=heads).route(
        request(SENTENCE)
    )
    expected = [Action.INVOKE if confidence >= accept else Action.CLARIFY for confidence in confidences]
    assert [each.action for each in each_of(decision)] == expected
    assert Action.CLARIFY in expected


class LateEmbedder(DummyEmbedder):
    """Embeds what stands on cards and one sentence; never comes to an end with any other text."""

    def __init__(self, *known: str) -> None:
        self.known = known
        self.may_end = threading.Event()

    def embed(self, text: str) -> Embedded:
        if text not in self.known:
            self.may_end.wait(10)
        return super().embed(text)


async def test_pieces_that_come_too_late_leave_a_decision_on_the_whole_and_are_told_of() -> None:
    sentence = "do bake now and something that takes very long"
    embedder = LateEmbedder("do bake", "do brew", sentence)
    cards = [card(f"{name}_agent", capability(name, [f"do {name}"]), timeout_ms=50) for name in ("bake", "brew")]
    desk: Desk = service_of(cards, policy_of(accept=0.0, plausible=0.0), embedder=embedder)
    decision = await desk.route(request(sentence, response_timeout_ms=400))
    embedder.may_end.set()
    assert (decision.action, decision.reason) == (Action.INVOKE, Reason.ONLY_CANDIDATE)
    assert decision.degraded == ["parts: no time to read them"]

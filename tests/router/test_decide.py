from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from models.card import AgentCard
from models.decision import Action, Reason, RouteDecision
from models.events import EventRow
from models.language_model import Choice, InvalidChoiceError, LanguageModelError, ModelBusyError, Question
from models.policy import NamespacePolicy, Policy
from tests.builders import capability, card, policy_of, request
from tests.service_builders import Desk, NearEmbedder, key_grants, service_of

SECRET = "secret"
NUMBER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
UNSURE = {"bake": 0.7, "brew": 0.69, "fry": 0.2}


class Model:
    """A `LanguageModel` that answers by a function of the question; keeps what it was shown."""

    model_id = "scripted"

    def __init__(
        self, answer: Callable[[Question], str | LanguageModelError | None], n_tokens: int | None = 77
    ) -> None:
        self.shown: list[Question] = []
        self._answer = answer
        self._n_tokens = n_tokens

    async def choose(self, question: Question, *, timeout_s: float) -> Choice:
        self.shown.append(question)
        answer = self._answer(question)
        if isinstance(answer, LanguageModelError):
            raise answer
        return Choice(answer, self._n_tokens)

    @property
    def offered(self) -> list[set[str]]:
        """The descriptions that each question offered."""
        return [{option.description for option in question.options} for question in self.shown]


def picking(description: str) -> Model:
    """A model that chooses the option of that description."""
    return Model(lambda question: {option.description: option.id for option in question.options}[description])


def agent(intent: str, agent_id: str | None = None, **fields: Any) -> AgentCard:
    """An agent for one intent, whose texts all name it."""
    described = capability(intent, [f"do {intent}"], description=f"for {intent}", **fields)
    return card(agent_id or f"{intent}_agent", described)


def locked(intent: str, agent_id: str | None = None, **fields: Any) -> AgentCard:
    """One that needs a permission which nobody here has, save who has all."""
    return agent(intent, agent_id, required_permissions=["vault:open"], **fields)


def kitchen(
    cosines: dict[str, float],
    *cards: AgentCard,
    policy: Policy | None = None,
    model: Model | None = None,
    far: Iterable[str] = (),
) -> Desk:
    """A desk with an agent for each intent; any sentence not on a card has these cosines to their examples.

    From descriptions and texts in `far` it is far.
    """
    texts = {f"do {intent}": cosine for intent, cosine in cosines.items()}
    texts |= dict.fromkeys([f"for {intent}" for intent in cosines] + list(far), 0.0)
    named = {each.capabilities[0].intent for each in cards}
    known = [*cards, *(agent(intent) for intent in cosines if intent not in named)]
    return service_of(known, policy, embedder=NearEmbedder(texts), model=model)


def reads(desk: Desk) -> list[EventRow]:
    return [row for row in desk.records.audit if row.event_type == "read"]


def intent_of(decision: RouteDecision) -> str | None:
    return decision.intent.name if decision.intent else None


async def test_without_a_model_the_caller_is_asked_and_nothing_is_amiss() -> None:
    decision = await kitchen(UNSURE).route(request("something warm"))
    assert (decision.action, decision.reason, decision.degraded) == (Action.CLARIFY, Reason.AMBIGUOUS, [])


async def test_a_model_settles_an_ambiguous_reading() -> None:
    model = picking("for brew")
    desk = kitchen(UNSURE, model=model)
    decision = await desk.route(request("something warm"))
    assert (decision.action, decision.degraded) == (Action.INVOKE, [])
    assert decision.target is not None
    assert decision.target.agent_id == "brew_agent"
    assert [question.utterance for question in model.shown] == ["something warm"]
    assert model.offered == [{"for bake", "for brew"}]
    [read] = reads(desk)
    assert (read.decision, read.cost_tokens) == ("sure", 77)
    assert json.loads(read.payload)["source"] == "llm"


async def test_what_the_model_chose_keeps_its_own_confidence_and_the_others_stay_as_alternatives() -> None:
    asked = await kitchen(UNSURE).route(request("something warm"))
    chosen = await kitchen(UNSURE, model=picking("for brew")).route(request("something warm"))
    assert asked.intent is not None
    assert chosen.intent is not None
    local = {asked.intent.name: asked.intent.confidence}
    local |= {other.name: other.confidence for other in asked.intent.alternatives}
    assert (chosen.intent.name, chosen.intent.source) == ("brew", "llm")
    assert chosen.intent.confidence == local.pop("brew")
    assert {other.name: other.confidence for other in chosen.intent.alternatives} == local


async def test_a_sure_reading_asks_nobody() -> None:
    model = picking("for bake")
    decision = await kitchen({"bake": 0.9, "brew": 0.3}, model=model).route(request("a warm loaf"))
    assert (decision.action, intent_of(decision), model.shown) == (Action.INVOKE, "bake", [])
    far = await kitchen({"bake": 0.3}, model=model).route(request("a warm loaf"))
    assert (far.reason, model.shown) == (Reason.OUT_OF_SCOPE, [])


async def test_the_model_is_shown_permitted_candidates_only() -> None:
    model = picking("for bake")
    desk = kitchen({SECRET: 0.71, "bake": 0.7, "brew": 0.69}, locked(SECRET), model=model)
    decision = await desk.route(request("something warm"), key_grants())
    assert model.offered == [{"for bake", "for brew"}]
    assert SECRET not in repr(model.shown)
    assert intent_of(decision) == "bake"
    assert decision.intent is not None
    assert SECRET not in [other.name for other in decision.intent.alternatives]
    # who may do all is offered all
    open_to_all = kitchen({SECRET: 0.71, "bake": 0.7, "brew": 0.69}, locked(SECRET), model=model)
    await open_to_all.route(request("something warm"))
    assert model.offered[1] == {"for bake", "for brew", f"for {SECRET}"}


async def test_where_all_that_came_near_is_forbidden_the_model_is_asked_about_the_rest() -> None:
    model = picking("for bake")
    cards = [locked(SECRET), locked("vault")]
    # nearest are the forbidden ones, and both so near that nothing else is plausible
    desk = kitchen({SECRET: 0.7, "vault": 0.69, "bake": 0.6}, *cards, model=model)
    decision = await desk.route(request("something warm"), key_grants())
    assert model.offered == [{"for bake"}]
    assert (decision.action, intent_of(decision)) == (Action.INVOKE, "bake")
    assert decision.intent is not None
    assert decision.intent.alternatives == []


async def test_the_texts_of_a_forbidden_agent_for_a_permitted_intent_are_not_shown() -> None:
    model = picking("for bake")
    hidden = card(
        "a_vault",
        capability("bake", ["bake the secret way"], description="secret ovens", required_permissions=["vault:open"]),
    )
    desk = kitchen(UNSURE, hidden, agent("bake"), model=model, far=["bake the secret way", "secret ovens"])
    await desk.route(request("something warm"), key_grants())
    assert model.offered == [{"for bake", "for brew"}]
    assert SECRET not in repr(model.shown)


async def test_an_intent_that_a_model_chose_is_named_where_denials_are_hidden() -> None:
    policy = policy_of(hide_denied=True)
    desk = kitchen({SECRET: 0.71, "bake": 0.7, "brew": 0.69}, locked(SECRET), policy=policy, model=picking("for bake"))
    decision, body = await desk.sent(request("something warm"), key_grants())
    assert (decision.action, intent_of(decision)) == (Action.INVOKE, "bake")
    assert SECRET.encode() not in body


async def test_where_the_model_finds_that_nothing_fits_it_is_out_of_scope() -> None:
    desk = kitchen(UNSURE, model=Model(lambda question: None))
    decision = await desk.route(request("something warm"))
    assert (decision.action, decision.reason) == (Action.FALLBACK, Reason.OUT_OF_SCOPE)
    assert decision.degraded == []
    assert [read.cost_tokens for read in reads(desk)] == [77]


@pytest.mark.parametrize(
    ("answer", "noted"),
    [
        ("bake", "llm: llm_invalid"),
        ("0", "llm: llm_invalid"),
        (InvalidChoiceError("prose", n_tokens=77), "llm: llm_invalid"),
        (ModelBusyError("429"), "llm: llm_error"),
    ],
)
async def test_an_answer_that_does_not_count_leaves_the_question_to_the_caller(
    answer: str | LanguageModelError, noted: str
) -> None:
    desk = kitchen(UNSURE, model=Model(lambda question: answer))
    decision = await desk.route(request("something warm"))
    assert (decision.action, decision.reason) == (Action.CLARIFY, Reason.AMBIGUOUS)
    assert decision.degraded == [noted]
    assert decision.clarify is not None
    assert [option.intent for option in decision.clarify.options] == ["bake", "brew"]
    # what was spent is written down all the same
    assert [read.cost_tokens for read in reads(desk)] == [77 if noted.endswith("invalid") else 0]


async def test_a_policy_without_models_asks_nobody_there() -> None:
    model = picking("for brew")
    policy = Policy(namespaces={"quiet": NamespacePolicy(llm=False)})
    cards = [each.model_copy(update={"namespace": "quiet"}) for each in (agent("bake"), agent("brew"))]
    desk = kitchen(UNSURE, *cards, agent("bake"), agent("brew"), policy=policy, model=model)
    quiet = await desk.route(request("something warm", namespace="quiet"))
    assert (quiet.action, quiet.degraded, model.shown) == (Action.CLARIFY, [], [])
    assert [read.cost_tokens for read in reads(desk)] == [0]
    elsewhere = await desk.route(request("something warm"))
    assert (elsewhere.action, len(model.shown)) == (Action.INVOKE, 1)


@pytest.mark.parametrize(
    ("wanted", "noted"),
    [({"budget_tokens": 10}, "llm: skipped_budget"), ({"response_timeout_ms": 300}, "llm: skipped_deadline")],
)
async def test_a_request_without_money_or_time_asks_nobody_and_says_so(wanted: dict[str, Any], noted: str) -> None:
    model = picking("for brew")
    decision = await kitchen(UNSURE, model=model).route(request("something warm", **wanted))
    assert (decision.action, decision.degraded, model.shown) == (Action.CLARIFY, [noted], [])


async def test_the_limits_of_the_policy_hold_for_the_model() -> None:
    model = picking("for brew")
    policy = Policy.model_validate({"llm": {"calls_per_minute": 1, "cache_entries": 0}})
    desk = kitchen(UNSURE, policy=policy, model=model)
    assert (await desk.route(request("something warm"))).action is Action.INVOKE
    assert (await desk.route(request("something hot"))).degraded == ["llm: skipped_rate"]
    desk.clock.advance(60_001)
    assert (await desk.route(request("something hot"))).action is Action.INVOKE


async def test_an_answer_from_the_cache_costs_nothing() -> None:
    desk = kitchen(UNSURE, model=picking("for brew"))
    for _ in range(2):
        assert intent_of(await desk.route(request("something warm"))) == "brew"
    assert [read.cost_tokens for read in reads(desk)] == [77, 0]


async def test_the_event_of_the_reading_says_how_asking_the_model_ended() -> None:
    busy = ModelBusyError("429")
    models = [picking("for brew"), Model(lambda question: None), Model(lambda question: "bake"), Model(lambda _: busy)]
    told = []
    for model in models:
        desk = kitchen(UNSURE, model=model)
        await desk.route(request("something warm"))
        told.append(json.loads(reads(desk)[0].payload)["llm"])
    assert told == [
        {"status": "chosen", "origin": "call"},
        {"status": "none", "origin": "call"},
        {"status": "llm_invalid", "origin": "call"},
        {"status": "llm_error", "origin": "call", "code": "llm_busy"},
    ]
    # where there is no model, or it may not be asked, there is nothing to tell
    for desk in (kitchen(UNSURE), kitchen(UNSURE, policy=policy_of(llm=False), model=picking("for brew"))):
        await desk.route(request("something warm"))
        assert "llm" not in json.loads(reads(desk)[0].payload)


BOTH = "do bake and do brew"


async def test_each_wish_of_a_sentence_gets_a_decision_of_its_own_recorded_on_its_own() -> None:
    desk = kitchen({"bake": 0.1, "brew": 0.1})
    decision, body = await desk.sent(request(BOTH, trace_id="trc-1"), explain=True)
    [part] = decision.parts
    assert [each.text for each in (decision, part)] == [BOTH, "do brew"]
    assert [intent_of(each) for each in (decision, part)] == ["bake", "brew"]
    assert [each.target.agent_id for each in (decision, part) if each.target] == ["bake_agent", "brew_agent"]
    assert part.parts == []
    assert len(part.candidates) == 1
    assert json.loads(body)["parts"][0]["target"]["agent_id"] == "brew_agent"
    ids = {each.decision_id for each in (decision, part)}
    assert {row.decision_id for row in desk.records.decisions} == ids
    assert len(ids) == len({each.span_id for each in (decision, part)}) == 2
    traces = [row.trace_id for row in desk.records.decisions] + [row.trace_id for row in desk.records.audit]
    assert set(traces) == {"trc-1"}
    keys = [each.plan[0].idempotency_key for each in (decision, part)]
    assert len(set(keys)) == 2
    [record] = [row for row in desk.records.decisions if row.decision_id == part.decision_id]
    assert json.loads(record.request)["utterance"] == "do brew"
    assert (record.agent_id, json.loads(record.answer)["decision_id"]) == ("brew_agent", part.decision_id)


async def test_three_wishes_come_in_their_order() -> None:
    desk = kitchen({"bake": 0.1, "brew": 0.1, "fry": 0.1})
    decision = await desk.route(request("do fry, then do bake and do brew and do fry"))
    assert [intent_of(each) for each in (decision, *decision.parts)] == ["fry", "bake", "brew"]


async def test_a_forbidden_part_is_denied_and_tells_of_nobody() -> None:
    desk = kitchen({"bake": 0.1, "brew": 0.1}, locked("brew", "keeper_of_the_vault"))
    decision, body = await desk.sent(request(BOTH), key_grants(), explain=True)
    [part] = decision.parts
    assert (decision.action, part.action, part.reason) == (Action.INVOKE, Action.DENY, Reason.NOT_PERMITTED)
    assert (part.target, part.plan, part.candidates, part.clarify, part.fallback) == (None, [], [], None, None)
    assert b"keeper" not in body
    assert b"for brew" not in body
    # turned around, the first is denied and the other served
    turned = await desk.route(request("do brew and do bake"), key_grants())
    assert [each.action for each in (turned, *turned.parts)] == [Action.DENY, Action.INVOKE]


async def test_a_forbidden_part_looks_like_no_agent_where_denials_are_hidden() -> None:
    desk = kitchen(
        {"bake": 0.1, "brew": 0.1}, locked("brew", "keeper_of_the_vault"), policy=policy_of(hide_denied=True)
    )
    decision, body = await desk.sent(request(BOTH), key_grants(), explain=True)
    [part] = decision.parts
    assert (part.action, part.reason, part.intent) == (Action.FALLBACK, Reason.NO_CAPABLE_AGENT, None)
    assert intent_of(decision) == "bake"
    assert b"keeper" not in body
    turned = await desk.route(request("do brew and do bake"), key_grants())
    assert [intent_of(each) for each in (turned, *turned.parts)] == [None, "bake"]


async def test_the_payload_and_the_wished_agent_are_for_the_first_part_only() -> None:
    cards = [agent("bake", input_schema=NUMBER), agent("brew", input_schema=NUMBER)]
    desk = kitchen({"bake": 0.1, "brew": 0.1}, *cards)
    decision = await desk.route(request(BOTH, payload={"order": 1}, target_agent="bake_agent"))
    [part] = decision.parts
    assert [each.action for each in (decision, part)] == [Action.INVOKE, Action.INVOKE]
    assert [each.degraded for each in (decision, part)] == [[], []]
    records = {row.decision_id: json.loads(row.request) for row in desk.records.decisions}
    assert records[decision.decision_id]["payload"] == {"order": 1}
    assert records[part.decision_id].get("payload") is None
    assert records[part.decision_id].get("target_agent") is None


async def test_the_limits_of_the_request_hold_for_every_part() -> None:
    desk = kitchen({"bake": 0.1, "brew": 0.1}, agent("bake"), agent("brew", cost_level=5))
    decision = await desk.route(request(BOTH, max_cost_level=3))
    [part] = decision.parts
    assert (decision.action, part.action, part.reason) == (Action.INVOKE, Action.FALLBACK, Reason.NO_CAPABLE_AGENT)


async def test_a_dry_run_of_several_wishes_leaves_no_trace() -> None:
    desk = kitchen({"bake": 0.1, "brew": 0.1})
    decision = await desk.route(request(BOTH, dry_run=True))
    assert [intent_of(part) for part in decision.parts] == ["brew"]
    assert decision.parts[0].dry_run
    assert desk.records.rows == []


async def test_a_given_intent_is_one_wish_whatever_the_sentence() -> None:
    decision = await kitchen({"bake": 0.1, "brew": 0.1}).route(request(BOTH, intent="brew"))
    assert (intent_of(decision), decision.parts) == ("brew", [])


async def test_parts_ask_no_model() -> None:
    model = picking("for bake")
    decision = await kitchen({"bake": 0.1, "brew": 0.1}, model=model).route(request(BOTH))
    assert len(decision.parts) == 1
    assert model.shown == []

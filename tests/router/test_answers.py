from __future__ import annotations

from typing import Any

import pytest

from models.candidate import Stage
from models.card import AgentCard, FallbackForm, FallbackForms
from models.decision import Action, Fallback, Reason, SkippedVersion
from models.policy import NamespacePolicy
from models.reading import Alternative, Certainty, Reading
from models.request import Caller, RouteRequest
from router import answers
from router.case import Case
from tests.builders import capability, card, policy_of, request, snapshot_of
from tests.service_builders import case_of, named

READING = Reading(
    text="has my refund come",
    language="und",
    certainty=Certainty.SURE,
    intent="refund_status",
    confidence=0.8,
    source="semantic",
    alternatives=(Alternative("request_refund", 0.1),),
)


def form(text: str) -> FallbackForm:
    return FallbackForm(message_internal=f"{text} internal", message_user=f"{text} user")


def agent(agent_id: str, quality: float = 0.5, **forms: Any) -> AgentCard:
    return card(agent_id, capability("refund_status", quality=quality), fallback=FallbackForms(**forms))


def late_case(*cards: AgentCard, stage: Stage = Stage.DEADLINE, **policy: Any) -> Case:
    """A case in which one stage took everybody out."""
    case = case_of(request("has my refund come"), snapshot_of(cards, policy_of(**policy)), reading=READING)
    case.eligible.excluded = [(entry, stage) for entry in case.snapshot.entries]
    return case


def late_form(*cards: AgentCard, **wanted: Any) -> Fallback:
    decision = answers.fallback(late_case(*cards, **wanted), Reason.DEADLINE, 1.0)
    assert decision.action is Action.FALLBACK
    assert decision.fallback is not None
    return decision.fallback


@pytest.mark.parametrize(
    ("declared", "kind"),
    [(("full", "partial", "human"), "full"), (("partial", "human"), "partial"), (("human",), "human")],
)
def test_the_preset_answer_comes_before_the_partial_one_and_that_before_people(
    declared: tuple[str, ...], kind: str
) -> None:
    given = late_form(agent("a", 0.5, **{name: form(name) for name in declared}))
    assert (given.kind, given.message_internal, given.message_user) == (kind, f"{kind} internal", f"{kind} user")


def test_the_better_agent_s_form_comes_first() -> None:
    assert late_form(agent("a", 0.5, full=form("worse")), agent("b", 0.9, human=form("better"))).kind == "human"


def test_an_agent_without_a_form_leaves_it_to_the_next() -> None:
    assert late_form(agent("a", 0.9), agent("b", 0.5, partial=form("b"))).message_user == "b user"


def test_a_partial_form_names_its_other_intent() -> None:
    partial = FallbackForm(message_internal="i", message_user="u", intent="order_status")
    assert late_form(agent("a", partial=partial)).intent == "order_status"


def test_where_nobody_declares_a_form_the_policy_s_wording_holds() -> None:
    assert late_form(agent("a")) == Fallback(kind="full", **NamespacePolicy().fallback.model_dump())
    assert late_form(agent("a"), fallback=form("ours")).message_internal == "ours internal"


def test_forms_of_agents_that_another_stage_took_out_do_not_count() -> None:
    given = late_form(agent("a", full=form("a")), stage=Stage.MAX_COST_LEVEL)
    assert given.message_user == NamespacePolicy().fallback.message_user


def test_a_denial_names_the_intent_and_nothing_else() -> None:
    decision = answers.deny(late_case(agent("a", full=form("a"))), 1.0)
    assert (decision.action, decision.reason) == (Action.DENY, Reason.NOT_PERMITTED)
    assert decision.intent is not None
    assert (decision.intent.name, decision.intent.confidence) == ("refund_status", 0.8)
    assert decision.intent.alternatives == []
    assert (decision.target, decision.plan, decision.candidates, decision.fallback) == (None, [], [], None)


def test_a_hidden_denial_looks_like_no_agent() -> None:
    decision = answers.deny(late_case(agent("a", full=form("a")), hide_denied=True), 1.0)
    assert (decision.action, decision.reason) == (Action.FALLBACK, Reason.NO_CAPABLE_AGENT)
    assert decision.intent is None
    assert decision.fallback == Fallback(kind="full", **NamespacePolicy().fallback.model_dump())
    assert decision.candidates == []


def test_a_case_that_hides_its_intent_names_none() -> None:
    case = late_case(agent("a"))
    case.hides_intent = True
    assert answers.fallback(case, Reason.OUT_OF_SCOPE, 1.0).intent is None


def test_a_question_carries_its_options_and_the_reading() -> None:
    asked = [("refund_status", "Say where a refund is."), ("request_refund", "")]
    decision = answers.clarify(late_case(agent("a")), Reason.AMBIGUOUS, "Which?", asked, 1.0)
    assert (decision.action, decision.reason) == (Action.CLARIFY, Reason.AMBIGUOUS)
    assert decision.clarify is not None
    assert [(option.intent, option.description) for option in decision.clarify.options] == asked
    assert decision.clarify.question == "Which?"
    assert decision.intent is not None
    assert [(other.name, other.confidence) for other in decision.intent.alternatives] == [("request_refund", 0.1)]


@pytest.mark.parametrize(
    ("explains", "limit", "listed"),
    [(False, None, []), (True, None, ["a", "b", "c"]), (False, 2, ["a", "b"]), (True, 1, ["a"])],
)
def test_candidates_are_listed_on_demand_up_to_the_limit(explains: bool, limit: int | None, listed: list[str]) -> None:
    case = late_case(agent("a"), agent("b"), agent("c"))
    case.explain = explains
    case.request = request("has my refund come", limit=limit)
    assert named(answers.fallback(case, Reason.DEADLINE, 1.0).candidates) == listed


def test_no_listing_is_longer_than_the_most() -> None:
    case = late_case(*(agent(f"agent-{number}") for number in range(answers.MAX_EXPLAINED + 5)))
    case.explain = True
    assert len(answers.fallback(case, Reason.DEADLINE, 1.0).candidates) == answers.MAX_EXPLAINED


def test_the_envelope_comes_back_as_it_was_given() -> None:
    given: dict[str, Any] = {
        "parent_span_id": "span-0",
        "task_id": "task-1",
        "step_index": 3,
        "global_goal_hash": "abc",
        "allowed_tools": ["search", "mail"],
        "retry_of": "d-0",
        "attempt": 2,
        "payload_type": "order",
        "schema_version": "2",
        "deadline_ms": 1_700_000_009_000,
        "budget_tokens": 500,
    }
    asked = RouteRequest(intent="x", caller=Caller(agent_id="front", session_id="s-1"), trace_id="t-9", **given)
    decision = answers.fallback(case_of(asked, snapshot_of([])), Reason.NO_CAPABLE_AGENT, 1.0)
    assert decision.envelope.model_dump() == {**given, "caller_agent_id": "front", "session_id": "s-1"}
    assert decision.trace_id == "t-9"


def test_an_answer_says_from_what_it_was_made() -> None:
    case = late_case(agent("a"))
    case.degraded.append("encoder: no time left")
    case.eligible.skipped.append(SkippedVersion(agent_id="a", version="1.0.0", wanted=">=2"))
    decision = answers.fallback(case, Reason.DEADLINE, 1.23456)
    assert decision.generations.model_dump() == {"cards": 1, "index": 1, "classifier": 0, "weights": 0, "policy": 0}
    assert (decision.text, decision.language, decision.namespace) == ("has my refund come", "und", "default")
    assert (decision.decision_id, decision.span_id, decision.elapsed_ms) == ("d-1", "s-1", 1.235)
    assert decision.degraded == ["encoder: no time left"]
    assert [skipped.agent_id for skipped in decision.skipped_versions] == ["a"]

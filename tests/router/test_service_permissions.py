from __future__ import annotations

import json
from typing import Any

import pytest

from models.card import AgentCard, FallbackForm, FallbackForms
from models.decision import Action, Reason
from models.errors import ForbiddenError, InvalidPayloadError
from models.policy import IntentPolicy, Policy
from models.request import Caller, RouteRequest
from router.permit import Grants
from tests.builders import capability, card, policy_of, request
from tests.service_builders import Desk, NearEmbedder, key_grants, named, service_of

ERASE = "erase_user_data"
SAID = "wipe everything you hold on me"
NUMBER = {"type": "object", "properties": {"user": {"type": "integer"}}, "required": ["user"]}
SECRETS = ("vault", "7.7.7", "hidden.internal", "Strongroom", "backdoor", "sesame")
"""Words that stand on the forbidden card only."""

FORBIDDEN: dict[str, dict[str, Any]] = {
    "permission": {"required_permissions": ["user:erase", "user:audited"]},
    "source": {"allowed_sources": ["admin_console"]},
    "caller": {"allowed_callers": ["press"]},
    "reserved": {},
}
GRANTS = key_grants("user:erase", caller="shop")
RESERVED = {"intents": {ERASE: IntentPolicy(agents=["admin"])}}


def vault(why: str) -> AgentCard:
    """The card of an agent that nobody here may reach."""
    fields = dict(FORBIDDEN[why])
    required = fields.pop("required_permissions", [])
    form = FallbackForm(message_internal="backdoor", message_user="backdoor")
    own = capability(
        ERASE, [SAID], description="open sesame", required_permissions=required, input_schema=NUMBER, quality=1.0
    )
    return card(
        "vault",
        own,
        version="7.7.7",
        endpoint="http://hidden.internal/run",
        display_name="Strongroom",
        fallback=FallbackForms(full=form),
        **fields,
    )


def desk_of(why: str, *others: AgentCard, **policy: Any) -> Desk:
    rules = {**(RESERVED if why == "reserved" else {}), **policy}
    return service_of([vault(why), *others], policy_of(**rules))


def assert_secret(text: str) -> None:
    assert [secret for secret in SECRETS if secret in text] == []


DENIED = {
    "intent": request(intent=ERASE),
    "sentence": request(SAID),
    "near sentence": request(f"please {SAID}"),
    "payload": request(intent=ERASE, payload={"user": 1}),
    "wrong payload": request(intent=ERASE, payload={"user": "one"}),
    "version": request(intent=ERASE, version=">=99"),
    "limits": request(intent=ERASE, max_cost_level=1, min_quality=0.9, limit=10),
    "no time": request(intent=ERASE, response_timeout_ms=1),
    "wish": request(intent=ERASE, target_agent="vault"),
    "exclusion": request(intent=ERASE, exclude=["vault"]),
    "crossing": request(intent=ERASE, cross_namespace=True),
    "speaker": request(intent=ERASE, caller=Caller(agent_id="front")),
}


@pytest.mark.parametrize("why", FORBIDDEN)
@pytest.mark.parametrize("asked", DENIED.values(), ids=DENIED)
async def test_a_denial_names_the_intent_at_most(why: str, asked: RouteRequest) -> None:
    desk = desk_of(why, card("helper"))
    decision, body = await desk.sent(asked, GRANTS, explain=True)
    assert (decision.action, decision.reason) == (Action.DENY, Reason.NOT_PERMITTED)
    assert decision.intent is not None
    assert decision.intent.name == ERASE
    assert (decision.candidates, decision.skipped_versions, decision.plan) == ([], [], [])
    assert_secret(body.decode())
    assert [event.event_type for event in desk.records.audit] == ["request", "read", "route", "response"]
    for event in desk.records.audit:
        assert_secret(json.dumps(event))
    [record] = desk.records.decisions
    assert record.agent_id is None
    assert_secret(record.answer + record.inputs)


def helper(**fields: Any) -> AgentCard:
    """One that may be reached, and is worse in everything."""
    own = capability(ERASE, [SAID], quality=0.1, cost_level=5, input_schema="text")
    return card("helper", own, backup_agent_id="vault", timeout_ms=1000, **fields)


@pytest.mark.parametrize("why", FORBIDDEN)
@pytest.mark.parametrize("asked", ["intent", "sentence", "limits", "wish", "exclusion", "crossing", "speaker"])
async def test_an_allowed_agent_serves_and_the_forbidden_ones_are_not_told_of(why: str, asked: str) -> None:
    policy = {"intents": {ERASE: IntentPolicy(agents=["helper"])}} if why == "reserved" else {}
    desk = desk_of(why, helper(), **policy)
    wanted = DENIED[asked].model_copy(update={"max_cost_level": None, "min_quality": None, "preference": "best"})
    decision, body = await desk.sent(wanted, GRANTS, explain=True)
    assert decision.target is not None
    assert decision.target.agent_id == "helper"
    assert named(decision.candidates) == ["helper"]
    assert {step.target.agent_id for step in decision.plan} == {"helper"}
    assert decision.propensity == 1.0
    assert_secret(body.decode())
    assert_secret(json.dumps(desk.records.audit))


@pytest.mark.parametrize("stranger", ["vault", "nobody"])
async def test_a_wish_for_a_forbidden_agent_is_answered_like_one_for_nobody(stranger: str) -> None:
    desk = desk_of("permission", helper())
    decision = await desk.route(request(intent=ERASE, target_agent=stranger), GRANTS)
    assert decision.reason is Reason.ONLY_CANDIDATE
    assert decision.degraded == ["target_agent: not eligible, another was chosen"]


async def test_forbidden_agents_are_not_among_the_skipped_versions() -> None:
    decision = await desk_of("permission", helper()).route(request(intent=ERASE, version=">=99"), GRANTS)
    assert [skipped.agent_id for skipped in decision.skipped_versions] == ["helper"]


async def test_a_forbidden_newer_version_leaves_the_work_to_an_allowed_older_one() -> None:
    cards = [
        card("eraser", capability(ERASE, required_permissions=["user:root"]), version="2.0.0"),
        card("eraser", capability(ERASE), version="1.0.0"),
    ]
    decision = await service_of(cards).route(request(intent=ERASE), key_grants(), explain=True)
    assert decision.target is not None
    assert decision.target.version == "1.0.0"
    assert [candidate.version for candidate in decision.candidates] == ["1.0.0"]


async def test_a_payload_error_tells_of_allowed_schemas_only() -> None:
    desk = desk_of("permission", helper())
    with pytest.raises(InvalidPayloadError) as caught:
        await desk.route(request(intent=ERASE, payload={"user": 1}), GRANTS)
    assert {problem.path for problem in caught.value.problems} == {"payload.text", "payload.user"}
    assert_secret(str(caught.value))


async def test_forms_of_forbidden_agents_are_not_used() -> None:
    desk = desk_of("permission", helper())
    decision = await desk.route(request(intent=ERASE, response_timeout_ms=300), GRANTS)
    assert decision.reason is Reason.DEADLINE
    assert decision.fallback is not None
    assert decision.fallback.message_user == Policy().defaults.fallback.message_user


async def test_the_one_allowed_capability_is_reached_however_low_it_ranks() -> None:
    better = [card(f"better-{n}", capability(ERASE, quality=0.9, required_permissions=["p"])) for n in range(30)]
    decision = await service_of([*better, helper()]).route(request(intent=ERASE), key_grants(), explain=True)
    assert decision.target is not None
    assert (decision.target.agent_id, decision.reason) == ("helper", Reason.ONLY_CANDIDATE)
    assert named(decision.candidates) == ["helper"]


def crowded(*, n_forbidden: int, allowed: float | None = None, **policy: Any) -> Desk:
    """Forbidden intents that a sentence may mean, and one allowed intent farther away."""
    cosines = {f"do forbidden {letter}": 0.7 - 0.001 * n for n, letter in enumerate("abcdefghij"[:n_forbidden])}
    cards = [
        card(f"secret-{n}", capability(f"forbidden_{n}", [text], required_permissions=["p"], description="sesame"))
        for n, text in enumerate(cosines)
    ]
    embedded = dict(cosines) | {"sesame": 0.0, "do allowed": allowed or 0.0}
    if allowed is not None:
        cards.append(card("open", capability("allowed", ["do allowed"])))
    return service_of(cards, policy_of(**policy), embedder=NearEmbedder(embedded))


@pytest.mark.parametrize("n_forbidden", [2, 10])
async def test_an_ambiguous_sentence_is_asked_about_within_the_caller_s_reach_only(n_forbidden: int) -> None:
    decision, body = await crowded(n_forbidden=n_forbidden, allowed=0.6).sent(
        request("hm what"), key_grants(), explain=True
    )
    assert (decision.action, decision.reason) == (Action.CLARIFY, Reason.AMBIGUOUS)
    assert decision.clarify is not None
    assert [option.intent for option in decision.clarify.options] == ["allowed"]
    assert decision.clarify.question == "Do you mean this: allowed"
    assert decision.intent is not None
    assert {other.name for other in decision.intent.alternatives} <= {"allowed"}
    assert "secret-" not in body.decode()
    assert_secret(body.decode())


async def test_an_ambiguous_sentence_with_nothing_in_reach_is_denied() -> None:
    for desk in (crowded(n_forbidden=10), crowded(n_forbidden=2)):
        decision, body = await desk.sent(request("hm what"), key_grants(), explain=True)
        assert (decision.action, decision.reason, decision.clarify) == (Action.DENY, Reason.NOT_PERMITTED, None)
        assert decision.intent is not None
        assert (decision.intent.name, decision.intent.alternatives) == ("forbidden_0", [])
        assert "secret-" not in body.decode()


async def test_two_intents_with_the_same_example_are_asked_about_by_permission() -> None:
    cards = [
        card("a", capability("first", ["do it"], required_permissions=["p"])),
        card("b", capability("second", ["do it"], required_permissions=["q"])),
    ]
    asked = {}
    for held in ("p", "q", "pq", ""):
        decision = await service_of(cards).route(request("do it"), key_grants(*held))
        asked[held] = [option.intent for option in decision.clarify.options] if decision.clarify else decision.action
    assert asked == {"p": ["first"], "q": ["second"], "pq": ["first", "second"], "": Action.DENY}


async def test_alternatives_are_intents_in_reach_only() -> None:
    cosines = {"do it": 0.95, "do that": 0.3, "do other": 0.2}
    cards = [
        card("a", capability("it", ["do it"])),
        card("b", capability("that", ["do that"], required_permissions=["p"])),
        card("c", capability("other", ["do other"])),
    ]
    for grants, alternatives in ((key_grants(), ["other"]), (key_grants("p"), ["that", "other"])):
        decision = await service_of(cards, embedder=NearEmbedder(cosines)).route(request("do so"), grants)
        assert decision.intent is not None
        assert (decision.intent.name, [other.name for other in decision.intent.alternatives]) == ("it", alternatives)


@pytest.mark.parametrize("why", FORBIDDEN)
@pytest.mark.parametrize("asked", [name for name in DENIED if "sentence" not in name])
async def test_a_hidden_denial_is_the_same_answer_as_that_for_an_unknown_intent(why: str, asked: str) -> None:
    answers = []
    for intent in (ERASE, "no_such_intent"):
        desk = desk_of(why, card("helper"), hide_denied=True)
        wanted = DENIED[asked].model_copy(update={"intent": intent})
        decision, body = await desk.sent(wanted, GRANTS, explain=True)
        assert (decision.action, decision.reason) == (Action.FALLBACK, Reason.NO_CAPABLE_AGENT)
        answers.append(body)
    assert answers[0] == answers[1]


async def test_a_hidden_denial_of_a_sentence_does_not_name_what_it_means() -> None:
    desk = desk_of("permission", card("helper"), hide_denied=True)
    for said in (SAID, f"please {SAID}"):
        decision, body = await desk.sent(request(said), GRANTS, explain=True)
        assert (decision.reason, decision.intent) == (Reason.NO_CAPABLE_AGENT, None)
        assert ERASE not in body.decode()


async def test_with_hide_denied_no_answer_names_an_intent_out_of_reach() -> None:
    ambiguous, body = await crowded(n_forbidden=2, allowed=0.65, hide_denied=True).sent(
        request("hm what"), key_grants()
    )
    assert (ambiguous.reason, ambiguous.intent) == (Reason.AMBIGUOUS, None)
    assert "forbidden" not in body.decode()
    far = service_of(
        [card("secret", capability("forbidden", ["do forbidden"], required_permissions=["p"]))],
        policy_of(hide_denied=True),
        embedder=NearEmbedder({"do forbidden": 0.3}),
    )
    out_of_scope, body = await far.sent(request("hm what"), key_grants())
    assert (out_of_scope.reason, out_of_scope.intent) == (Reason.OUT_OF_SCOPE, None)
    assert "forbidden" not in body.decode()


async def test_with_hide_denied_intents_in_reach_are_named_as_ever() -> None:
    decision = await desk_of("permission", helper(), hide_denied=True).route(request(SAID), GRANTS)
    assert decision.intent is not None
    assert decision.intent.name == ERASE


@pytest.mark.parametrize(
    ("grants", "wanted"),
    [
        (key_grants(namespaces=frozenset({"prod"})), {}),
        (key_grants(agent_ids=frozenset({"front"})), {"caller": Caller(agent_id="admin")}),
    ],
)
async def test_what_the_key_does_not_cover_is_refused_before_anything_is_written(
    grants: Grants, wanted: dict[str, Any]
) -> None:
    desk = desk_of("permission", helper())
    with pytest.raises(ForbiddenError):
        await desk.route(request(intent=ERASE, task_id="t", global_goal_hash="h", **wanted), grants)
    assert desk.records.rows == []

"""What holds for every request that is well formed."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from models.card import AgentCard, FallbackForm, FallbackForms, Price
from models.decision import Action, RouteDecision
from models.errors import InvalidPayloadError
from models.policy import IntentPolicy, NamespacePolicy, Policy, Rule
from models.request import RouteRequest
from router.permit import Grants, permits
from router.wire import loads
from tests.builders import START_MS, capability, card
from tests.json_texts import json_texts
from tests.service_builders import Desk, NearEmbedder, service_of

NOW = int(START_MS)
NUMBER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
FORMS = FallbackForms(human=FallbackForm(message_internal="i", message_user="u"))
COSINES = {"do bake": 0.72, "do brew": 0.7, "do fry": 0.69, "do boil": 0.5}


def agents() -> list[AgentCard]:
    def agent(agent_id: str, intent: str, *required: str, schema: Any = "text", **fields: Any) -> AgentCard:
        own = {name: fields.pop(name) for name in ("quality", "cost_level") if name in fields}
        kind = capability(intent, [f"do {intent}"], input_schema=schema, required_permissions=list(required), **own)
        return card(agent_id, kind, **fields)

    return [
        agent("cheap", "bake", quality=0.8, backup_agent_id="strong", timeout_ms=2000),
        agent("strong", "bake", quality=0.95, cost_level=5, fallback=FORMS, price=Price(per_call_usd=1.0)),
        agent("old", "bake", "p", version="0.9.0", quality=0.5),
        agent("old", "bake", version="0.8.0-rc.1", quality=0.5),
        agent("elsewhere", "bake", namespace="shared", schema={}, timeout_ms=500),
        agent("brewer", "brew", "p", "q", schema=NUMBER),
        agent("twin-a", "boil", labels={"environment": "live"}),
        agent("twin-b", "boil", labels={"environment": "live", "tenant": "acme"}),
        agent("fryer", "fry", allowed_sources=["front"], allowed_callers=["shop"]),
        agent("claimant", "fry"),
        agent("off", "bake", enabled=False),
    ]


INTENTS = ["bake", "brew", "fry", "boil", "unknown"]
NAMES = ["cheap", "strong", "old", "brewer", "twin-b", "fryer", "claimant", "nobody"]
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "payload": st.one_of(st.sampled_from([{"text": "x"}, {"order": 1}, None]), json_texts.map(str.encode).map(loads)),
    "cross_namespace": st.sampled_from([True, ["shared"], ["other"]]),
    "tenant": st.just("acme"),
    "environment": st.sampled_from(["live", "test"]),
    "version": st.sampled_from([">=1", "^0.9", "<1", ">=2 <3", "0"]),
    "caller": st.sampled_from([{"agent_id": "front"}, {"agent_id": "other"}]),
    "target_agent": st.sampled_from(NAMES),
    "response_timeout_ms": st.integers(1, 5000),
    "deadline_ms": st.integers(NOW - 1000, NOW + 20_000),
    "preference": st.sampled_from(["auto", "cheapest", "best"]),
    "max_cost_level": st.integers(1, 5),
    "min_quality": st.floats(0, 1),
    "exclude": st.lists(st.sampled_from(NAMES), max_size=4),
    "limit": st.integers(1, 5),
    "budget_tokens": st.integers(0, 10_000),
}
REQUESTS = st.builds(
    lambda which, fields: RouteRequest.model_validate({**which, **fields}),
    st.one_of(
        st.sampled_from(INTENTS).map(lambda intent: {"intent": intent}),
        st.sampled_from([*COSINES, "the best of 5 things", "hm", "?"]).map(lambda said: {"utterance": said}),
    ),
    st.fixed_dictionaries({}, optional=FIELDS),
)
GRANTS = st.builds(
    Grants,
    st.sampled_from(["shop", "press"]),
    st.sets(st.sampled_from("pq")).map(frozenset),
    st.sampled_from([None, frozenset({"default"})]),
)


@cache
def desk_of(hides_denied: bool) -> Desk:
    rules = NamespacePolicy(
        hide_denied=hides_denied, cross_namespaces=["shared"], intents={"fry": IntentPolicy(agents=["fryer"])}
    )
    policy = Policy(defaults=rules, rules=[Rule(pattern="best", preference="best")])
    return service_of(agents(), policy, embedder=NearEmbedder(COSINES))


def forbidden(desk: Desk, request: RouteRequest, grants: Grants) -> set[tuple[str, str]]:
    """(agent, version) of all capabilities that this request may not reach."""
    return {
        (entry.card.agent_id, entry.card.version)
        for entry in desk.snapshot.entries
        if not permits(entry, request, grants) or (entry.card.namespace != "default" and grants.namespaces is not None)
    }


def told_of(decision: RouteDecision) -> set[tuple[str, str]]:
    """(agent, version) of all that the decision tells of."""
    found = {(target.agent_id, target.version) for target in [decision.target] if target is not None}
    found |= {(step.target.agent_id, step.target.version) for step in decision.plan}
    found |= {(candidate.agent_id, candidate.version) for candidate in decision.candidates}
    return found | {(skipped.agent_id, skipped.version) for skipped in decision.skipped_versions}


def check_invocation(decision: RouteDecision, request: RouteRequest) -> None:
    assert decision.target is not None
    assert decision.plan[0].target == decision.target
    assert decision.intent is not None
    assert {step.target.intent for step in decision.plan} == {decision.intent.name}
    assert decision.target.agent_id not in request.exclude
    assert decision.target.cost_level <= (request.max_cost_level or 5)
    assert decision.propensity is not None
    assert 0 < decision.propensity <= 1
    budgets = [(request.deadline_ms or NOW + 86_400_000) - NOW, request.response_timeout_ms or 86_400_000]
    assert sum(step.timeout_ms + step.backoff_ms for step in decision.plan) <= min(budgets) - 200


@settings(max_examples=300)
@given(desk=st.booleans().map(desk_of), request=REQUESTS, grants=GRANTS, explain=st.booleans())
async def test_every_well_formed_request_gets_a_decision_that_holds_together(
    desk: Desk, request: RouteRequest, grants: Grants, explain: bool
) -> None:
    try:
        decision, body = await desk.sent(request, grants, explain=explain)
    except InvalidPayloadError as error:
        problems = error.problems
        decision = None
    if decision is None:
        assert all(problem.path.startswith("payload") for problem in problems)
        return
    assert RouteDecision.model_validate(loads(body)) == decision
    assert told_of(decision) & forbidden(desk, request, grants) == set()
    assert (decision.target is not None) is (decision.plan != []) is (decision.action is Action.INVOKE)
    assert (decision.clarify is not None) is (decision.action is Action.CLARIFY)
    if decision.action is not Action.INVOKE:  # there it is the last step of the plan, where the agent declares one
        assert (decision.fallback is not None) is (decision.action is Action.FALLBACK)
    if decision.action is Action.INVOKE:
        check_invocation(decision, request)
    if decision.action is Action.DENY:
        assert told_of(decision) == set()
        assert not desk.snapshot.policy.defaults.hide_denied
    assert len(decision.candidates) <= (request.limit or 100)
    for candidate in decision.candidates:
        is_chosen = decision.target is not None and candidate.agent_id == decision.target.agent_id
        assert [candidate.excluded is not None, candidate.why_not is not None, is_chosen].count(True) == 1

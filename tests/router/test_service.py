from __future__ import annotations

from typing import Any

import pytest

from models.candidate import Stage
from models.card import AgentCard
from models.decision import Action, Reason
from models.errors import InvalidPayloadError
from models.policy import NamespacePolicy, Policy, Rule
from tests.builders import capability, card, request
from tests.service_builders import Desk, NearEmbedder, key_grants, named, service_of, timeless

NUMBER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}


def agent(agent_id: str, intent: str = "echo", quality: float = 0.9, cost_level: int = 1, **fields: Any) -> AgentCard:
    return card(agent_id, capability(intent, [f"do {intent}"], quality=quality, cost_level=cost_level), **fields)


def kitchen(cosines: dict[str, float], policy: Policy | None = None) -> Desk:
    """A desk with an agent for each intent; any sentence not on a card has these cosines to their examples."""
    embedder = NearEmbedder({f"do {intent}": cosine for intent, cosine in cosines.items()})
    return service_of([agent(f"{intent}_agent", intent) for intent in cosines], policy, embedder=embedder)


async def test_an_example_word_for_word_is_sure() -> None:
    decision = await kitchen({"bake": 0.1, "brew": 0.1}).route(request("Do BREW!"))
    assert (decision.action, decision.reason) == (Action.INVOKE, Reason.ONLY_CANDIDATE)
    assert decision.target is not None
    assert decision.target.agent_id == "brew_agent"
    assert decision.intent is not None
    assert decision.intent.model_dump() == {"name": "brew", "confidence": 1.0, "source": "lexical", "alternatives": []}


async def test_a_near_sentence_is_read_by_its_vector() -> None:
    decision = await kitchen({"bake": 0.4, "brew": 0.9}).route(request("a cup of tea please"))
    assert decision.action is Action.INVOKE
    assert decision.intent is not None
    assert (decision.intent.name, decision.intent.source) == ("brew", "semantic")
    assert 0.8 < decision.intent.confidence < 1
    assert [other.name for other in decision.intent.alternatives] == ["bake"]
    assert decision.text == "a cup of tea please"


async def test_candidates_share_the_confidence_in_the_intent_as_their_similarity() -> None:
    decision = await kitchen({"bake": 0.4, "brew": 0.9}).route(request("tea please"), explain=True)
    [only] = decision.candidates
    assert decision.intent is not None
    assert only.features is not None
    assert only.features.similarity == decision.intent.confidence


async def test_a_sentence_between_two_intents_is_asked_about() -> None:
    decision = await kitchen({"bake": 0.7, "brew": 0.69, "fry": 0.2}).route(request("something warm"))
    assert (decision.action, decision.reason) == (Action.CLARIFY, Reason.AMBIGUOUS)
    assert decision.clarify is not None
    assert [option.intent for option in decision.clarify.options] == ["bake", "brew"]
    assert decision.clarify.question == "Which of these do you mean? (1) bake (2) brew"
    assert decision.intent is not None
    assert decision.intent.name == "bake"
    assert decision.target is None


async def test_a_sentence_far_from_all_is_out_of_scope_and_still_names_the_best_reading() -> None:
    decision = await kitchen({"bake": 0.4, "brew": 0.3}).route(request("who composed this"))
    assert (decision.action, decision.reason) == (Action.FALLBACK, Reason.OUT_OF_SCOPE)
    assert decision.intent is not None
    assert decision.intent.name == "bake"
    assert decision.intent.confidence < 0.3


async def test_a_sentence_without_words_is_out_of_scope() -> None:
    decision = await kitchen({"bake": 0.4}).route(request("?!"))
    assert (decision.reason, decision.intent) == (Reason.OUT_OF_SCOPE, None)


async def test_a_given_intent_wins_over_the_sentence() -> None:
    decision = await kitchen({"bake": 0.1, "brew": 0.1}).route(request("do bake", intent="brew"))
    assert decision.intent is not None
    assert (decision.intent.name, decision.intent.source, decision.intent.confidence) == ("brew", "caller", 1.0)
    assert decision.target is not None
    assert decision.target.agent_id == "brew_agent"


@pytest.mark.parametrize("cards", [[agent("a")], []])
async def test_an_intent_that_nobody_has_is_no_capable_agent(cards: list[AgentCard]) -> None:
    decision = await service_of(cards).route(request(intent="water_the_plants"))
    assert (decision.action, decision.reason) == (Action.FALLBACK, Reason.NO_CAPABLE_AGENT)
    assert decision.fallback is not None
    assert decision.fallback.message_internal == NamespacePolicy().fallback.message_internal


async def test_a_namespace_without_routable_capabilities_has_no_capable_agent() -> None:
    cards = [agent("a"), agent("off", namespace="test", enabled=False)]
    decision = await service_of(cards).route(request("do echo", namespace="test"))
    assert (decision.reason, decision.intent) == (Reason.NO_CAPABLE_AGENT, None)


@pytest.mark.parametrize(
    ("sentence", "wanted", "policy", "found"),
    [
        ("do echo", {}, {}, "cheap"),
        ("do echo", {"preference": "best"}, {}, "strong"),
        ("do echo in depth", {"intent": "echo"}, {}, "strong"),
        ("do echo in depth", {"intent": "echo", "preference": "auto"}, {}, "strong"),
        ("do echo in depth", {"intent": "echo", "preference": "cheapest"}, {}, "cheap"),
        ("do echo", {}, {"preference": "best"}, "strong"),
        ("do echo", {"preference": "cheapest"}, {"preference": "best"}, "cheap"),
        ("do echo", {"preference": "cheapest"}, {"cost_optimize": False}, "strong"),
        ("do echo", {"preference": "best", "max_cost_level": 4}, {}, "cheap"),
        ("do echo", {"min_quality": 0.93}, {}, "strong"),
        ("do echo", {"exclude": ["cheap"]}, {}, "strong"),
    ],
)
async def test_preference_and_limits_decide_between_the_cheap_and_the_strong(
    sentence: str, wanted: dict[str, Any], policy: dict[str, Any], found: str
) -> None:
    rules = [Rule(pattern="in depth", preference="best")]
    desk = service_of(
        [agent("cheap", quality=0.9, cost_level=1), agent("strong", quality=0.95, cost_level=5)],
        Policy(defaults=NamespacePolicy(**policy), rules=rules),
    )
    decision = await desk.route(request(sentence, **wanted))
    assert decision.target is not None
    assert decision.target.agent_id == found


async def test_a_rule_of_another_namespace_says_nothing() -> None:
    rules = [Rule(pattern="in depth", preference="best", namespace="other")]
    desk = service_of([agent("cheap"), agent("strong", quality=0.95, cost_level=5)], Policy(rules=rules))
    decision = await desk.route(request("in depth", intent="echo"))
    assert decision.target is not None
    assert decision.target.agent_id == "cheap"


async def test_near_equals_share_and_the_record_tells_how() -> None:
    cards = [agent("often", weight=300), agent("seldom", weight=100)]
    drawn = set()
    for seed in range(40):
        desk = service_of(cards, seed=seed)
        decision = await desk.route(request(intent="echo"))
        assert decision.reason is Reason.SHARED
        assert decision.target is not None
        drawn.add((decision.target.agent_id, decision.propensity))
        assert f'"seed":{seed},' in desk.records.decisions[0].inputs
    assert drawn == {("often", 0.75), ("seldom", 0.25)}


async def test_a_wish_is_granted_where_it_is_eligible() -> None:
    desk = service_of([agent("best"), agent("wished", quality=0.5, cost_level=5)])
    decision = await desk.route(request(intent="echo", target_agent="wished"))
    assert decision.target is not None
    assert (decision.target.agent_id, decision.reason, decision.degraded) == ("wished", Reason.SELECTED, [])


async def test_a_wish_that_cannot_be_granted_is_noted() -> None:
    desk = service_of([agent("best"), agent("dear", cost_level=5)])
    for wish in ("dear", "stranger"):
        decision = await desk.route(request(intent="echo", target_agent=wish, max_cost_level=2))
        assert decision.target is not None
        assert decision.target.agent_id == "best"
        assert decision.degraded == ["target_agent: not eligible, another was chosen"]


async def test_a_payload_that_fits_nobody_is_refused_and_nothing_is_recorded() -> None:
    desk = service_of([card("a", capability("echo", input_schema=NUMBER))])
    with pytest.raises(InvalidPayloadError) as caught:
        await desk.route(request(intent="echo", payload={"order": "x"}), key_grants())
    assert [problem.path for problem in caught.value.problems] == ["payload.order"]
    assert desk.records.rows == []


async def test_agents_without_an_admitted_version_are_named() -> None:
    desk = service_of([agent("a", version="1.0.0"), agent("a", version="1.2.0"), agent("b", version="2.0.0")])
    decision = await desk.route(request(intent="echo", version=">=2"), explain=True)
    assert decision.target is not None
    assert (decision.target.agent_id, decision.target.version) == ("b", "2.0.0")
    assert [skipped.model_dump() for skipped in decision.skipped_versions] == [
        {"agent_id": "a", "version": "1.2.0", "wanted": ">=2"}
    ]
    nobody = await desk.route(request(intent="echo", version=">=3"))
    assert nobody.reason is Reason.NO_CAPABLE_AGENT
    assert [skipped.agent_id for skipped in nobody.skipped_versions] == ["a", "b"]


async def test_an_explanation_lists_everybody_with_a_stage_or_a_why_not() -> None:
    cards = [
        agent("best", quality=0.95),
        agent("good", quality=0.8),
        agent("dear", cost_level=5),
        agent("late", timeout_ms=90_000),
        agent("old", version="0.1.0"),
        agent("out"),
    ]
    wanted = request(intent="echo", max_cost_level=4, version=">=1", exclude=["out"])
    decision = await service_of(cards).route(wanted, explain=True)
    assert {candidate.agent_id: candidate.excluded for candidate in decision.candidates} == {
        "best": None,
        "good": None,
        "old": Stage.VERSION,
        "dear": Stage.MAX_COST_LEVEL,
        "late": Stage.DEADLINE,
        "out": Stage.EXCLUDED,
    }
    for candidate in decision.candidates[1:]:
        assert (candidate.excluded is None) is (candidate.why_not is not None)
    assert decision.candidates[0].why_not is None


@pytest.mark.parametrize(
    ("explains", "limit", "listed"), [(False, None, 0), (True, None, 3), (True, 2, 2), (False, 1, 1)]
)
async def test_the_limit_caps_the_listing(explains: bool, limit: int | None, listed: int) -> None:
    desk = service_of([agent("a", quality=0.9), agent("b", quality=0.8), agent("c", quality=0.7)])
    decision = await desk.route(request(intent="echo", limit=limit), explain=explains)
    assert named(decision.candidates) == ["a", "b", "c"][:listed]


REQUESTS = [
    request(intent="echo"),
    request("do bake", limit=5),
    request("something warm"),
    request("who composed this 5 times"),
    request(intent="echo", response_timeout_ms=900),
    request(intent="unknown"),
    request(intent="echo", target_agent="a", version=">=1"),
]
COSINES = {"do echo": 0.7, "do bake": 0.69}


@pytest.mark.parametrize("wanted", REQUESTS)
async def test_the_same_snapshot_seed_and_clock_give_the_same_decision(wanted: Any) -> None:
    cards = [agent("a"), agent("b"), agent("baker", "bake"), agent("c", quality=0.7)]
    first = service_of(cards, embedder=NearEmbedder(COSINES))
    again = service_of(cards[::-1], embedder=NearEmbedder(COSINES))
    decisions = [await desk.route(wanted, explain=True) for desk in (first, again, first)]
    assert timeless(decisions[0]) == timeless(decisions[1]) == timeless(decisions[2])


@pytest.mark.parametrize("wanted", REQUESTS)
async def test_a_dry_run_decides_the_same_and_leaves_no_trace(wanted: Any) -> None:
    cards = [agent("a"), agent("b"), agent("baker", "bake")]
    dry, real = (service_of(cards, embedder=NearEmbedder(COSINES)) for _ in range(2))
    tried = await dry.route(wanted.model_copy(update={"dry_run": True}))
    assert tried.dry_run
    assert dry.records.rows == []
    assert await dry.journal.decision(tried.decision_id) is None
    done = await real.route(wanted)
    assert timeless(tried).model_copy(update={"dry_run": False}) == timeless(done)


async def test_ids_that_were_given_stay_and_missing_ones_are_made() -> None:
    desk = service_of([agent("a")])
    given = await desk.route(request(intent="echo", trace_id="trc-1", parent_span_id="spn-0"))
    assert (given.trace_id, given.envelope.parent_span_id) == ("trc-1", "spn-0")
    made = await desk.route(request(intent="echo"))
    assert (len(made.trace_id), len(made.span_id), made.envelope.parent_span_id) == (32, 16, None)
    assert len({given.decision_id, made.decision_id, made.trace_id}) == 3

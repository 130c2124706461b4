from __future__ import annotations

from typing import Any

import pytest

from models.candidate import Stage
from models.card import AgentCard, Price
from models.decision import Reason
from models.policy import NamespacePolicy
from models.request import Preference, RouteRequest
from router.scorer import Blend
from router.selection import Selection, explain, left_out, preference_of, select
from router.snapshot import Entry
from tests.builders import capability, card, snapshot_of
from tests.service_builders import named

WANTED = RouteRequest(intent="echo")


def agent(agent_id: str, quality: float = 0.9, cost_level: int = 1, **fields: Any) -> AgentCard:
    return card(agent_id, capability("echo", quality=quality, cost_level=cost_level), **fields)


def entries_of(*cards: AgentCard) -> list[Entry]:
    return list(snapshot_of(cards).entries)


def selected(
    *cards: AgentCard,
    preference: Preference = "auto",
    seed: int = 7,
    request: RouteRequest = WANTED,
    wish: str | None = None,
    **policy: Any,
) -> Selection:
    blend = Blend.of(NamespacePolicy(**policy), preference)
    return select(entries_of(*cards), 0.9, request, blend, seed, wish=wish)


def chosen(*cards: AgentCard, **wanted: Any) -> str:
    return selected(*cards, **wanted).chosen.card.agent_id


@pytest.mark.parametrize(
    ("asked", "said", "policy", "holds"),
    [
        ("cheapest", "best", "best", "cheapest"),
        ("best", "cheapest", "auto", "best"),
        (None, "best", "cheapest", "best"),
        ("auto", "best", "cheapest", "best"),
        (None, "auto", "cheapest", "auto"),
        (None, None, "cheapest", "cheapest"),
        ("auto", None, "best", "best"),
        (None, None, "auto", "auto"),
    ],
)
def test_the_caller_s_preference_comes_before_the_sentence_s_and_that_before_the_policy_s(
    asked: Preference | None, said: Preference | None, policy: Preference, holds: Preference
) -> None:
    request = RouteRequest(intent="echo", preference=asked)
    assert preference_of(request, said, NamespacePolicy(preference=policy)) == holds


STRONG, CHEAP = agent("strong", 0.95, 5), agent("cheap", 0.9, 1)


def test_the_cheaper_one_wins_within_the_margin() -> None:
    selection = selected(STRONG, CHEAP)
    assert selection.chosen.card.agent_id == "cheap"
    assert selection.reason is Reason.PREFERRED_CHEAPER
    # merit 0.9 * 0.9, less 0.1 for a fifth of the dearest's cost
    assert selection.utility == pytest.approx(0.81 - 0.1 / 5)


def test_beyond_the_margin_the_better_one_wins() -> None:
    selection = selected(agent("strong", 0.95, 5), agent("cheap", 0.82, 1))
    assert (selection.chosen.card.agent_id, selection.reason) == ("strong", Reason.SELECTED)


def test_who_wants_the_best_gets_it_and_who_wants_the_cheapest_too() -> None:
    assert chosen(STRONG, CHEAP, preference="best") == "strong"
    weak = agent("weak", 0.75, 1)
    assert chosen(STRONG, weak) == "strong"
    assert chosen(STRONG, weak, preference="cheapest") == "weak"


def test_without_cost_optimize_even_the_cheapest_is_the_best() -> None:
    assert chosen(STRONG, CHEAP, preference="cheapest", cost_optimize=False) == "strong"


def test_one_candidate_is_the_only_one() -> None:
    selection = selected(STRONG)
    assert (selection.reason, selection.choice.propensity) == (Reason.ONLY_CANDIDATE, 1.0)


def test_near_equals_share_by_weight_with_a_propensity() -> None:
    pair = [agent("often", weight=300), agent("seldom", weight=100)]
    choices = [selected(*pair, seed=seed) for seed in range(2000)]
    often = [choice for choice in choices if choice.chosen.card.agent_id == "often"]
    assert 0.72 < len(often) / len(choices) < 0.78
    assert {choice.reason for choice in choices} == {Reason.SHARED}
    assert {(c.chosen.card.agent_id, c.choice.propensity) for c in choices} == {("often", 0.75), ("seldom", 0.25)}


def test_the_same_seed_draws_the_same_one() -> None:
    pair = [agent("a"), agent("b")]
    first = [selected(*pair, seed=seed).choice for seed in range(50)]
    assert first == [selected(*pair, seed=seed).choice for seed in range(50)]
    assert {choice.index for choice in first} == {0, 1}


def test_a_clear_winner_takes_it_all() -> None:
    assert {chosen(agent("a", 0.9), agent("b", 0.85), seed=seed) for seed in range(200)} == {"a"}


def test_prices_count_only_where_every_candidate_has_one() -> None:
    per_call = [
        agent("a", 0.9, 1, price=Price(per_call_usd=0.9)),
        agent("b", 0.9, 5, price=Price(per_call_usd=0.1)),
    ]
    assert chosen(*per_call) == "b"
    assert chosen(per_call[0], agent("b", 0.9, 5)) == "a"


def test_the_token_budget_weighs_the_price_of_tokens() -> None:
    cards = [
        agent("flat", price=Price(per_call_usd=0.01)),
        agent("metered", price=Price(per_1k_tokens_usd=0.02)),
    ]
    assert chosen(*cards) == "flat"
    assert chosen(*cards, request=RouteRequest(intent="echo", budget_tokens=100)) == "metered"
    assert chosen(*cards, request=RouteRequest(intent="echo", budget_tokens=0)) == "metered"


def test_a_wish_outranks_utility() -> None:
    selection = selected(STRONG, agent("weak", 0.1, 5), wish="weak")
    assert selection.chosen.card.agent_id == "weak"
    assert (selection.wished, selection.reason, selection.choice.propensity) == (True, Reason.SELECTED, 1.0)
    assert [(c.agent_id, c.propensity) for c in explain(selection, (), 10)] == [("strong", 0.0), ("weak", 1.0)]


def test_a_wish_for_somebody_else_changes_nothing() -> None:
    selection = selected(STRONG, CHEAP, wish="stranger")
    assert (selection.chosen.card.agent_id, selection.wished) == ("cheap", False)


def test_a_wish_takes_the_better_of_two_namespaces() -> None:
    cards = [agent("twin", 0.5), agent("twin", 0.9, namespace="other"), agent("third", 0.99)]
    assert selected(*cards, wish="twin").chosen.card.namespace == "other"


def test_every_loser_has_a_why_not_and_the_winner_has_none() -> None:
    for request in (WANTED, RouteRequest(intent="echo", target_agent="low")):
        selection = selected(STRONG, CHEAP, agent("low", 0.2), request=request)
        winner = selection.chosen.card.agent_id
        for candidate in explain(selection, (), 10):
            assert candidate.excluded is None
            assert (candidate.why_not is None) is (candidate.agent_id == winner)
            assert candidate.why_not is None or candidate.why_not.text


def test_the_listing_is_best_first_then_the_excluded_and_never_longer_than_the_limit() -> None:
    out = [(entry, Stage.DEADLINE) for entry in entries_of(agent("late"), agent("later"))]
    selection = selected(CHEAP, STRONG)
    assert named(explain(selection, out, 10)) == ["cheap", "strong", "late", "later"]
    assert named(explain(selection, out, 3)) == ["cheap", "strong", "late"]
    assert named(explain(selection, out, 1)) == ["cheap"]
    assert left_out(out, 0) == []


def test_an_excluded_candidate_has_its_stage_and_no_figures() -> None:
    [late] = left_out([(entries_of(agent("late", cost_level=4, version="2.1.0"))[0], Stage.DEADLINE)], 5)
    assert late.model_dump(exclude_none=True) == {
        "agent_id": "late",
        "namespace": "default",
        "version": "2.1.0",
        "intent": "echo",
        "cost_level": 4,
        "excluded": Stage.DEADLINE,
    }


def test_the_figures_of_a_candidate_add_up() -> None:
    first = explain(selected(STRONG, CHEAP), (), 1)[0]
    assert first.features is not None
    assert first.merit is not None
    assert first.merit == pytest.approx(first.features.similarity * first.features.quality)
    assert first.contributions is not None
    assert first.utility == pytest.approx(first.merit + first.contributions.cost)
    assert first.features.cost == pytest.approx(0.8)


def test_shares_are_listed_for_all_near_equals() -> None:
    listed = explain(selected(agent("a", weight=3), agent("b", weight=1), agent("c", 0.5)), (), 10)
    assert [(candidate.agent_id, candidate.propensity) for candidate in listed] == [
        ("a", 0.75),
        ("b", 0.25),
        ("c", 0.0),
    ]

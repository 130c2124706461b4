from __future__ import annotations

from models.card import AgentCard
from models.reading import Alternative, Certainty, Reading
from router.clarify import N_OPTIONS, options, question
from router.permit import OPEN, Grants
from tests.builders import capability, card, policy_of, request, snapshot_of
from tests.service_builders import case_of, key_grants


def agent(agent_id: str, intent: str, *required: str, description: str = "", namespace: str = "default") -> AgentCard:
    own = capability(intent, description=description, required_permissions=list(required))
    return card(agent_id, own, namespace=namespace)


def reading_of(*meant: tuple[str, float]) -> Reading:
    best, *others = (Alternative(intent, confidence) for intent, confidence in meant)
    return Reading(
        text="hm",
        language="und",
        certainty=Certainty.AMBIGUOUS,
        intent=best.intent,
        confidence=best.confidence,
        source="semantic",
        alternatives=tuple(others),
    )


def offered(
    cards: list[AgentCard], *meant: tuple[str, float], grants: Grants = OPEN, plausible: float = 0.3
) -> list[str]:
    policy = policy_of(confidence={"plausible": plausible})
    case = case_of(request("hm"), snapshot_of(cards, policy), grants)
    return [entry.capability.intent for entry in options(case, reading_of(*meant))]


CARDS = [agent("a", "bake"), agent("b", "brew"), agent("c", "boil", "kitchen:hot")]


def test_the_options_are_the_intents_of_the_reading_best_first() -> None:
    assert offered(CARDS, ("brew", 0.45), ("bake", 0.4)) == ["brew", "bake"]


def test_what_is_not_plausible_is_no_option() -> None:
    assert offered(CARDS, ("brew", 0.45), ("bake", 0.29)) == ["brew"]
    assert offered(CARDS, ("brew", 0.45), ("bake", 0.29), plausible=0.2) == ["brew", "bake"]


def test_the_best_reading_is_an_option_however_unsure_it_is() -> None:
    assert offered(CARDS, ("brew", 0.05), ("bake", 0.04)) == ["brew"]


def test_what_is_out_of_reach_is_no_option() -> None:
    meant = (("boil", 0.45), ("bake", 0.4), ("freeze", 0.4))
    assert offered(CARDS, *meant, grants=key_grants()) == ["bake"]
    assert offered(CARDS, *meant, grants=key_grants("kitchen:hot")) == ["boil", "bake"]
    assert offered(CARDS, ("boil", 0.45), grants=key_grants()) == []


def test_an_intent_of_many_agents_is_one_option_described_by_one_that_is_within_reach() -> None:
    cards = [agent("a", "brew", "secret", description="the secret recipe"), agent("b", "brew", description="tea")]
    case = case_of(request("hm"), snapshot_of(cards), key_grants())
    [option] = options(case, reading_of(("brew", 0.4)))
    assert option.capability.description == "tea"


def test_there_are_at_most_so_many_options() -> None:
    intents = [f"intent_{letter}" for letter in "abcdefgh"]
    meant = [(intent, 0.4) for intent in intents]
    assert offered([agent(f"agent-{intent}", intent) for intent in intents], *meant) == intents[:N_OPTIONS]


def test_a_reading_without_an_intent_has_no_options() -> None:
    case = case_of(request("hm"), snapshot_of(CARDS))
    assert options(case, Reading("hm", "und", Certainty.OUT_OF_SCOPE, None, 0.0, "semantic")) == []


def test_the_question_asks_to_confirm_one_or_to_pick_of_several() -> None:
    entries = snapshot_of([agent("a", "bake", description="Bake a cake."), agent("b", "brew")]).entries
    assert question([entries[0]]) == "Do you mean this: Bake a cake."
    assert question(list(entries)) == "Which of these do you mean? (1) Bake a cake. (2) brew"

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intent.dummy_embedder import DummyEmbedder
from models.card import AgentCard
from router.snapshot import Snapshot
from tests.builders import capability, card, snapshot_of
from tests.router.brute_force import all_owners

WORDS = ["order", "refund", "parcel", "invoice", "flight", "desk", "lamp", "chair", "late", "lost", "cancel", "track"]
DEFAULT = ("default",)


def floats(text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.frombuffer(DummyEmbedder().embed(text).vector, dtype="<f4")


def some_cards(rng: np.random.Generator, n_cards: int) -> list[AgentCard]:
    """Cards with a few intents in common and random sentences, some of them the same."""

    def sentence() -> str:
        return " ".join(rng.choice(WORDS, size=rng.integers(2, 6)))

    def one(number: int) -> AgentCard:
        intents = rng.choice(8, size=rng.integers(1, 4), replace=False)
        served = [
            capability(f"intent_{intent}", {sentence() for _ in range(rng.integers(1, 6))}, description=sentence())
            for intent in intents
        ]
        return card(f"agent_{number}", *served)

    return [one(number) for number in range(n_cards)]


def expected_intents(snapshot: Snapshot, allowed: set[int], query: str) -> dict[str, float]:
    """Intent → similarity by brute force over the distinct texts of the allowed capabilities."""
    texts = sorted(
        {
            (entry.capability.intent, text)
            for entry in snapshot.entries
            if entry.number in allowed
            for text in (*entry.capability.examples, entry.capability.description)
        }
    )
    intents = sorted({intent for intent, _ in texts})
    vectors = np.array([floats(text) for _, text in texts])
    owners = np.array([intents.index(intent) for intent, _ in texts])
    found = all_owners(vectors, owners, np.ones(len(texts), dtype=np.bool_), floats(query))
    return {intents[owner]: similarity for owner, similarity in found.items()}


@settings(max_examples=80, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.2, 0.7, 1.0]))
def test_neighbours_equal_brute_force_over_the_allowed_capabilities(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    snapshot = snapshot_of(some_cards(rng, int(rng.integers(1, 12))))
    numbers = [entry.number for entry in snapshot.entries]
    # a share of 0 leaves one capability
    allowed = {number for number in numbers if rng.random() < share} or {int(rng.choice(numbers))}
    query = " ".join(rng.choice(WORDS, size=3))
    expected = expected_intents(snapshot, allowed, query)

    scope = snapshot.scope_of([entry for entry in snapshot.entries if entry.number in allowed])
    found = scope.neighbours(DummyEmbedder().embed(query).vector, 6)

    best = sorted(expected.values(), reverse=True)[:6]
    assert [neighbour.similarity for neighbour in found] == pytest.approx(best, abs=1e-5)
    given_back = {neighbour.intent: neighbour.similarity for neighbour in found}
    assert {intent: expected[intent] for intent in given_back} == pytest.approx(given_back, abs=1e-5)


def test_a_second_version_of_an_agent_does_not_change_what_an_utterance_means() -> None:
    shipping = card("shipping", capability("track", ["where is my parcel now", "has my parcel left"]))
    orders = card("orders", capability("buy", ["is my parcel desk for sale now", "a desk now"]))
    vector = DummyEmbedder().embed("where is my desk parcel now").vector
    once = snapshot_of([shipping, orders]).scope(DEFAULT).neighbours(vector, 2)
    newer = [shipping.model_copy(update={"version": f"1.{minor}.0"}) for minor in range(1, 20)]
    assert snapshot_of([shipping, orders, *newer]).scope(DEFAULT).neighbours(vector, 2) == once


def test_a_text_of_two_agents_is_found_through_either_of_them() -> None:
    snapshot = snapshot_of([card(name, capability("track", ["where is my parcel"])) for name in ("a", "b")])
    assert snapshot.index.n_rows == 1
    for entry in snapshot.entries:
        [found] = snapshot.scope_of([entry]).neighbours(DummyEmbedder().embed("where is my parcel").vector, 5)
        assert (found.intent, found.similarity) == ("track", 1.0)


def test_a_scope_reads_over_its_namespaces_only() -> None:
    here = card("here", capability("track", ["where is my parcel"]))
    there = card("there", capability("buy", ["sell me a desk"]), namespace="prod/shop")
    snapshot = snapshot_of([here, there])
    vector = DummyEmbedder().embed("sell me a desk").vector
    assert [found.intent for found in snapshot.scope(DEFAULT).neighbours(vector, 5)] == ["track"]
    assert [found.intent for found in snapshot.scope(("prod/shop",)).neighbours(vector, 5)] == ["buy"]
    both = snapshot.scope(("default", "prod/shop")).neighbours(vector, 5)
    assert [found.intent for found in both] == ["buy", "track"]
    assert snapshot.scope(DEFAULT).exact("sell me a desk") == []
    assert snapshot.scope(("prod/shop",)).exact("sell me a desk") == ["buy"]


def test_an_example_of_two_intents_is_exactly_both_in_a_stable_order() -> None:
    cards = [card("b", capability("zebra", ["do it"])), card("a", capability("ape", ["Do it!"]))]
    assert snapshot_of(cards).scope(DEFAULT).exact("do it") == ["ape", "zebra"]


def test_a_namespace_without_cards_has_nothing_routable() -> None:
    scope = snapshot_of([card("a")]).scope(("elsewhere",))
    assert not scope.has_routable
    assert scope.neighbours(DummyEmbedder().embed("please ask a").vector, 5) == []
    assert scope.exact("please ask a") == []


def test_a_snapshot_without_cards_has_nothing_routable() -> None:
    snapshot = snapshot_of([])
    assert snapshot.index.n_rows == 0
    scope = snapshot.scope(DEFAULT)
    assert not scope.has_routable
    assert scope.neighbours(DummyEmbedder().embed("hello").vector, 5) == []


def test_made_up_namespaces_do_not_push_out_real_ones() -> None:
    snapshot = snapshot_of([card("a")])
    for number in range(2000):
        snapshot.scope((f"made/up{number}",))
    assert snapshot.scope(DEFAULT) is snapshot.scope(DEFAULT)


def test_routable_lists_the_capabilities_of_an_intent_by_namespace() -> None:
    cards = [
        card("b", capability("track"), namespace="prod"),
        card("a", capability("track"), capability("buy")),
        card("off", capability("track"), enabled=False),
        card("bare", capability("track", input_schema=None)),
    ]
    snapshot = snapshot_of(cards)

    def agents(namespaces: tuple[str, ...]) -> list[str]:
        return [entry.card.agent_id for entry in snapshot.routable(namespaces, "track")]

    assert agents(DEFAULT) == ["a"]
    assert agents(("prod", "default")) == ["b", "a"]
    assert agents(("elsewhere",)) == []
    assert len(snapshot.routable_in(("default", "prod"))) == 3

from __future__ import annotations

import random
from typing import Any

import pytest

from models.card import AgentCard
from models.policy import AgentPolicy, IntentPolicy, NamespacePolicy, Policy
from router.assemble import texts_of
from router.schemas import payload_problems
from router.snapshot import Entry, Snapshot
from tests.builders import capability, card, policy_of, snapshot_of


def only_entry(snapshot: Snapshot) -> Entry:
    [entry] = snapshot.entries
    return entry


def flaw_under(require_schemas: str, **fields: object) -> str | None:
    """The flaw of a capability with these fields, where the policy asks for these schemas."""
    one = card("a", capability("track", ["where is my parcel"], **fields))
    return only_entry(snapshot_of([one], policy_of(require_schemas=require_schemas))).flaw


def problems(schema: dict[str, Any] | str, payload: object) -> list[str]:
    """Where a payload does not fit a capability of that input schema."""
    validator = only_entry(snapshot_of([card("a", capability("track", input_schema=schema))])).validator
    assert validator is not None
    return [problem.path for problem in payload_problems(validator, payload)]


def shape(snapshot: Snapshot) -> tuple[object, ...]:
    """All of a snapshot that order could have touched."""
    return (
        [(entry.number, entry.card.key, entry.capability.intent) for entry in snapshot.entries],
        snapshot.intents,
        snapshot.texts.rows.tolist(),
        snapshot.texts.entries.tolist(),
        snapshot.texts.intents.tolist(),
        snapshot.exact,
    )


def test_texts_are_normalized_distinct_and_sorted() -> None:
    one = capability("track", ["Ｗhere is  it？", "where", "where"], description="Tells where.")
    assert texts_of([card("a", one), card("b", one)]) == ["Tells where.", "Where is it?", "where"]


def test_empty_descriptions_and_invisible_examples_are_no_texts() -> None:
    assert texts_of([card("a", capability("track", ["\u200b", "  "], description=""))]) == []


@pytest.mark.parametrize(
    ("require", "fields", "flaw"),
    [
        ("both", {}, None),
        ("both", {"input_schema": None}, "input_schema_missing"),
        ("both", {"output_schema": None}, "output_schema_missing"),
        ("both", {"input_schema": None, "output_schema": None}, "input_schema_missing"),
        ("input", {"output_schema": None}, None),
        ("input", {"input_schema": None}, "input_schema_missing"),
        ("none", {"input_schema": None, "output_schema": None}, None),
    ],
)
def test_the_policy_says_which_schemas_make_a_capability_routable(
    require: str, fields: dict[str, None], flaw: str | None
) -> None:
    assert flaw_under(require, **fields) == flaw


def test_a_flawed_capability_is_kept_but_neither_indexed_nor_routable() -> None:
    bare = capability("bare", ["do the bare thing"], input_schema=None)
    snapshot = snapshot_of([card("a", bare, capability("track", ["where is my parcel"]))])
    assert [(entry.capability.intent, entry.flaw) for entry in snapshot.entries] == [
        ("bare", "input_schema_missing"),
        ("track", None),
    ]
    assert snapshot.index.n_rows == 1
    assert snapshot.intents == ("track",)
    assert snapshot.routable(("default",), "bare") == []
    assert snapshot.scope(("default",)).exact("do the bare thing") == []


def test_the_schema_rule_is_that_of_the_cards_namespace() -> None:
    policy = Policy(namespaces={"lax": NamespacePolicy(require_schemas="none")})
    cards = [card("a", capability("track", input_schema=None), namespace=name) for name in ("lax", "default")]
    flaws = {entry.card.namespace: entry.flaw for entry in snapshot_of(cards, policy).entries}
    assert flaws == {"lax": None, "default": "input_schema_missing"}


def test_a_disabled_card_is_kept_and_not_routable() -> None:
    snapshot = snapshot_of([card("a", enabled=False)])
    assert [known.agent_id for known in snapshot.cards] == ["a"]
    assert only_entry(snapshot).flaw == "agent_disabled"
    assert snapshot.index.n_rows == 0


def test_the_operator_overrides_enabled_and_weight() -> None:
    cards = [card("off", weight=50), card("on", enabled=False), card("as_is", weight=7)]
    policy = Policy(agents={"off": AgentPolicy(enabled=False), "on": AgentPolicy(enabled=True, weight=5.0)})
    found = {entry.card.agent_id: (entry.flaw, entry.card.weight) for entry in snapshot_of(cards, policy).entries}
    assert found == {"off": ("agent_disabled", 50.0), "on": (None, 5.0), "as_is": (None, 7.0)}


def test_required_permissions_are_those_of_the_card_and_the_policy() -> None:
    erase = card("a", capability("erase", required_permissions=["user:erase"]))
    policy = policy_of(intents={"erase": IntentPolicy(required_permissions=["user:audited"])})
    assert only_entry(snapshot_of([erase])).required == {"user:erase"}
    assert only_entry(snapshot_of([erase], policy)).required == {"user:erase", "user:audited"}


def test_an_intent_given_to_others_is_reserved() -> None:
    cards = [card(name, capability("erase")) for name in ("officer", "concierge")]
    policy = policy_of(intents={"erase": IntentPolicy(agents=["officer"])})
    reserved = {entry.card.agent_id: entry.reserved for entry in snapshot_of(cards, policy).entries}
    assert reserved == {"officer": False, "concierge": True}


def test_the_validator_is_that_of_the_input_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert problems(schema, {"n": 3}) == []
    assert problems(schema, {"n": "three"}) == ["payload.n"]


def test_a_built_in_schema_is_compiled_and_none_given_accepts_anything() -> None:
    assert problems("text", {"text": 1}) == ["payload.text"]
    lax = policy_of(require_schemas="none")
    assert only_entry(snapshot_of([card("a", capability("track", input_schema=None))], lax)).validator is None


def test_the_order_of_registration_leaves_no_trace() -> None:
    texts = ["do this", "do that", "do the other thing"]
    cards: list[AgentCard] = [
        card(agent_id, *(capability(intent, texts) for intent in ("b", "a")), version=version, namespace=namespace)
        for agent_id in ("y", "x")
        for namespace in ("prod", "default")
        for version in ("1.10.0", "1.9.0", "1.9.0-rc.1", "1.9.0+b", "1.9.0+a")
    ]
    expected = shape(snapshot_of(cards))
    for seed in range(5):
        shuffled = random.Random(seed).sample(cards, len(cards))
        assert shape(snapshot_of(shuffled)) == expected


def test_entries_are_ordered_by_namespace_agent_and_precedence_of_version() -> None:
    cards = [card("a", version=version) for version in ("1.10.0", "1.9.0", "1.9.0-rc.1")]
    snapshot = snapshot_of([*cards, card("b", namespace="alpha")])
    assert [entry.card.key for entry in snapshot.entries] == [
        ("alpha", "b", "1.0.0"),
        ("default", "a", "1.9.0-rc.1"),
        ("default", "a", "1.9.0"),
        ("default", "a", "1.10.0"),
    ]


def test_texts_of_unknown_scripts_are_matched_exactly_but_not_indexed() -> None:
    snapshot = snapshot_of([card("a", capability("track", ["我的快递到哪了", "where is my parcel"]))])
    assert snapshot.index.n_rows == 1
    assert snapshot.scope(("default",)).exact("我的快递到哪了") == ["track"]


def test_examples_match_by_their_key_and_descriptions_do_not() -> None:
    one = capability("track", ["Where is my parcel?"], description="Track a parcel.")
    scope = snapshot_of([card("a", one)]).scope(("default",))
    assert scope.exact("where is my parcel") == ["track"]
    assert scope.exact("track a parcel") == []


def test_a_capability_without_texts_is_routable_by_its_name() -> None:
    snapshot = snapshot_of([card("a", capability("track"))])
    assert snapshot.index.n_rows == 0
    assert [entry.card.agent_id for entry in snapshot.routable(("default",), "track")] == ["a"]
    assert snapshot.scope(("default",)).has_routable

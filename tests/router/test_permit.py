from __future__ import annotations

from typing import Any

import pytest

from models.card import AgentCard
from models.errors import ForbiddenError
from models.key import ADMIN, READ, Key
from models.policy import IntentPolicy, NamespacePolicy, Policy
from models.request import Caller
from router.permit import OPEN, Grants, labelled, namespaces_of, permits, permitted, permitted_of
from tests.builders import capability, card, policy_of, request, snapshot_of
from tests.service_builders import key_grants

ERASE = "erase_user_data"


def reachable(
    *cards: AgentCard, grants: Grants = OPEN, policy: Policy | None = None, speaker: str | None = None
) -> list[str]:
    """The agents that may be asked to erase."""
    asked = request(intent=ERASE, caller=Caller(agent_id=speaker))
    entries = snapshot_of(cards, policy).routable(("default",), ERASE)
    return [entry.card.agent_id for entry in permitted(entries, asked, grants)]


def eraser(agent_id: str = "eraser", required: tuple[str, ...] = (), **fields: Any) -> AgentCard:
    return card(agent_id, capability(ERASE, required_permissions=list(required)), **fields)


@pytest.mark.parametrize(
    ("held", "may"),
    [
        ((), False),
        (("user:erase",), False),
        (("user:read",), False),
        (("user", "user:erase:all"), False),
        (("user:erase", "user:read"), True),
        (("user:erase", "user:read", "user:write"), True),
    ],
)
def test_all_required_permissions_are_needed(held: tuple[str, ...], may: bool) -> None:
    found = reachable(eraser(required=("user:erase", "user:read")), grants=key_grants(*held))
    assert found == (["eraser"] if may else [])


def test_an_intent_policy_adds_to_the_permissions_of_the_card() -> None:
    policy = policy_of(intents={ERASE: IntentPolicy(required_permissions=["user:audited"])})
    guarded = eraser(required=("user:erase",))
    assert reachable(guarded, grants=key_grants("user:erase"), policy=policy) == []
    assert reachable(guarded, grants=key_grants("user:audited"), policy=policy) == []
    assert reachable(guarded, grants=key_grants("user:erase", "user:audited"), policy=policy) == ["eraser"]


def test_while_keys_are_off_no_permission_is_missing() -> None:
    assert reachable(eraser(required=("user:erase",)), grants=OPEN) == ["eraser"]


def test_an_intent_policy_reserves_the_intent_whatever_others_claim() -> None:
    policy = policy_of(intents={ERASE: IntentPolicy(agents=["admin"])})
    assert reachable(eraser("admin"), eraser("claimant"), policy=policy) == ["admin"]
    nobody = policy_of(intents={ERASE: IntentPolicy(agents=[])})
    assert reachable(eraser("admin"), policy=nobody) == []


def test_an_intent_policy_of_one_namespace_says_nothing_of_another() -> None:
    reserved = NamespacePolicy(intents={ERASE: IntentPolicy(agents=["admin"])})
    policy = Policy(namespaces={"prod": reserved})
    snapshot = snapshot_of([eraser(), eraser(namespace="prod")], policy)
    found = permitted_of(snapshot, ("default", "prod"), ERASE, request(intent=ERASE), OPEN)
    assert [entry.card.namespace for entry in found] == ["default"]


@pytest.mark.parametrize(
    ("allowed", "speaker", "may"),
    [
        (None, None, True),
        (None, "anyone", True),
        (["front", "desk"], "front", True),
        (["front", "desk"], "fron", False),
        (["front", "desk"], None, False),
        ([], "front", False),
        ([], None, False),
    ],
)
def test_allowed_sources_name_the_agents_that_may_ask(
    allowed: list[str] | None, speaker: str | None, may: bool
) -> None:
    assert bool(reachable(eraser(allowed_sources=allowed), speaker=speaker)) is may


@pytest.mark.parametrize(
    ("allowed", "caller", "may"), [(None, "shop", True), (["shop"], "shop", True), (["shop"], "press", False)]
)
def test_allowed_callers_name_the_keys_that_may_ask(allowed: list[str] | None, caller: str, may: bool) -> None:
    assert bool(reachable(eraser(allowed_callers=allowed), grants=key_grants(caller=caller))) is may


def test_allowed_callers_bind_nobody_while_keys_are_off() -> None:
    assert reachable(eraser(allowed_callers=["shop"]), grants=OPEN) == ["eraser"]


def test_one_forbidding_condition_is_enough() -> None:
    snapshot = snapshot_of([eraser(required=("p",), allowed_sources=["front"], allowed_callers=["shop"])])
    [entry] = snapshot.entries
    asked = request(intent=ERASE, caller=Caller(agent_id="front"))
    assert permits(entry, asked, key_grants("p", caller="shop"))
    assert not permits(entry, asked, key_grants(caller="shop"))
    assert not permits(entry, asked, key_grants("p", caller="press"))
    assert not permits(entry, request(intent=ERASE), key_grants("p", caller="shop"))


def test_grants_are_what_the_key_says() -> None:
    key = Key(
        key_id="0" * 16,
        name="shop",
        secret_sha256="0" * 64,
        permissions=frozenset({"p"}),
        namespaces=frozenset({"prod"}),
        callers=frozenset({"front"}),
        created_at=0,
    )
    assert Grants.of(key) == Grants("shop", frozenset({"p"}), frozenset({"prod"}), frozenset({"front"}))


def test_a_key_routes_only_in_its_namespaces() -> None:
    grants = key_grants(namespaces=frozenset({"prod/commerce"}))
    grants.check(request("hello", namespace="prod/commerce"))
    for elsewhere in ("prod", "prod/commerce/eu", "default"):
        with pytest.raises(ForbiddenError, match=f"does not reach namespace '{elsewhere}'"):
            grants.check(request("hello", namespace=elsewhere))
    with pytest.raises(ForbiddenError):
        key_grants(namespaces=frozenset()).check(request("hello"))


def test_a_key_speaks_only_as_its_own_agents() -> None:
    grants = key_grants(agent_ids=frozenset({"front"}))
    grants.check(request("hello", caller=Caller(agent_id="front")))
    grants.check(request("hello"))
    with pytest.raises(ForbiddenError, match="may not speak as 'admin'"):
        grants.check(request("hello", caller=Caller(agent_id="admin")))


def test_admin_includes_read_but_not_the_other_way_round() -> None:
    key_grants(ADMIN).require(READ)
    key_grants(READ).require(READ)
    OPEN.require(ADMIN)
    for grants, permission in ((key_grants(READ), ADMIN), (key_grants(), READ), (key_grants(ADMIN), "other")):
        with pytest.raises(ForbiddenError, match=f"permission '{permission}'"):
            grants.require(permission)


CROSSING = Policy(namespaces={"prod": NamespacePolicy(cross_namespaces=["shared", "archive", "prod"])})


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (False, ("prod",)),
        ([], ("prod",)),
        (True, ("prod", "archive", "shared")),
        (["shared"], ("prod", "shared")),
        (["secret"], ("prod",)),
        (["secret", "shared", "prod"], ("prod", "shared")),
    ],
)
def test_a_crossing_needs_the_request_and_the_policy(asked: bool | list[str], found: tuple[str, ...]) -> None:
    assert namespaces_of(request("hello", namespace="prod", cross_namespace=asked), CROSSING, OPEN) == found


def test_a_crossing_needs_the_key_too() -> None:
    asked = request("hello", namespace="prod", cross_namespace=True)
    assert namespaces_of(asked, CROSSING, key_grants(namespaces=frozenset({"prod"}))) == ("prod",)
    reach = key_grants(namespaces=frozenset({"prod", "shared"}))
    assert namespaces_of(asked, CROSSING, reach) == ("prod", "shared")


def test_the_policy_of_the_request_s_namespace_decides_where_it_may_cross() -> None:
    asked = request("hello", namespace="shared", cross_namespace=True)
    assert namespaces_of(asked, CROSSING, OPEN) == ("shared",)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["eu", "plain", "us"]),
        ({"environment": "live"}, ["eu", "us"]),
        ({"environment": "live", "tenant": "acme"}, ["us"]),
        ({"tenant": "acme"}, ["us"]),
        ({"environment": "Live"}, []),
    ],
)
def test_labels_restrict_what_the_request_names(wanted: dict[str, str], found: list[str]) -> None:
    cards = [
        eraser("eu", labels={"environment": "live", "tenant": "other"}),
        eraser("us", labels={"environment": "live", "tenant": "acme"}),
        eraser("plain"),
    ]
    asked = request(intent=ERASE, **wanted)
    kept = labelled(snapshot_of(cards).entries, asked)
    assert [entry.card.agent_id for entry in kept] == found


def test_permitted_of_takes_intent_namespace_labels_and_permissions_together() -> None:
    live = {"environment": "live"}
    cards = [
        eraser("right", labels=live),
        eraser("unlabelled"),
        eraser("elsewhere", labels=live, namespace="other"),
        eraser("guarded", required=("p",), labels=live),
        eraser("disabled", labels=live, enabled=False),
        card("other_intent", labels=live),
    ]
    asked = request(intent=ERASE, environment="live")
    found = permitted_of(snapshot_of(cards), ("default",), ERASE, asked, key_grants())
    assert [entry.card.agent_id for entry in found] == ["right"]

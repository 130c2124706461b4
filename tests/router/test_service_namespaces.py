from __future__ import annotations

from typing import Any

import pytest

from models.card import AgentCard
from models.policy import NamespacePolicy, Policy
from tests.builders import capability, card, request
from tests.service_builders import key_grants, service_of


def agent(agent_id: str, intent: str = "echo", quality: float = 0.9, cost_level: int = 1, **fields: Any) -> AgentCard:
    return card(agent_id, capability(intent, [f"do {intent}"], quality=quality, cost_level=cost_level), **fields)


CROSSING = Policy(namespaces={"prod": NamespacePolicy(cross_namespaces=["shared"])})


@pytest.mark.parametrize(
    ("crosses", "reach", "found"),
    [
        (False, None, None),
        (True, None, "helper"),
        (["shared"], None, "helper"),
        (["other"], None, None),
        (True, frozenset({"prod"}), None),
        (True, frozenset({"prod", "shared"}), "helper"),
    ],
)
async def test_another_namespace_serves_only_where_all_three_agree(
    crosses: bool | list[str], reach: frozenset[str] | None, found: str | None
) -> None:
    desk = service_of([agent("helper", namespace="shared"), agent("baker", "bake", namespace="prod")], CROSSING)
    grants = key_grants(namespaces=reach)
    decision = await desk.route(request(intent="echo", namespace="prod", cross_namespace=crosses), grants)
    assert (decision.target and decision.target.agent_id) == found
    read = await desk.route(request("do echo", namespace="prod", cross_namespace=crosses), grants)
    assert (read.target and read.target.agent_id) == found


@pytest.mark.parametrize(("crosses", "planned"), [(False, ["a"]), (True, ["a", "b"])])
async def test_a_backup_in_another_namespace_counts_as_a_crossing(crosses: bool, planned: list[str]) -> None:
    cards = [
        agent("a", namespace="prod", backup_agent_id="b", max_retries=0, timeout_ms=1000),
        agent("b", quality=0.5, namespace="shared", timeout_ms=1000),
    ]
    decision = await service_of(cards, CROSSING).route(
        request(intent="echo", namespace="prod", cross_namespace=crosses)
    )
    assert [step.target.agent_id for step in decision.plan] == planned


async def test_a_backup_of_its_own_namespace_comes_first() -> None:
    cards = [
        agent("a", namespace="prod", backup_agent_id="b", max_retries=0, timeout_ms=1000),
        agent("b", quality=0.5, namespace="prod", timeout_ms=1000),
        agent("b", quality=0.6, namespace="shared", timeout_ms=1000),
    ]
    decision = await service_of(cards, CROSSING).route(request(intent="echo", namespace="prod", cross_namespace=True))
    assert [step.target.namespace for step in decision.plan] == ["prod", "prod"]


@pytest.mark.parametrize(
    "unfit",
    [
        {"enabled": False},
        {"labels": {"environment": "test"}},
        {"allowed_sources": ["other"]},
        {"cost_level": 5},
        {"version": "0.9.0"},
        {"timeout_ms": 60_000},
    ],
)
async def test_a_backup_passes_the_same_checks_or_is_not_in_the_plan(unfit: dict[str, Any]) -> None:
    live = {"environment": "live"}
    chosen = agent("a", backup_agent_id="b", max_retries=0, timeout_ms=1000, labels=live)
    wanted = request(intent="echo", environment="live", max_cost_level=4, version=">=1")
    fit = {"quality": 0.5, "timeout_ms": 1000, "labels": live}
    for fields, planned in ((fit, ["a", "b"]), ({**fit, **unfit}, ["a"])):
        decision = await service_of([chosen, agent("b", **fields)]).route(wanted)
        assert [step.target.agent_id for step in decision.plan] == planned


@pytest.mark.parametrize(
    ("wanted", "found"),
    [({"environment": "live"}, "eu"), ({"tenant": "acme"}, "us"), ({"environment": "live", "tenant": "acme"}, None)],
)
async def test_labels_restrict_a_request(wanted: dict[str, str], found: str | None) -> None:
    desk = service_of([agent("eu", labels={"environment": "live"}), agent("us", labels={"tenant": "acme"})])
    decision = await desk.route(request(intent="echo", **wanted))
    assert (decision.target and decision.target.agent_id) == found

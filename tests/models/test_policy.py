from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.policy import IntentPolicy, NamespacePolicy, Policy, Rule


def test_the_shipped_policy_is_that_of_the_design() -> None:
    policy = NamespacePolicy()
    assert (policy.default_budget_ms, policy.deadline_reserve_ms, policy.require_schemas) == (20_000, 200, "both")
    assert policy.cost_weights.model_dump() == {"best": 0.0, "auto": 0.1, "cheapest": 0.3}
    assert set(policy.weights.model_dump().values()) == {1.0}
    assert (policy.share_within, policy.latency_weight, policy.cost_optimize) == (0.02, 0.0, True)
    assert (policy.hide_denied, policy.cross_namespaces, policy.preference) == (False, [], "auto")


def test_a_namespace_has_its_own_policy_or_the_defaults() -> None:
    policy = Policy(
        defaults=NamespacePolicy(default_budget_ms=1), namespaces={"prod": NamespacePolicy(default_budget_ms=2)}
    )
    assert [policy.of(name).default_budget_ms for name in ("prod", "default", "prod/commerce")] == [2, 1, 1]


def test_an_intent_policy_that_names_no_agents_reserves_nothing() -> None:
    assert IntentPolicy().agents is None
    assert IntentPolicy(agents=[]).agents == []


@pytest.mark.parametrize(
    "fields",
    [
        {"default_budget_ms": 0},
        {"require_schemas": "output"},
        {"share_within": 1.5},
        {"latency_weight": -0.1},
        {"cost_weights": {"auto": 11.0}},
        {"weights": {"quality": -1.0}},
        {"confidence": {"accept": 1.1}},
        {"cross_namespaces": ["not a namespace"]},
        {"intents": {"x": {"agent": ["a"]}}},
    ],
)
def test_wrong_values_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        NamespacePolicy.model_validate(fields)
    assert {error["loc"][0] for error in caught.value.errors()} == set(fields)


def test_a_rule_needs_a_pattern_and_a_preference() -> None:
    assert Rule(pattern="in depth", preference="best").namespace is None
    for fields in ({"pattern": "x"}, {"preference": "best"}, {"pattern": "", "preference": "best"}):
        with pytest.raises(ValidationError):
            Rule.model_validate(fields)


def test_a_policy_is_the_same_after_json() -> None:
    policy = Policy(
        namespaces={"prod": NamespacePolicy(intents={"erase": IntentPolicy(agents=["admin"], risk="high")})},
        rules=[Rule(pattern="详细", preference="best", namespace="prod")],
    )
    assert Policy.model_validate_json(policy.model_dump_json()) == policy

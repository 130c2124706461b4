from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.card import MAX_RETRIES, AgentCard, Capability, FallbackForms, Retry


def test_a_card_needs_a_name_only() -> None:
    card = AgentCard(agent_id="a")
    assert card.key == ("default", "a", "0.0.0")
    shipped = {"timeout_ms": 15_000, "max_inflight": 32, "heartbeat_s": 15.0, "weight": 100.0, "protocol": "http"}
    assert {name: getattr(card, name) for name in shipped} == shipped
    assert (card.enabled, card.idempotent, card.allowed_sources, card.allowed_callers) == (True, False, None, None)
    assert card.fallback == FallbackForms()


def test_a_capability_needs_an_intent_only() -> None:
    capability = Capability(intent="echo")
    assert (capability.cost_level, capability.quality, capability.risk) == (1, 0.5, "normal")
    assert (capability.input_schema, capability.output_schema) == (None, None)


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        ({}, Retry(max_attempts=1, backoff_ms=500, multiplier=2.0)),
        ({"max_retries": 0}, Retry(max_attempts=0)),
        ({"max_retries": 2}, Retry(max_attempts=2)),
        ({"retry": Retry(max_attempts=3)}, Retry(max_attempts=3)),
        ({"retry": Retry(max_attempts=0), "max_retries": 2}, Retry(max_attempts=0)),
    ],
)
def test_retry_owns_all_retrying(fields: dict[str, Any], policy: Retry) -> None:
    assert AgentCard(agent_id="a", **fields).retry_policy == policy


def test_waits_grow_to_half_a_second_and_one_and_a_half() -> None:
    assert [Retry().wait_ms(nth) for nth in range(MAX_RETRIES + 1)] == [0.0, 500.0, 1500.0]
    assert Retry(backoff_ms=100, multiplier=1).wait_ms(3) == 300.0


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("agent_id", "a b"),
        ("version", "1.0"),
        ("protocol", "ftp"),
        ("timeout_ms", 0),
        ("max_inflight", 0),
        ("weight", -1.0),
        ("heartbeat_s", 0.0),
        ("labels", {"tenant": ""}),
        ("allowed_sources", ["not an id"]),
        ("probe", {"path": "relative"}),
        ("rate_limit", {"window_ms": 1000}),
        ("price", {"per_call_usd": -0.1}),
        ("capabilities", [{"intent": "x", "cost_level": 6}]),
        ("capabilities", [{"intent": "x", "quality": 1.1}]),
        ("capabilities", [{"intent": "x", "input_schema": "unheard_of"}]),
        ("capabilities", [{"intent": "x", "languages": ["english!"]}]),
        ("capabilities", [{"intent": "x", "examples": [""]}]),
        ("capabilties", []),
    ],
)
def test_a_wrong_field_is_named(field: str, bad: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        AgentCard.model_validate({"agent_id": "a", field: bad})
    assert {error["loc"][0] for error in caught.value.errors()} == {field}


def test_a_card_is_the_same_after_json() -> None:
    card = AgentCard.model_validate(
        {
            "agent_id": "a",
            "namespace": "prod/shop",
            "version": "1.2.0-rc.1",
            "labels": {"tenant": "acme"},
            "retry": {"max_attempts": 2, "retry_on": ["timeout"]},
            "probe": {"path": "/ping"},
            "rate_limit": {"max_calls": 20},
            "fallback": {"partial": {"message_internal": "i", "message_user": "u", "intent": "other"}},
            "price": {"per_call_usd": 0.01},
            "capabilities": [{"intent": "退款", "examples": ["退款到了吗"], "input_schema": {"type": "object"}}],
            "a2a": {"skills": []},
        }
    )
    assert AgentCard.model_validate_json(card.model_dump_json()) == card

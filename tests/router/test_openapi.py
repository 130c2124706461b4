from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import validate

from models.card import AgentCard, Capability
from models.decision import RouteDecision
from models.policy import Policy
from models.request import RouteRequest
from router.app import CALLS
from router.endpoints.call import Call
from router.openapi import document
from router.policy_file import parse_policy, policy_source

DOCUMENT = document(CALLS, keys_enforced=False, max_batch=256)
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
VERDICTS = {"accept_review", "reject_review"}
CAN_CONFLICT = VERDICTS | {"delete_agent", "roll_back_policy", "settle_ticket", "post_feedback", "post_heartbeat"}
"""Calls that end with 409 deeper down than their handlers."""

SUBJECTS = {"export_subject", "erase_subject"}
"""Paths do not reach what has a line break in its name."""

CAN_BE_MISSING = CAN_CONFLICT | SUBJECTS | {"get_health", "get_ticket", "roll_back_weights"}
"""The same with 404."""

CAN_BE_FORBIDDEN = VERDICTS | {"list_reviews"}
"""The same with 403."""


def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    )


def operation(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][call.path][call.method.lower()]
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "$ref" and isinstance(inner, str):
                yield inner
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


@pytest.mark.parametrize("keys_enforced", [True, False])
def test_it_is_valid_openapi(keys_enforced: bool) -> None:
    validate(document(CALLS, keys_enforced=keys_enforced, max_batch=256))


def test_all_references_lead_somewhere_and_each_schema_is_one() -> None:
    assert {name.removeprefix("#/components/schemas/") for name in references(DOCUMENT)} <= set(SCHEMAS)
    for schema in SCHEMAS.values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_operation_ids_are_unique_and_every_call_is_described() -> None:
    assert len({call.operation_id for call in CALLS}) == len(CALLS)
    for call in CALLS:
        described = operation(call)
        assert described["summary"]
        assert described["description"]
        assert all(parameter["description"] for parameter in described["parameters"])
        assert all(each["description"] for each in described["responses"].values())


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.operation_id)
def test_every_status_that_a_call_can_give_is_documented(call: Call) -> None:
    statuses = {int(status) for status in operation(call)["responses"]}
    source = inspect.getsource(call.handler)
    expected = {500, *call.answers}
    if not call.is_open:
        expected |= {401, 429, 503}
    if call.body is not None:
        expected |= {400, 413, 422}
    if not call.takes_any_query:
        expected |= {422}
    if "grants.require(" in source or call.operation_id in CAN_BE_FORBIDDEN | {"route"}:
        expected |= {403}
    if "NotFoundError" in source or call.operation_id in CAN_BE_MISSING:
        expected |= {404}
    if call.operation_id in CAN_CONFLICT | {"route", "roll_back_promotion"}:
        expected |= {409}
    if "await missing(" in source or call.operation_id == "post_feedback":
        expected |= {410}
    if "MethodNotAllowedError" in source:
        expected |= {405}
    if "named_generations(" in source:
        expected |= {412}
    assert statuses == expected


def test_path_parameters_are_those_of_the_path() -> None:
    for call in CALLS:
        named = {parameter.name for parameter in call.parameters if parameter.where == "path"}
        assert named == {part[1:-1] for part in call.path.split("/") if part.startswith("{")}


def test_security_says_whether_a_key_is_needed() -> None:
    enforced = document(CALLS, keys_enforced=True, max_batch=256)["paths"]
    for call in CALLS:
        security = enforced[call.path][call.method.lower()]["security"]
        assert security == ([] if call.is_open else [{"key": []}])
        assert operation(call)["security"] == ([] if call.is_open else [{}, {"key": []}])
    assert {call.path for call in CALLS if call.is_open} == {"/healthz", "/readyz"}


def test_refusals_are_problem_documents_with_their_headers() -> None:
    responses = DOCUMENT["paths"]["/route"]["post"]["responses"]
    for status, response in responses.items():
        if status != "200":
            assert list(response["content"]) == ["application/problem+json"]
    assert responses["401"]["headers"]["WWW-Authenticate"]["required"] is True
    assert responses["429"]["headers"]["Retry-After"]["required"] is True
    assert set(responses["200"]["headers"]) == {
        "X-Trace-Id",
        "X-Elapsed-Ms",
        "X-Parent-Agent",
        "X-Agent-Version-Skipped",
        "Idempotency-Replayed",
    }


def test_answers_leave_nothing_out() -> None:
    assert set(SCHEMAS["RouteDecision"]["required"]) == set(RouteDecision.model_fields)
    assert set(SCHEMAS["Change"]["required"]) == {"feature", "from", "to"}


def test_every_field_of_a_request_is_there_and_no_other_is_taken() -> None:
    assert set(SCHEMAS["RouteRequest"]["properties"]) == set(RouteRequest.model_fields)
    assert SCHEMAS["RouteRequest"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("request_", "fits"),
    [
        ({"utterance": "a"}, True),
        ({"intent": "a"}, True),
        ({"utterance": "a", "intent": "a"}, True),
        ({"utterance": "a", "intent": None}, True),
        ({}, False),
        ({"utterance": None}, False),
        ({"utterance": ""}, False),
        ({"utterance": None, "intent": None}, False),
        ({"utterance": "a", "unknown": 1}, False),
    ],
)
def test_one_of_utterance_and_intent_is_said(request_: dict[str, Any], fits: bool) -> None:
    assert validator("RouteRequest").is_valid(request_) is fits


def test_a_card_s_body_is_a_card_without_its_name() -> None:
    names = set(SCHEMAS["AgentCardBody"]["properties"])
    assert names == set(AgentCard.model_fields) - {"agent_id", "namespace"}
    assert set(SCHEMAS["CapabilityBody"]["properties"]) == set(Capability.model_fields)
    body = validator("AgentCardBody")
    taken = ["text", None, {}, {"type": "object"}, {"type": ["null", "array"]}, {"x-ours": 1}, {"items": {"type": 5}}]
    refused = ["other", {"type": "text"}, {"pattern": 1}, {"items": 7}, [], 5]
    for schema, fits in [*((each, True) for each in taken), *((each, False) for each in refused)]:
        assert body.is_valid({"capabilities": [{"intent": "a", "input_schema": schema}]}) is fits


def intents(agents: list[str] | None) -> dict[str, Any]:
    return {"intents": {"i": {"agents": agents}}}


FULL = {"extend_from_base": True, "items": ["a"]}


@pytest.mark.parametrize(
    ("policy", "fits"),
    [
        ({}, True),
        ({"version": None, "defaults": None, "namespaces": None, "agents": None, "rules": None}, True),
        ({"namespaces": {"n": None}}, True),
        ({"namespaces": {"no spaces": {}}}, False),
        ({"agents": {"a": {"weight": 1}}}, True),
        ({"learning": {"mode": "guess"}}, False),
        ({"learning": {"mode": "observe"}}, True),
        ({"defaults": {"fallback": {"message_user": "sorry"}}}, True),
        ({"defaults": {"cross_namespaces": ["a"]}}, True),
        ({"namespaces": {"n": {"cross_namespaces": ["a"]}}}, True),
        ({"defaults": {"cross_namespaces": ["a"]}, "namespaces": {"n": {"cross_namespaces": ["b"]}}}, False),
        ({"defaults": {"cross_namespaces": ["a"]}, "namespaces": {"n": {"cross_namespaces": FULL}}}, True),
        ({"defaults": {"cross_namespaces": []}, "namespaces": {"n": {"cross_namespaces": ["b"]}}}, True),
        ({"defaults": {"cross_namespaces": {"items": ["a"]}}}, False),
        ({"namespaces": {"n": {"intents": {"i": {"agents": ["a"], "required_permissions": FULL}}}}}, True),
        ({"rules": [{"pattern": "a", "preference": "best"}]}, True),
        ({"rules": [{"keywords": ["a"], "intent": "i", "pattern": None}]}, True),
        ({"rules": [{"pattern": None, "preference": "best"}]}, False),
        ({"rules": [{"keywords": [], "preference": "best"}]}, False),
        ({"rules": [{"pattern": "a", "preference": None}]}, False),
        ({"rules": [{"pattern": "a"}]}, False),
        ({"quotas": [{"per_caller": True, "max_calls": 5}, {"agent": "a", "max_tokens": 0, "over": "queue"}]}, True),
        ({"quotas": None}, True),
        ({"quotas": [{"per_caller": False, "max_calls": 5}]}, False),
        ({"quotas": [{"caller": None, "per_agent": True, "max_calls": None}]}, False),
        ({"quotas": [{"per_agent": True}]}, False),
        ({"defaults": {"breaker": {"open_ms": 5000}, "dependency": {}}, "namespaces": {"n": {"breaker": {}}}}, True),
        ({"defaults": {"breaker": {"retry_burst": 1}}}, False),
        ({"defaults": {"queue": None}}, False),
        ({"defaults": {"unavailable": "wait"}}, False),
        ({"agents": {"a": {"max_inflight": 1, "timeout_ms": 10}, "b": {"max_inflight": None}}}, True),
        ({"agents": {"a": {"max_inflight": 0}}}, False),
        ({"defaults": intents(["a"]), "namespaces": {"n": intents(["b"])}}, False),
        ({"defaults": intents(["a"]), "namespaces": {"n": intents(None)}}, True),
    ],
    ids=str,
)  # fmt: skip
def test_a_policy_s_body_says_what_is_taken(policy: dict[str, Any], fits: bool) -> None:
    assert validator("PolicyBody").is_valid(policy) is fits
    if fits:
        parse_policy(policy)
    else:
        with pytest.raises(Exception, match="the policy cannot be used"):
            parse_policy(policy)


def test_the_policy_that_is_answered_fits_its_description() -> None:
    layered = {"defaults": {"cross_namespaces": ["a"]}, "namespaces": {"n": {"cross_namespaces": FULL}}}
    for policy in (Policy(), parse_policy(layered)):
        assert list(validator("PolicyBody").iter_errors(policy_source(policy))) == []


def test_the_largest_batch_is_a_setting() -> None:
    told = document(CALLS, keys_enforced=False, max_batch=7)["components"]["schemas"]["RouteBatch"]
    assert told["maxItems"] == 7

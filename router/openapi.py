"""The OpenAPI 3.1 document, made from the same calls and models that serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from models.answer import Answer
from models.card import AgentCard, Capability
from models.decision import RouteDecision
from models.heartbeat import Heartbeat
from models.outcome import Outcome, Receipt
from models.policy import Policy
from models.request import RouteRequest
from router.endpoints.agents import AgentList, AgentView, DeletedAgents
from router.endpoints.call import Call, Schema
from router.endpoints.live import AgentHealth, BreakerList
from router.endpoints.promotion import Promotions
from router.endpoints.weights import Weights
from router.json_schema_form import JSON_SCHEMA_FORM
from router.policy_form import policy_forms

PROBLEM = {
    "type": "object",
    "description": "RFC 9457 problem document.",
    "required": ["type", "title", "status", "code", "detail", "errors"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable name of the error."},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "message"],
                "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
_INPUTS: tuple[type[BaseModel], ...] = (RouteRequest, Outcome, Heartbeat, AgentCard, Policy)
_OUTPUTS: tuple[type[BaseModel], ...] = (
    RouteDecision,
    Receipt,
    AgentHealth,
    BreakerList,
    Weights,
    Promotions,
    AgentView,
    AgentList,
    DeletedAgents,
)
_MANY_ITEMS = 10_000
_PROBLEM_TEXT = {
    400: "The body is not JSON that we take.",
    401: "No key, or a wrong one.",
    403: "The key does not grant this.",
    404: "There is no such thing.",
    405: "The path has no such method.",
    409: "The state does not allow it.",
    410: "It was erased.",
    412: "Another one is in force than `If-Match` names.",
    413: "The body is too large.",
    422: "Fields or parameters are wrong; each is named.",
    429: "Too many requests at once.",
    500: "An error of ours.",
    503: "Starting, or the store is out of reach.",
}


_PROBLEM_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}}},
    429: {"Retry-After": {"required": True, "description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}},
    503: {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}},
}


def document(calls: Sequence[Call], *, keys_enforced: bool, max_batch: int) -> dict[str, Any]:
    """The whole document.

    Args:
        calls: all calls.
        keys_enforced: whether a key is needed or merely taken.
        max_batch: most requests in a batch.
    """
    paths: dict[str, dict[str, Any]] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, keys_enforced)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agency-router",
            "version": version("agency-router"),
            "description": "Which agent should get this request, may it, can it take it now, and what does it cost?",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {**_schemas(), "RouteBatch": _batch(max_batch)},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas() -> dict[str, Any]:
    modes = [*((model, "validation") for model in _INPUTS), *((model, "serialization") for model in _OUTPUTS)]
    _, definitions = models_json_schema(modes, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    schemas: dict[str, Any] = definitions["$defs"]
    for answer in Answer.__subclasses__():
        if answer.__name__ in schemas:
            # Nothing is left out of an answer: what is absent is null.
            schemas[answer.__name__]["required"] = list(schemas[answer.__name__]["properties"])
    schemas["CapabilityBody"] = _capability_body(schemas)
    schemas["AgentCardBody"] = _card_body(schemas)
    schemas.update(policy_forms(schemas))
    _adjust(schemas)
    return {**schemas, "Problem": PROBLEM, "JsonSchemaForm": JSON_SCHEMA_FORM}


def _card_body(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """An AgentCard whose name stands in the address."""
    card: dict[str, Any] = deepcopy(schemas[AgentCard.__name__])
    for name in ("agent_id", "namespace"):
        del card["properties"][name]
    card["required"] = [name for name in card["required"] if name in card["properties"]]
    card["properties"]["capabilities"]["items"] = {"$ref": "#/components/schemas/CapabilityBody"}
    card["description"] += "\n\nThe agent's id and namespace may be repeated here as they are in the address."
    return card


def _capability_body(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """A Capability with what is asked of its schemas."""
    capability: dict[str, Any] = deepcopy(schemas[Capability.__name__])
    for name in ("input_schema", "output_schema"):
        form = capability["properties"][name]
        form["anyOf"] = [
            {"$ref": "#/components/schemas/JsonSchemaForm"} if kind.get("type") == "object" else kind
            for kind in form["anyOf"]
        ]
    return capability


def _batch(max_batch: int) -> dict[str, Any]:
    """A list of requests; a wrong one does not make the list wrong."""
    return {
        "type": "array",
        "maxItems": max_batch,
        "items": {"anyOf": [{"$ref": "#/components/schemas/RouteRequest"}, {}]},
    }


def _adjust(schema: Any) -> None:
    """Put right where pydantic's schemas say less, or more, than is true of a body."""
    if isinstance(schema, dict):
        if "patternProperties" in schema:
            schema["additionalProperties"] = False
        n_items = schema.get("maxItems", 0)
        if n_items >= _MANY_ITEMS:
            # Entries of some length are refused earlier, with 413.
            del schema["maxItems"]
            schema["description"] = f"At most {n_items}."
        for inner in schema.values():
            _adjust(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _adjust(inner)


def _operation(call: Call, keys_enforced: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": call.operation_id,
        "summary": call.summary,
        "description": (call.handler.__doc__ or "").strip(),
        "tags": list(call.tags),
        "parameters": [
            {
                "name": parameter.name,
                "in": parameter.where,
                "description": parameter.description,
                "required": parameter.required,
                "schema": dict(parameter.schema),
            }
            for parameter in call.parameters
        ],
        "responses": _responses(call),
        "security": [] if call.is_open else [{"key": []}] if keys_enforced else [{}, {"key": []}],
    }
    if call.body is not None:
        operation["requestBody"] = {
            "required": not call.may_lack_body,
            "content": {"application/json": {"schema": _reference(call.body)}},
        }
    return operation


def _responses(call: Call) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, answer in call.answers.items():
        schema = {} if answer is None else {"schema": _reference(answer)}
        responses[str(status)] = {"description": call.summary, "content": {call.media_type: schema}}
        for name, more in (("headers", call.headers), ("links", call.links)):
            if more:
                responses[str(status)][name] = {each: dict(said) for each, said in more.items()}
    shared = (500, *(() if call.is_open else (401, 429, 503)), *(() if call.takes_any_query else (422,)))
    for status in sorted({*call.problems, *shared}):
        if str(status) not in responses:
            responses[str(status)] = {
                "description": _PROBLEM_TEXT[status],
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
            if status in _PROBLEM_HEADERS:
                responses[str(status)]["headers"] = _PROBLEM_HEADERS[status]
    return responses


def _reference(schema: Schema) -> Any:
    if isinstance(schema, type):
        return {"$ref": f"#/components/schemas/{schema.__name__}"}
    return dict(schema)

"""`POST /route` and `POST /route/batch`."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter
from starlette.responses import Response

from models.contract import AgentId, Identifier
from models.decision import RouteDecision
from models.errors import FieldProblem, InvalidRequestError, RouterError
from models.request import RouteRequest
from router.endpoints.body import checked, headers, parsed, query, read_json
from router.endpoints.call import Call, Context, Parameter
from router.numbers import EXACT
from router.problems import problem_of

DEADLINE_HEADER = "X-Deadline-Ms"
KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
_EPOCH_MS = r"^[0-9]{1,15}$"
_AT_ONCE = 8
_Truth = Literal["true", "false"]

EXPLAIN = Parameter(
    "explain",
    "query",
    "List all candidates, with what the losers lacked.",
    {"type": "string", "enum": ["true", "false"]},
)
DEADLINE = Parameter(
    DEADLINE_HEADER,
    "header",
    "Deadline as milliseconds since the epoch; the earliest one given holds.",
    {"type": "string", "pattern": _EPOCH_MS},
)
KEY = Parameter(
    KEY_HEADER,
    "header",
    "The same key with the same body gets the same decision for a day; with another body 409.",
    TypeAdapter(Identifier).json_schema(),
)

HEADERS: dict[str, dict[str, Any]] = {
    "X-Trace-Id": {
        "description": "The trace, given or made.",
        "required": True,
        "schema": TypeAdapter(Identifier).json_schema(),
    },
    "X-Elapsed-Ms": {
        "description": "How long the decision took, in milliseconds.",
        "required": True,
        "schema": {"type": "number", "minimum": 0},
    },
    "X-Parent-Agent": {
        "description": "The agent in whose name was asked; absent if there is none.",
        "schema": TypeAdapter(AgentId).json_schema(),
    },
    REPLAYED_HEADER: {
        "description": "`true` where the decision is that of an earlier request under the same key.",
        "schema": {"const": "true"},
    },
    "X-Agent-Version-Skipped": {
        "description": "Agents passed over because of their version, as `agent@version, …`; absent if there are none.",
        "schema": {"type": "string"},
    },
}
LINKS: dict[str, dict[str, Any]] = {
    "decision": {"operationId": "get_decision", "parameters": {"decision_id": "$response.body#/decision_id"}},
    "trace": {"operationId": "get_trace", "parameters": {"trace_id": "$response.body#/trace_id"}},
}


async def route(context: Context) -> Response:
    """Decide one request."""
    explain, deadline_ms = _how(context)
    value = await read_json(context.request, context.parts["settings"].max_body_bytes)
    request = parsed(RouteRequest, value, exact=EXACT)
    key = _key(context)

    async def decide() -> tuple[RouteDecision, bytes]:
        decision, body = await context.parts["service"].route(
            request, context.grants, explain=explain, deadline_ms=deadline_ms
        )
        _count(context, decision)
        return decision, body

    if key is None or request.dry_run:
        decision, body = await decide()
        return Response(body, headers=_headers(decision), media_type="application/json")
    body, is_repeat = await context.parts["live"].repeats.once(context.grants.caller, key, value, decide)
    told = _headers(RouteDecision.model_validate_json(body))
    if is_repeat:
        told[REPLAYED_HEADER] = "true"
    return Response(body, headers=told, media_type="application/json")


async def route_batch(context: Context) -> Response:
    """Decide up to 256 requests; the answers come in the same order, a problem stands where its request was wrong."""
    explain, deadline_ms = _how(context)
    values = await read_json(context.request, context.parts["settings"].max_body_bytes)
    max_batch = context.parts["settings"].max_batch
    if not isinstance(values, list) or len(values) > max_batch:
        message = f"a list of at most {max_batch} requests is needed"
        raise InvalidRequestError(message, [FieldProblem("", message)])
    turn = asyncio.Semaphore(_AT_ONCE)

    async def answer(value: Any) -> bytes:
        async with turn:
            # Given intents decide without a pause: let other requests in between.
            await asyncio.sleep(0)
            try:
                request = parsed(RouteRequest, value, exact=EXACT)
                decision, body = await context.parts["service"].route(
                    request, context.grants, explain=explain, deadline_ms=deadline_ms, may_refuse=False
                )
            except RouterError as error:
                return orjson.dumps(problem_of(error))
            _count(context, decision)
            return body

    answers = await asyncio.gather(*(answer(value) for value in values))
    return Response(b"[" + b",".join(answers) + b"]", media_type="application/json")


def _how(context: Context) -> tuple[bool, float | None]:
    explain = query(context.request, "explain", _Truth, "false") == "true"
    given = headers(context.request, DEADLINE_HEADER.lower().encode())
    if not given:
        return explain, None
    if len(given) > 1 or not (given[0].isdigit() and len(given[0]) <= 15):
        message = "milliseconds since the epoch are needed, once"
        raise InvalidRequestError(f"{DEADLINE_HEADER}: {message}", [FieldProblem(DEADLINE_HEADER, message)])
    return explain, float(given[0])


def _key(context: Context) -> str | None:
    given = headers(context.request, KEY_HEADER.lower().encode())
    if not given:
        return None
    if len(given) > 1:
        message = "is needed once"
        raise InvalidRequestError(f"{KEY_HEADER}: {message}", [FieldProblem(KEY_HEADER, message)])
    return str(checked(KEY_HEADER, given[0].decode("latin-1"), Identifier))


def _count(context: Context, decision: RouteDecision) -> None:
    context.metrics.decided(decision.action, decision.reason, decision.elapsed_ms / 1000)


def _headers(decision: RouteDecision) -> dict[str, str]:
    told = {"X-Trace-Id": decision.trace_id, "X-Elapsed-Ms": f"{decision.elapsed_ms:.3f}"}
    parent = decision.envelope.caller_agent_id
    if parent is not None:
        told["X-Parent-Agent"] = parent
    if decision.skipped_versions:
        skipped = (f"{agent.agent_id}@{agent.version}" for agent in decision.skipped_versions[:20])
        told["X-Agent-Version-Skipped"] = ", ".join(skipped)
    return told


CALLS = (
    Call(
        operation_id="route",
        method="POST",
        path="/route",
        summary="Which agent should get this request?",
        handler=route,
        body=RouteRequest,
        answers={200: RouteDecision},
        headers=HEADERS,
        links=LINKS,
        parameters=(EXPLAIN, DEADLINE, KEY),
        problems=(400, 403, 409, 413, 422),
    ),
    Call(
        operation_id="route_batch",
        method="POST",
        path="/route/batch",
        summary="The same for up to 256 requests; answers in the same order, problems in place",
        handler=route_batch,
        body={"$ref": "#/components/schemas/RouteBatch"},
        answers={
            200: {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/RouteDecision"},
                        {"$ref": "#/components/schemas/Problem"},
                    ]
                },
            }
        },
        parameters=(EXPLAIN, DEADLINE),
        problems=(400, 413, 422),
    ),
)

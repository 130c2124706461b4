"""Decisions, traces and events: what was written down."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, get_args

import orjson
from pydantic import Field, TypeAdapter
from starlette.responses import Response

from models.contract import Identifier
from models.errors import NotFoundError
from models.events import DecisionRow, EventRow
from models.key import ADMIN, READ
from router.endpoints.body import checked, query
from router.endpoints.call import Call, Context, Parameter
from router.erased import missing
from router.replayed import PARTS, TAKEN, Verdict

MAX_EVENTS = 1000
_STORED_MS = 5000.0
Instant = Annotated[int, Field(ge=0, le=2**53)]
Limit = Annotated[int, Field(ge=1, le=MAX_EVENTS)]

DECISION_ID = Parameter("decision_id", "path", "The decision.", TypeAdapter(Identifier).json_schema(), required=True)
TRACE_ID = Parameter("trace_id", "path", "The trace.", TypeAdapter(Identifier).json_schema(), required=True)
LIMIT = Parameter("limit", "query", "At most so many events (1000).", TypeAdapter(Limit).json_schema())
FROM = Parameter("from", "query", "From this instant on (epoch, milliseconds).", TypeAdapter(Instant).json_schema())
TO = Parameter("to", "query", "Before this instant (epoch, milliseconds).", TypeAdapter(Instant).json_schema())
AFTER = Parameter("after", "query", "Only events with a larger sequence number.", TypeAdapter(Instant).json_schema())

EVENT = {
    "type": "object",
    "required": ["seq", "trace_id", "span_id", "node_id", "event_type", "payload", "happened_at"],
    "properties": {
        "seq": {"type": ["integer", "null"], "description": "Global sequence number; null while it is being written."},
        "trace_id": {"type": "string"},
        "span_id": {"type": "string"},
        "parent_span_id": {"type": ["string", "null"]},
        "node_id": {"type": "string"},
        "event_type": {"type": "string"},
        "decision": {"type": ["string", "null"]},
        "payload": {"type": "object"},
        "cost_tokens": {"type": "integer"},
        "latency_ms": {"type": "number"},
        "happened_at": {"type": "integer", "description": "Epoch, milliseconds."},
    },
}
EVENTS = {"type": "object", "required": ["events"], "properties": {"events": {"type": "array", "items": EVENT}}}
RECORD = {
    "type": "object",
    "required": ["decision_id", "trace_id", "happened_at", "request", "answer", "inputs"],
    "properties": {
        "decision_id": {"type": "string"},
        "trace_id": {"type": "string"},
        "happened_at": {"type": "integer", "description": "Epoch, milliseconds."},
        "request": {"type": "object", "description": "The request as it was understood."},
        "answer": {"$ref": "#/components/schemas/RouteDecision"},
        "inputs": {"type": "object", "description": "What else decided: seed, instants, encoder."},
    },
}


REPLAYED = {
    "type": "object",
    "required": ["decision_id", "verdict", "part", "detail", "checked", "taken", "partial"],
    "properties": {
        "decision_id": {"type": "string"},
        "verdict": {"enum": list(get_args(Verdict))},
        "part": {"enum": [*PARTS, None], "description": "The first part that differs."},
        "detail": {"type": ["string", "null"], "description": "What differs, or what is missing."},
        "checked": {"type": "array", "items": {"enum": list(PARTS)}, "description": "Parts found equal."},
        "taken": {
            "type": "array",
            "items": {"enum": list(TAKEN)},
            "description": "What cannot be made again, and was taken as it was sealed.",
        },
        "partial": {"type": "boolean", "description": "Whether there were more agents than are sealed."},
    },
}


async def get_decision(context: Context) -> Response:
    """The record of a decision: the caller's own, or any with `router:read`."""
    decision_id = checked("decision_id", context.request.path_params["decision_id"], Identifier)
    row = await context.parts["journal"].decision(decision_id)
    unseen = NotFoundError(f"there is no decision {decision_id!r}")
    if row is None:
        raise await missing(decision_id, context.parts["store"].seals, unseen, partial(_may_see, context))
    if not _may_see(context, row.caller):
        raise unseen
    return Response(_record(row), media_type="application/json")


async def replay_decision(context: Context) -> Response:
    """Make a decision again from its sealed inputs: the caller's own, or any with `router:read`."""
    decision_id = checked("decision_id", context.request.path_params["decision_id"], Identifier)
    journal = context.parts["journal"]
    row = await journal.decision(decision_id)
    asked_by = (await context.parts["store"].seals.seal(decision_id))[0] if row is None else row
    if asked_by is None or not _may_see(context, asked_by.caller or ""):
        raise NotFoundError(f"there is no decision {decision_id!r}")
    if journal.pending_decision(decision_id) is not None:
        await journal.stored(_STORED_MS)  # its seal is made when it is stored
    replayed = await context.parts["replayer"].replay(decision_id)
    if replayed is None:
        raise NotFoundError(f"there is no decision {decision_id!r}")
    return Response(orjson.dumps(replayed.told()), media_type="application/json")


async def get_trace(context: Context) -> Response:
    """The events of a trace in causal order: the caller's own, or all with `router:read`."""
    trace_id = checked("trace_id", context.request.path_params["trace_id"], Identifier)
    limit = query(context.request, "limit", Limit, MAX_EVENTS)
    rows = await context.parts["journal"].trace(trace_id, limit)
    seen = [(seq, row) for seq, row in rows if _may_see(context, row.caller)]
    if not seen:
        raise NotFoundError(f"there is no trace {trace_id!r}")
    return _events(seen)


async def get_events(context: Context) -> Response:
    """Events by time, from <= happened_at < to; needs `router:read`."""
    context.grants.require(READ)
    from_ms = query(context.request, "from", Instant, 0)
    to_ms = query(context.request, "to", Instant, 2**53)
    after = query(context.request, "after", Instant, 0)
    limit = query(context.request, "limit", Limit, MAX_EVENTS)
    rows = await context.parts["store"].records.events(from_ms, to_ms, after, limit)
    return _events(list(rows))


def _may_see(context: Context, caller: str) -> bool:
    grants = context.grants
    return grants.has(READ) or grants.has(ADMIN) or grants.is_own(caller)


def _events(rows: Sequence[tuple[int | None, EventRow]]) -> Response:
    return Response(orjson.dumps({"events": [_event(seq, row) for seq, row in rows]}), media_type="application/json")


def _event(seq: int | None, row: EventRow) -> dict[str, Any]:
    fields = row._asdict()
    fields.pop("caller")
    return {"seq": seq, **fields, "payload": orjson.Fragment(row.payload)}


def _record(row: DecisionRow) -> bytes:
    return orjson.dumps(
        {
            "decision_id": row.decision_id,
            "trace_id": row.trace_id,
            "happened_at": row.happened_at,
            "request": orjson.Fragment(row.request),
            "answer": orjson.Fragment(row.answer),
            "inputs": orjson.Fragment(row.inputs),
        }
    )


CALLS = (
    Call(
        operation_id="replay_decision",
        method="POST",
        path="/decisions/{decision_id}/replay",
        summary="Make a decision again from its sealed inputs and compare",
        handler=replay_decision,
        answers={200: REPLAYED},
        parameters=(DECISION_ID,),
        problems=(404, 422),
        needs_cards=False,
        tags=("records",),
    ),
    Call(
        operation_id="get_decision",
        method="GET",
        path="/decisions/{decision_id}",
        summary="The record of a decision",
        handler=get_decision,
        answers={200: RECORD},
        parameters=(DECISION_ID,),
        problems=(404, 410, 422),
        needs_cards=False,
        tags=("records",),
    ),
    Call(
        operation_id="get_trace",
        method="GET",
        path="/traces/{trace_id}",
        route="/traces/{trace_id:path}",
        summary="The events of a trace in causal order",
        handler=get_trace,
        answers={200: EVENTS},
        parameters=(TRACE_ID, LIMIT),
        problems=(404, 422),
        needs_cards=False,
        tags=("records",),
    ),
    Call(
        operation_id="get_events",
        method="GET",
        path="/events",
        summary="Events by time",
        handler=get_events,
        answers={200: EVENTS},
        parameters=(FROM, TO, AFTER, LIMIT),
        problems=(403, 422),
        needs_cards=False,
        tags=("records",),
    ),
)

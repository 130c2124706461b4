"""`/queue`: the tickets of the degrade queue."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from starlette.responses import Response

from models.contract import Identifier, IntentName, Namespace
from models.errors import InvalidRequestError, MethodNotAllowedError, NotFoundError
from models.key import QUEUE, READ
from models.queue import ClaimRequest, SettleRequest, TicketFilter, TicketState
from router.degrade_queue import DegradeQueue
from router.endpoints.body import checked, parsed, query, read_json
from router.endpoints.call import Call, Context, Parameter
from router.problems import response_of
from router.wire import dumps

MAX_TICKETS = 1000
Limit = Annotated[int, Field(ge=1, le=MAX_TICKETS)]

TICKET_ID = Parameter("ticket", "path", "The ticket.", TypeAdapter(Identifier).json_schema(), required=True)
STATE = Parameter("state", "query", "Only tickets in this state.", {"type": "string", "enum": list(TicketState)})
NAMESPACE = Parameter("namespace", "query", "Only this namespace.", TypeAdapter(Namespace).json_schema())
INTENT = Parameter("intent", "query", "Only this intent.", TypeAdapter(IntentName).json_schema())
AFTER = Parameter("after", "query", "The `next` of the page before.", TypeAdapter(Identifier).json_schema())
LIMIT = Parameter("limit", "query", "At most so many tickets (100).", TypeAdapter(Limit).json_schema())

_INSTANT = {"type": "integer", "description": "Epoch, milliseconds."}
_NO_INSTANT = {"type": ["integer", "null"], "description": "Epoch, milliseconds."}
_FIELDS: dict[str, Any] = {
    "ticket": {"type": "string"},
    "url": {"type": "string"},
    "state": {"type": "string", "enum": list(TicketState)},
    "namespace": {"type": "string"},
    "intent": {"type": "string"},
    "decision_id": {"type": "string"},
    "trace_id": {"type": "string"},
    "caller": {"type": "string", "description": "Name of the key that asked; empty while keys were off."},
    "n_claims": {"type": "integer", "description": "Claims so far, those left out whose ticket was returned."},
    "claimed_by": {"type": ["string", "null"], "description": "Name of the key that claimed it last."},
    "claimed_until": _NO_INSTANT,
    "created_at": _INSTANT,
    "expires_at": _INSTANT,
    "settled_at": _NO_INSTANT,
    "note": {"type": ["string", "null"], "description": "What the worker said of it last."},
}
_REQUEST = {"type": "object", "description": "The request, as `POST /route` takes it."}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(fields), "properties": fields}


TICKET = _object(_FIELDS)
TICKETS = _object(
    {
        "tickets": {"type": "array", "items": TICKET},
        "n_waiting": {"type": "integer"},
        "n_claimed": {"type": "integer"},
        "oldest_wait_ms": {"type": ["integer", "null"], "description": "How long the oldest waiting one has waited."},
        "next": {"type": ["string", "null"], "description": "Give it as `after` to read on; null at the end."},
    }
)
CLAIMED = _object(
    {
        "claim_id": {"type": "string"},
        "claimed_until": _INSTANT,
        "tickets": {"type": "array", "items": _object({**_FIELDS, "request": _REQUEST})},
    }
)


async def list_tickets(context: Context) -> Response:
    """Tickets by id, with how many are open; needs `router:read`. A key sees the namespaces that it reaches."""
    context.grants.require(READ)
    namespace = query(context.request, "namespace", Namespace)
    wanted = TicketFilter(
        namespaces=None if namespace is None else frozenset({namespace}),
        state=query(context.request, "state", TicketState),
        intent=query(context.request, "intent", IntentName),
    )
    after = query(context.request, "after", Identifier, "")
    limit = query(context.request, "limit", Limit, 100)
    return _json(await _queue(context).page(wanted, context.grants, after=after, limit=limit))


async def get_ticket(context: Context) -> Response:
    """One ticket: the caller's own, or any that its key may read or work on."""
    ticket = _ticket(context)
    if ticket == "claim":
        return response_of(MethodNotAllowedError("GET is not a method of /queue/claim"), {"Allow": "POST"})
    return _json(await _queue(context).get(ticket, context.grants))


async def claim_tickets(context: Context) -> Response:
    """Take the oldest waiting tickets of a namespace for a while; needs `router:queue`. None twice at a time."""
    context.grants.require(QUEUE)
    value = await read_json(context.request, context.parts["settings"].max_body_bytes)
    return _json(await _queue(context).claim(parsed(ClaimRequest, value), context.grants))


async def settle_ticket(context: Context) -> Response:
    """End a claim: the request was served, goes back to the queue, or is given up; needs `router:queue`."""
    context.grants.require(QUEUE)
    ticket = _ticket(context)
    value = await read_json(context.request, context.parts["settings"].max_body_bytes)
    return _json(await _queue(context).settle(ticket, parsed(SettleRequest, value), context.grants))


def _ticket(context: Context) -> str:
    text = context.request.path_params["ticket"]
    try:
        ticket: str = checked("ticket", text, Identifier)
    except InvalidRequestError:
        # what cannot be the name of a ticket is not the name of one
        raise NotFoundError(f"there is no ticket {text!r}") from None
    return ticket


def _queue(context: Context) -> DegradeQueue:
    return context.parts["live"].queue


def _json(answer: Any) -> Response:
    return Response(dumps(answer), media_type="application/json")


CALLS = (
    Call(
        operation_id="list_tickets",
        method="GET",
        path="/queue",
        summary="Tickets of the degrade queue",
        handler=list_tickets,
        answers={200: TICKETS},
        parameters=(STATE, NAMESPACE, INTENT, AFTER, LIMIT),
        problems=(403, 422),
        tags=("queue",),
    ),
    Call(
        operation_id="claim_tickets",
        method="POST",
        path="/queue/claim",
        summary="Take up waiting tickets",
        handler=claim_tickets,
        body=TypeAdapter(ClaimRequest).json_schema(),
        answers={200: CLAIMED},
        problems=(400, 403, 413, 422),
        tags=("queue",),
    ),
    Call(
        operation_id="get_ticket",
        method="GET",
        path="/queue/{ticket}",
        summary="One ticket",
        handler=get_ticket,
        answers={200: TICKET},
        parameters=(TICKET_ID,),
        problems=(404, 405),
        tags=("queue",),
    ),
    Call(
        operation_id="settle_ticket",
        method="POST",
        path="/queue/{ticket}/settle",
        summary="Settle a claimed ticket",
        handler=settle_ticket,
        body=TypeAdapter(SettleRequest).json_schema(),
        answers={200: TICKET},
        parameters=(TICKET_ID,),
        problems=(400, 403, 404, 409, 413, 422),
        tags=("queue",),
    ),
)

"""`/subjects`: what is kept of a caller or a session, and its erasure."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter
from starlette.responses import Response

from models.contract import Identifier
from models.key import ADMIN
from models.subject import Erased
from router.endpoints.body import checked, query
from router.endpoints.call import Call, Context, Parameter
from router.subjects import Subjects

MAX_DECISIONS = 100
SubjectName = Annotated[str, Field(min_length=1, max_length=256)]
Limit = Annotated[int, Field(ge=1, le=MAX_DECISIONS)]

SUBJECT = Parameter(
    "session_or_caller",
    "path",
    "A session id, the name of a key, or the agent id in whose name was asked.",
    TypeAdapter(SubjectName).json_schema(),
    required=True,
)
AFTER = Parameter("after", "query", "The `next` of the page before.", TypeAdapter(Identifier).json_schema())
LIMIT = Parameter("limit", "query", "At most so many decisions (50).", TypeAdapter(Limit).json_schema())

_LIST = {"type": "array", "items": {"type": "object"}}
EXPORT = {
    "type": "object",
    "required": ["subject", "decisions", "usage", "evidence", "truncated", "next"],
    "properties": {
        "subject": {"type": "string"},
        "decisions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["decision_id", "request", "answer", "inputs", "outcomes", "reviews", "events", "tickets"],
                "properties": {
                    "decision_id": {"type": "string"},
                    "request": {"type": "object"},
                    "answer": {"type": "object"},
                    "inputs": {"type": "object"},
                    "outcomes": _LIST,
                    "reviews": _LIST,
                    "events": _LIST,
                    "tickets": _LIST,
                },
            },
        },
        "usage": {**_LIST, "description": "By hour; on the first page alone."},
        "evidence": {**_LIST, "description": "What it told of agents; on the first page alone."},
        "truncated": {"type": "boolean", "description": "There is more usage or evidence than is told."},
        "next": {"type": ["string", "null"], "description": "Give it as `after` to read on; null at the end."},
    },
}
ERASED = {
    "type": "object",
    "required": ["subject", "complete", "erased"],
    "properties": {
        "subject": {"type": "string"},
        "complete": {"type": "boolean", "description": "False: there is more; call again."},
        "erased": {
            "type": "object",
            "description": "Rows by kind; those of usage and evidence were added to others.",
            "required": list(Erased._fields),
            "properties": {name: {"type": "integer"} for name in Erased._fields},
        },
    },
}


async def export_subject(context: Context) -> Response:
    """All that is kept of a caller or a session; without `router:admin` what was asked with the same key."""
    after = query(context.request, "after", Identifier, "")
    limit = query(context.request, "limit", Limit, 50)
    name = _name(context)
    return _json(await _subjects(context).export(name, context.grants, after=after, limit=limit))


async def erase_subject(context: Context) -> Response:
    """Erase all of it; sums stay, under no name. Without `router:admin` what was asked with the same key."""
    name = _name(context)
    erased, is_complete = await _subjects(context).erase(name, context.grants)
    if is_complete and context.grants.has(ADMIN):
        # without that a key would be trusted again by erasing itself, or take from another what it is measured by
        context.parts["live"].learning.watch.forget(name)
    return _json({"subject": name, "complete": is_complete, "erased": erased._asdict()})


def _name(context: Context) -> str:
    name: str = checked("session_or_caller", context.request.path_params["session_or_caller"], SubjectName)
    return name


def _subjects(context: Context) -> Subjects:
    parts = context.parts
    store, live = parts["store"], parts["live"]
    learner, rules = live.learning.learner, parts["registry"].snapshot.policy.learning
    return Subjects(store.subjects, store.weights, learner, rules, parts["clock"], parts["journal"], live.live)


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


CALLS = (
    Call(
        operation_id="export_subject",
        method="GET",
        path="/subjects/{session_or_caller}",
        route="/subjects/{session_or_caller:path}",
        summary="What is kept of a caller or a session",
        handler=export_subject,
        answers={200: EXPORT},
        parameters=(SUBJECT, AFTER, LIMIT),
        problems=(404, 422),
        needs_cards=False,
        tags=("subjects",),
    ),
    Call(
        operation_id="erase_subject",
        method="DELETE",
        path="/subjects/{session_or_caller}",
        route="/subjects/{session_or_caller:path}",
        summary="Erase what is kept of a caller or a session",
        handler=erase_subject,
        answers={200: ERASED},
        parameters=(SUBJECT,),
        problems=(404, 422),
        needs_cards=False,
        tags=("subjects",),
    ),
)

"""`/reviews`: corrections that wait for somebody who accepts or rejects them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from starlette.responses import Response

from models.contract import Identifier, IntentName, Namespace
from models.errors import InvalidRequestError, NotFoundError
from models.review import ReviewFilter, ReviewState, Verdict
from router.endpoints.body import checked, query
from router.endpoints.call import Call, Context, Parameter
from router.reviews import Reviews, serves
from router.wire import dumps

MAX_REVIEWS = 1000
Limit = Annotated[int, Field(ge=1, le=MAX_REVIEWS)]
CallerName = Annotated[str, Field(max_length=200)]

REVIEW_ID = Parameter("review_id", "path", "The correction.", TypeAdapter(Identifier).json_schema(), required=True)
STATE = Parameter("state", "query", "Only corrections in this state.", {"type": "string", "enum": list(ReviewState)})
NAMESPACE = Parameter("namespace", "query", "Only this namespace.", TypeAdapter(Namespace).json_schema())
INTENT = Parameter("intent", "query", "Only where this was read or meant.", TypeAdapter(IntentName).json_schema())
CALLER = Parameter("caller", "query", "Only of this caller.", TypeAdapter(CallerName).json_schema())
AFTER = Parameter("after", "query", "The `next` of the page before.", TypeAdapter(Identifier).json_schema())
LIMIT = Parameter("limit", "query", "At most so many corrections (100).", TypeAdapter(Limit).json_schema())


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(fields), "properties": fields}


REVIEW_FORM = _object(
    {
        "review_id": {"type": "string"},
        "decision_id": {"type": "string"},
        "caller": {"type": "string", "description": "Name of the key that asked, else of the agent."},
        "namespace": {"type": "string"},
        "text": {"type": ["string", "null"], "description": "The utterance, as far as it is kept."},
        "intent": {"type": ["string", "null"], "description": "The one that was read."},
        "correct_intent": {"type": "string", "description": "The one that was meant, as the caller says."},
        "created_at": {"type": "integer", "description": "Epoch, milliseconds."},
        "state": {"type": "string", "enum": list(ReviewState)},
        "decided_at": {"type": ["integer", "null"], "description": "Epoch, milliseconds; null while it waits."},
        "decided_by": {"type": ["string", "null"], "description": "Name of the key that decided it."},
        "n_agree": {"type": "integer", "description": "Other callers who say the same of the same text."},
    }
)
REVIEWS = _object(
    {
        "reviews": {"type": "array", "items": REVIEW_FORM},
        "n_waiting": {"type": "integer"},
        "n_refused": {"type": "integer", "description": "Not kept, as too many of their caller waited."},
        "next": {"type": ["string", "null"], "description": "Give it as `after` to read on; null at the end."},
    }
)


async def list_reviews(context: Context) -> Response:
    """Corrections by id; needs `router:read` or `router:review`. A key sees the namespaces that it reaches."""
    namespace = query(context.request, "namespace", Namespace)
    wanted = ReviewFilter(
        namespaces=None if namespace is None else frozenset({namespace}),
        state=query(context.request, "state", ReviewState),
        intent=query(context.request, "intent", IntentName),
        caller=query(context.request, "caller", CallerName),
    )
    after = query(context.request, "after", Identifier, "")
    limit = query(context.request, "limit", Limit, 100)
    return _json(await _reviews(context).page(wanted, context.grants, after=after, limit=limit))


async def accept_review(context: Context) -> Response:
    """Let a correction become a training example; needs `router:review`. The same again changes nothing."""
    return await _decide(context, ReviewState.ACCEPTED)


async def reject_review(context: Context) -> Response:
    """Let a correction teach nothing; needs `router:review`. The same again changes nothing."""
    return await _decide(context, ReviewState.REJECTED)


async def _decide(context: Context, verdict: Verdict) -> Response:
    text = context.request.path_params["review_id"]
    try:
        review_id = checked("review_id", text, Identifier)
    except InvalidRequestError:
        # what cannot be the name of a correction is not the name of one
        raise NotFoundError(f"there is no correction {text!r}") from None
    return _json(await _reviews(context).decide(review_id, verdict, context.grants))


def _reviews(context: Context) -> Reviews:
    parts = context.parts
    snapshot = parts["registry"].snapshot

    def served(namespace: str, intent: str) -> bool:
        return serves(snapshot.cards, snapshot.policy, namespace, intent)

    return Reviews(parts["store"].reviews, served, parts["clock"])


def _json(answer: Any) -> Response:
    return Response(dumps(answer), media_type="application/json")


CALLS = (
    Call(
        operation_id="list_reviews",
        method="GET",
        path="/reviews",
        summary="Corrections",
        handler=list_reviews,
        answers={200: REVIEWS},
        parameters=(STATE, NAMESPACE, INTENT, CALLER, AFTER, LIMIT),
        problems=(403, 422),
        tags=("reviews",),
    ),
    Call(
        operation_id="accept_review",
        method="POST",
        path="/reviews/{review_id}/accept",
        summary="Accept a correction",
        handler=accept_review,
        answers={200: REVIEW_FORM},
        parameters=(REVIEW_ID,),
        problems=(403, 404, 409),
        tags=("reviews",),
    ),
    Call(
        operation_id="reject_review",
        method="POST",
        path="/reviews/{review_id}/reject",
        summary="Reject a correction",
        handler=reject_review,
        answers={200: REVIEW_FORM},
        parameters=(REVIEW_ID,),
        problems=(403, 404, 409),
        tags=("reviews",),
    ),
)

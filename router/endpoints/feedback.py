"""`POST /feedback`: what came of the calls that decisions planned."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from models.errors import FieldProblem, InvalidRequestError, NotFoundError, RequestError
from models.key import ADMIN
from models.outcome import Outcome, Receipt
from router.endpoints.body import parsed, read_json
from router.endpoints.call import Call, Context
from router.erased import missing
from router.numbers import plain
from router.problems import problem_of
from router.wire import dumps

MAX_OUTCOMES = 1000


async def post_feedback(context: Context) -> Response:
    """Take one outcome, or a list of them; what is acknowledged is stored."""
    value = plain(await read_json(context.request, context.parts["settings"].max_body_bytes))
    if not isinstance(value, list):
        [found] = await _settled([parsed(Outcome, value)], context)
        if isinstance(found, RequestError):
            raise found
        return Response(dumps(found), 202, media_type="application/json")
    if len(value) > MAX_OUTCOMES:
        message = f"has {len(value)} outcomes, at most {MAX_OUTCOMES} may come at once"
        raise InvalidRequestError(f"the list {message}", [FieldProblem("", message)])
    read = [_read(each) for each in value]
    settled = iter(await _settled([each for each in read if isinstance(each, Outcome)], context))
    answers = [next(settled) if isinstance(each, Outcome) else each for each in read]
    return Response(b"[" + b",".join(map(_answer, answers)) + b"]", 202, media_type="application/json")


async def _settled(outcomes: list[Outcome], context: Context) -> list[Receipt | RequestError]:
    """Receipts and errors; that a decision was erased is told apart from that there never was one."""
    parts = context.parts
    grants, seals = context.grants, parts["store"].seals
    found = await parts["live"].settlement.settle(outcomes, grants)

    def may_tell(caller: str) -> bool:
        return grants.has(ADMIN) or grants.is_own(caller)

    return [
        await missing(outcome.decision_id, seals, each, may_tell) if isinstance(each, NotFoundError) else each
        for outcome, each in zip(outcomes, found, strict=True)
    ]


def _read(value: Any) -> Outcome | RequestError:
    try:
        return parsed(Outcome, value)
    except RequestError as error:
        return error


def _answer(found: Receipt | RequestError) -> bytes:
    return orjson.dumps(problem_of(found)) if isinstance(found, RequestError) else dumps(found)


_OUTCOME = {"$ref": "#/components/schemas/Outcome"}
_OUTCOMES = {
    # a wrong one does not make the list wrong
    "anyOf": [_OUTCOME, {"type": "array", "maxItems": MAX_OUTCOMES, "items": {"anyOf": [_OUTCOME, {}]}}]
}
_RECEIPT = {"$ref": "#/components/schemas/Receipt"}
_RECEIPTS = {
    "anyOf": [
        _RECEIPT,
        {"type": "array", "items": {"anyOf": [_RECEIPT, {"$ref": "#/components/schemas/Problem"}]}},
    ]
}

CALLS = (
    Call(
        operation_id="post_feedback",
        method="POST",
        path="/feedback",
        summary="What came of the calls; one outcome or a list, answered in the same order",
        handler=post_feedback,
        body=_OUTCOMES,
        answers={202: _RECEIPTS},
        problems=(400, 404, 409, 410, 413, 422),
        tags=("feedback",),
    ),
)

"""`/policy`: the operator's configuration."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from models.contract import Contract
from models.key import ADMIN, READ
from router.endpoints.body import headers, parsed, read_json
from router.endpoints.call import Call, Context, Parameter
from router.numbers import plain
from router.policy_file import parse_policy, policy_source
from router.wire import dumps

Generation = Annotated[int, Field(ge=0, le=2**53)]

_TAG = re.compile(rb'(W/)?"([^"]*)"')
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,15}")

IF_MATCH = Parameter(
    "If-Match",
    "header",
    'Only while this generation is in force, in quotes as `ETag` gives it (`"3"`); several may be named, `*` is any.',
    {"type": "string"},
)
E_TAG = {"ETag": {"description": "The generation, in quotes.", "required": True, "schema": {"type": "string"}}}
POLICY_ANSWER = {
    "type": "object",
    "required": ["generation", "policy"],
    "properties": {
        "generation": {
            "type": "integer",
            "description": "Rises with each change; 0 is the defaults, as none was ever given.",
        },
        "policy": {"$ref": "#/components/schemas/PolicyBody"},
    },
}


class PolicyRollback(Contract):
    """Which policy is to be in force again.

    Attributes:
        generation: its generation; None means the one before that in force.
    """

    generation: Generation | None = None


async def get_policy(context: Context) -> Response:
    """The policy in force, in the form in which it can be put again."""
    context.grants.require(READ)
    return _answer(context)


async def put_policy(context: Context) -> Response:
    """Validate a whole policy and put it in force; on any error the old one stays."""
    context.grants.require(ADMIN)
    value = plain(await read_json(context.request, context.parts["settings"].max_body_bytes))
    await context.parts["registry"].set_policy(parse_policy(value), over=named_generations(context.request))
    return _answer(context)


async def roll_back_policy(context: Context) -> Response:
    """Put an earlier policy in force again, as a new generation: the one before, or the one that the body names."""
    context.grants.require(ADMIN)
    value = await read_json(context.request, context.parts["settings"].max_body_bytes, if_empty=b"{}")
    wanted = parsed(PolicyRollback, value)
    over = named_generations(context.request)
    await context.parts["registry"].roll_back_policy(wanted.generation, over=over)
    return _answer(context)


def named_generations(request: Request) -> frozenset[int] | None:
    """The generations that `If-Match` names; None where any will do. What is no generation in quotes matches none."""
    given = headers(request, b"if-match")
    if not given or b"*" in (value.strip() for value in given):
        return None
    tags = (tag for value in given for tag in _TAG.findall(value))
    return frozenset(int(text) for weak, text in tags if not weak and _NUMBER.fullmatch(text))


def _answer(context: Context) -> Response:
    snapshot = context.parts["registry"].snapshot
    body = {"generation": snapshot.policy_generation, "policy": policy_source(snapshot.policy)}
    return Response(dumps(body), headers={"ETag": f'"{snapshot.policy_generation}"'}, media_type="application/json")


CALLS = (
    Call(
        operation_id="get_policy",
        method="GET",
        path="/policy",
        summary="The policy in force",
        handler=get_policy,
        answers={200: POLICY_ANSWER},
        headers=E_TAG,
        problems=(403,),
        tags=("policy",),
    ),
    Call(
        operation_id="put_policy",
        method="PUT",
        path="/policy",
        summary="Put a policy in force",
        handler=put_policy,
        body={"$ref": "#/components/schemas/PolicyBody"},
        answers={200: POLICY_ANSWER},
        parameters=(IF_MATCH,),
        headers=E_TAG,
        problems=(400, 403, 412, 413, 422),
        tags=("policy",),
    ),
    Call(
        operation_id="roll_back_policy",
        method="POST",
        path="/policy/rollback",
        summary="Put an earlier policy in force again",
        handler=roll_back_policy,
        body=PolicyRollback.model_json_schema(),
        may_lack_body=True,
        answers={200: POLICY_ANSWER},
        parameters=(IF_MATCH,),
        headers=E_TAG,
        problems=(400, 403, 404, 409, 412, 413, 422),
        tags=("policy",),
    ),
)

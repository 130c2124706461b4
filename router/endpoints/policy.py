"""`/policy`: the operator's configuration."""

from __future__ import annotations

from starlette.responses import Response

from models.key import ADMIN, READ
from router.endpoints.body import read_json
from router.endpoints.call import Call, Context
from router.numbers import plain
from router.policy_file import parse_policy, policy_source
from router.wire import dumps

POLICY_ANSWER = {
    "type": "object",
    "required": ["generation", "policy"],
    "properties": {
        "generation": {
            "type": "integer",
            "description": "Rises with each change over the API; 0 is the file's or the defaults.",
        },
        "policy": {"$ref": "#/components/schemas/PolicyBody"},
    },
}


async def get_policy(context: Context) -> Response:
    """The policy in force, in the form in which it can be put again."""
    context.grants.require(READ)
    return _answer(context)


async def put_policy(context: Context) -> Response:
    """Validate a whole policy and put it in force; on any error the old one stays."""
    context.grants.require(ADMIN)
    value = plain(await read_json(context.request, context.parts["settings"].max_body_bytes))
    await context.parts["registry"].set_policy(parse_policy(value))
    return _answer(context)


def _answer(context: Context) -> Response:
    snapshot = context.parts["registry"].snapshot
    body = {"generation": snapshot.policy_generation, "policy": policy_source(snapshot.policy)}
    return Response(dumps(body), media_type="application/json")


CALLS = (
    Call(
        operation_id="get_policy",
        method="GET",
        path="/policy",
        summary="The policy in force",
        handler=get_policy,
        answers={200: POLICY_ANSWER},
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
        problems=(400, 403, 413, 422),
        tags=("policy",),
    ),
)

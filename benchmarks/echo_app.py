"""What Starlette and pydantic cost alone: an app that validates a body and answers with as much text as a decision.

`python -m benchmarks.echo_app PORT N_BYTES`: one process on loopback, with the server's own uvicorn options.
"""

from __future__ import annotations

import sys

import uvicorn
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from models.request import RouteRequest


class Echo(BaseModel):
    """The request back, and filling up to the size of a decision."""

    request: RouteRequest
    filling: str


def create_echo(n_bytes: int) -> Starlette:
    """The app.

    Args:
        n_bytes: about the size of each answer's body.
    """

    async def route(request: Request) -> Response:
        given = RouteRequest.model_validate_json(await request.body())
        text = Echo.model_construct(request=given, filling="x" * n_bytes).model_dump_json(exclude_unset=True)
        return Response(text[:n_bytes], media_type="application/json")

    async def readyz(_request: Request) -> Response:
        return Response(b"{}", media_type="application/json")

    return Starlette(routes=[Route("/route", route, methods=["POST"]), Route("/readyz", readyz)])


if __name__ == "__main__":
    port, size = int(sys.argv[1]), int(sys.argv[2])
    app = create_echo(size)
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", ws="none", access_log=False, server_header=False)

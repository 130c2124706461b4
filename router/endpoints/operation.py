"""Operation: health, readiness, metrics and the documentation of the API."""

from __future__ import annotations

from importlib.resources import files

import orjson
from starlette.responses import Response

from models.errors import NotFoundError
from router.endpoints.call import Call, Context, Parameter
from router.metrics import CONTENT_TYPE

_ASSETS = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
_DOCS = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>agency-router</title>
<link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body><div id="docs"></div><script src="docs/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({url: "openapi.json", dom_id: "#docs", validatorUrl: null})</script></body></html>
"""
HEALTH = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
READINESS = {
    "type": "object",
    "required": ["status", "problems"],
    "properties": {
        "status": {"type": "string", "enum": ["ready", "starting"]},
        "problems": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
ASSET = Parameter("asset", "path", "A file of the page.", {"type": "string", "enum": sorted(_ASSETS)}, required=True)


async def healthz(context: Context) -> Response:
    """The process answers."""
    return Response(b'{"status":"ok"}', media_type="application/json")


async def readyz(context: Context) -> Response:
    """Decisions can be made; a rejected card file is told here and does not change that."""
    readiness = context.parts["readiness"]
    is_ready = readiness.ready.is_set()
    body = {"status": "ready" if is_ready else "starting", "problems": readiness.problems}
    return Response(orjson.dumps(body), 200 if is_ready else 503, media_type="application/json")


async def metrics(context: Context) -> Response:
    """Figures in Prometheus' text format."""
    return Response(context.metrics.text(), headers={"Content-Type": CONTENT_TYPE})


async def docs(context: Context) -> Response:
    """A page to read and try the API, without the internet."""
    return Response(_DOCS, media_type="text/html")


async def docs_asset(context: Context) -> Response:
    """A file of that page."""
    name = context.request.path_params["asset"]
    if name not in _ASSETS:
        raise NotFoundError(f"there is no file {name!r}")
    return Response(files("router.static").joinpath(name).read_bytes(), media_type=_ASSETS[name])


CALLS = (
    Call(
        operation_id="healthz",
        method="GET",
        path="/healthz",
        summary="The process answers",
        handler=healthz,
        answers={200: HEALTH},
        is_open=True,
        needs_cards=False,
        tags=("operation",),
    ),
    Call(
        operation_id="readyz",
        method="GET",
        path="/readyz",
        summary="Decisions can be made",
        handler=readyz,
        answers={200: READINESS, 503: READINESS},
        is_open=True,
        needs_cards=False,
        tags=("operation",),
    ),
    Call(
        operation_id="metrics",
        method="GET",
        path="/metrics",
        summary="Figures for Prometheus",
        handler=metrics,
        answers={200: None},
        media_type="text/plain",
        needs_cards=False,
        takes_any_query=True,
        tags=("operation",),
    ),
    Call(
        operation_id="docs",
        method="GET",
        path="/docs",
        summary="A page to read and try the API",
        handler=docs,
        answers={200: None},
        media_type="text/html",
        needs_cards=False,
        takes_any_query=True,
        tags=("operation",),
    ),
    Call(
        operation_id="docs_asset",
        method="GET",
        path="/docs/{asset}",
        summary="A file of that page",
        handler=docs_asset,
        answers={200: None},
        parameters=(ASSET,),
        problems=(404,),
        media_type="*/*",
        needs_cards=False,
        takes_any_query=True,
        tags=("operation",),
    ),
)

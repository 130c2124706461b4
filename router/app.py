"""The ASGI application: routes from the calls, the composition root as its lifespan."""

from __future__ import annotations

import gc
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TypedDict

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from models.errors import MethodNotAllowedError, NotFoundError, RouterError
from models.ports import Clock, Embedder
from models.settings import Settings
from router import openapi
from router.edge import Endpoint, FixedPaths, InFlightLimit, gone, handled, keys_enforced
from router.endpoints import (
    agents,
    feedback,
    live,
    operation,
    policy,
    promotion,
    queue,
    records,
    reviews,
    routing,
    subjects,
    usage,
    weights,
)
from router.endpoints.call import Call, Context
from router.metrics import Metrics
from router.problems import response_of
from router.running import Parts, running
from router.service import Ids

log = logging.getLogger(__name__)


class State(TypedDict):
    """What the lifespan gives to requests."""

    parts: Parts
    metrics: Metrics


async def openapi_document(context: Context) -> Response:
    """This API as OpenAPI 3.1."""
    body = _document(keys_enforced(context.parts), context.parts["settings"].max_batch)
    return Response(body, media_type="application/json")


@lru_cache(maxsize=4)
def _document(keys_enforced: bool, max_batch: int) -> bytes:
    """Kept, since making it holds up all requests for some 60 ms."""
    return orjson.dumps(openapi.document(CALLS, keys_enforced=keys_enforced, max_batch=max_batch))


CALLS: tuple[Call, ...] = (
    *routing.CALLS,
    *agents.CALLS,
    *records.CALLS,
    *policy.CALLS,
    *feedback.CALLS,
    *live.CALLS,
    *usage.CALLS,
    *weights.CALLS,
    *promotion.CALLS,
    *queue.CALLS,
    *reviews.CALLS,
    *subjects.CALLS,
    *operation.CALLS,
    Call(
        operation_id="openapi",
        method="GET",
        path="/openapi.json",
        summary="This document",
        handler=openapi_document,
        answers={200: {"type": "object"}},
        needs_cards=False,
        tags=("operation",),
    ),
)


def create_app(
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    on_ready: Callable[[], None] | None = None,
) -> Starlette:
    """The application; nothing is opened before its lifespan begins.

    Args:
        settings: how to run.
        embedder: the encoder; None takes the bundled one.
        clock: the time; None takes the system's.
        ids: ids and seeds; None takes random ones.
        on_ready: called once decisions can be made.
    """
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[State]:
        async with running(settings, embedder=embedder, clock=clock, ids=ids, on_ready=on_ready) as parts:
            metrics.observe(parts)
            if not keys_enforced(parts):
                log.warning("keys are off until the first one is made (agency-router keys create): loopback only")
            elif not parts["keys"].enforced:
                log.warning("beyond loopback every call needs a key, and there is none: agency-router keys create")
            yield State(parts=parts, metrics=metrics)

    endpoints = {(call.method, call.path): handled(call) for call in CALLS if "{" not in call.path}
    return Starlette(
        routes=_routes(CALLS),
        middleware=[
            Middleware(InFlightLimit, max_in_flight=settings.max_in_flight, metrics=metrics),
            Middleware(FixedPaths, endpoints=endpoints),
        ],
        exception_handlers={HTTPException: _refused, ClientDisconnect: gone, Exception: _unexpected},
        lifespan=lifespan,
    )


def calm_collector() -> None:
    """Keep the garbage collector from setting the slowest decisions: what is there by now stays.

    Without it a full collection walks all cards and vectors in the middle of a request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _routes(calls: Sequence[Call]) -> list[Route]:
    by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for call in calls:
        by_path[call.route or call.path][call.method] = handled(call)
    return [Route(path, _dispatch(handlers), methods=list(handlers)) for path, handlers in by_path.items()]


def _dispatch(handlers: dict[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await handlers[method](request)

    return endpoint


async def _refused(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        refusal: RouterError = MethodNotAllowedError(f"{request.method} is not a method of {request.url.path}")
    else:
        refusal = NotFoundError(f"there is nothing at {request.url.path}")
    return response_of(refusal, dict(error.headers or {}))


async def _unexpected(request: Request, error: Exception) -> Response:
    """A fault of ours: told in the log, not to the caller."""
    log.error("%s %s failed: %s", request.method, request.url.path, error)
    request.state.metrics.answered(500)
    return response_of(RouterError("an error of ours; it is in the log"))

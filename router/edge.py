"""The edge: what happens to every request before and after its handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.errors import NotReadyError, OverloadedError, RouterError, UnauthenticatedError
from router.endpoints.body import check_query, headers
from router.endpoints.call import Call, Context
from router.metrics import Metrics
from router.one_write import N_AHEAD
from router.permit import OPEN, Grants
from router.problems import response_of
from router.running import LOOPBACK, Parts

Endpoint = Callable[[Request], Awaitable[Response]]

_RETRY_MS = 1000
UNCOUNTED = frozenset({"/healthz", "/readyz", "/metrics"})
"""These are answered at any load."""


class InFlightLimit:
    """Admits so many requests at once; more get 429. Health, readiness and metrics always pass."""

    def __init__(self, app: ASGIApp, *, max_in_flight: int, metrics: Metrics) -> None:
        self._app = app
        self._max = max_in_flight
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        answer = _Counted(send, self._metrics)
        if scope["path"] in UNCOUNTED:
            return await self._app(scope, receive, answer)
        if max(self._metrics.in_flight, scope.get("state", {}).get(N_AHEAD, 0)) >= self._max:
            refusal = OverloadedError(f"{self._max} requests are under way already", retry_after_ms=_RETRY_MS)
            return await response_of(refusal)(scope, receive, answer)
        self._metrics.in_flight += 1
        try:
            await self._app(scope, receive, answer)
        except asyncio.CancelledError:
            # The server stops, and its patience with this request is over.
            if answer.started:
                raise
            refusal = NotReadyError("the service is being stopped", retry_after_ms=_RETRY_MS)
            await response_of(refusal)(scope, receive, answer)
        finally:
            self._metrics.in_flight -= 1


class _Counted:
    """A `send` that counts answers by their status."""

    def __init__(self, send: Send, metrics: Metrics) -> None:
        self.started = False
        self._send = send
        self._metrics = metrics

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._metrics.answered(message["status"])
        await self._send(message)


class FixedPaths:
    """Calls whose path is always the same go straight to their endpoint; the router would try one route after another.

    Args:
        app: takes all other requests, those that are to be refused among them.
        endpoints: by method and path.
    """

    def __init__(self, app: ASGIApp, *, endpoints: Mapping[tuple[str, str], Endpoint]) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on."""
        endpoint = self._endpoints.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        try:
            response = await endpoint(request)
        except ClientDisconnect as error:
            response = await gone(request, error)
        await response(scope, receive, send)


async def gone(_request: Request, _error: Exception) -> Response:
    """The caller left before its body was here: nobody hears this, it is for the metrics."""
    return Response(status_code=499)


def handled(call: Call) -> Endpoint:
    """The call's handler behind authentication and a look at the query, its errors as problem documents."""
    known = call.query_names

    async def endpoint(request: Request) -> Response:
        parts: Parts = request.state.parts
        try:
            grants = OPEN if call.is_open else await grants_of(request, parts)
            if not call.takes_any_query:
                check_query(request, known)
            if call.needs_cards and not parts["readiness"].ready.is_set():
                raise NotReadyError("the cards are still being embedded", retry_after_ms=_RETRY_MS)
            return await call.handler(Context(request, parts, request.state.metrics, grants))
        except RouterError as error:
            return response_of(error)

    return endpoint


def keys_enforced(parts: Parts) -> bool:
    """Whether a key is needed: once the store holds one, and always beyond loopback."""
    return parts["keys"].enforced or parts["settings"].host not in LOOPBACK


async def grants_of(request: Request, parts: Parts) -> Grants:
    """What the request's key grants; a presented key is always checked.

    Raises:
        UnauthenticatedError: there is no key where one is needed, or it is not valid.
    """
    given = headers(request, b"authorization")
    if not given:
        if keys_enforced(parts):
            raise UnauthenticatedError("a key is needed: Authorization: Bearer KEY (see 'agency-router keys create')")
        return OPEN
    scheme, _, token = given[0].decode("latin-1").partition(" ")
    if scheme.lower() != "bearer":
        raise UnauthenticatedError("the key has to come as Authorization: Bearer KEY")
    keys = parts["keys"]
    key = keys.authenticate(token.strip()) or await keys.authenticate_fresh(token.strip(), parts["store"].keys)
    if key is None:
        raise UnauthenticatedError("this key is not known, or was revoked")
    return Grants.of(key)

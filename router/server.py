"""The server: uvicorn around the application, with a start that can fail clearly and a stop that loses nothing."""

from __future__ import annotations

import errno
import logging
import signal
import socket
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from intent.embedder import cpu_features, int8_accelerated
from models.errors import ConfigError
from models.settings import Settings
from router.app import calm_collector, create_app
from router.edge import UNCOUNTED
from router.one_write import HttpProtocol, Line

log = logging.getLogger(__name__)

_BACKLOG = 2048


def run(settings: Settings) -> None:
    """Serve until a signal says stop; then requests under way are answered and the journal is written.

    Raises:
        RouterError: the start failed (address, cards, policy, encoder, store), or the stop lost something.
    """
    failures: list[Exception] = []
    with _bound(settings) as listening:
        _announce(settings, listening)
        config = uvicorn.Config(
            _noting(create_app(settings, on_ready=calm_collector), failures),
            loop="uvloop",
            http=cast(Any, partial(HttpProtocol, line=Line(UNCOUNTED))),
            ws="none",
            proxy_headers=False,  # nothing here asks for the client's address
            lifespan="on",
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=settings.shutdown_s,
            server_header=False,
        )
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        server = uvicorn.Server(config)
        for number in (signal.SIGINT, signal.SIGTERM):
            # From here on, so that an early one counts too. uvicorn puts this handler back at its end and raises the
            # signal anew: with the system's own handler, nothing after that would run.
            signal.signal(number, server.handle_exit)
        try:
            server.run(sockets=[listening])
        except SystemExit:  # uvicorn's word for a start that failed
            if not failures:
                raise
    if failures:
        raise failures[0]


def _bound(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        where = f"{settings.host}:{settings.port}"
        hint = "; is it running already? Choose another --port" if error.errno == errno.EADDRINUSE else ""
        raise ConfigError(f"cannot bind {where}: {error.strerror or error}{hint}") from None
    return listening


def _announce(settings: Settings, listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    log.info("listening on http://%s:%d, documentation at /docs", host, port)
    if int8_accelerated(cpu_features()) is False:
        log.warning("this processor has no int8 dot products (VNNI): the encoder will be several times slower")


def _noting(app: ASGIApp, failures: list[Exception]) -> ASGIApp:
    """The app, with what makes its lifespan fail noted instead of printed."""

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            return await app(scope, receive, send)

        async def quietly(message: Message) -> None:
            failed = message["type"].endswith(".failed")
            await send({"type": message["type"], "message": ""} if failed else message)

        try:
            await app(scope, receive, quietly)
        except Exception as error:
            failures.append(error)
            raise

    return noting

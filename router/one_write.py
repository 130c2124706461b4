"""HTTP connections that hand an answer to the system in one piece.

uvicorn writes the head of an answer and its body apart: two system calls, two packets, a client that wakes up twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OneWrite:
    """A transport that sends together what was written within one turn of the event loop.

    Args:
        transport: what it writes to; all else is left to it.
        loop: the running one.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send at the end of this turn."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        """Send what was written, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        pieces = self._pieces
        if pieces:
            self._pieces = []
            self._transport.writelines(pieces)


N_AHEAD = "n_ahead"
"""In a request's state: how many others were read before it and are not answered yet."""


class Line:
    """The requests that have been read and are not answered; what is answered at any load is left out.

    A request that need not wait for anything runs in one go, so those that arrived with it stand in line where nothing
    else counts them.

    Attributes:
        n: how many there are.
    """

    def __init__(self, uncounted: Collection[str] = ()) -> None:
        self.n = 0
        self._uncounted = uncounted

    def stand(self, scope: Scope, app: ASGIApp) -> ASGIApp:
        """Tell a request how many are before it; the app to run for it, which leaves the line in the end."""
        scope.setdefault("state", {})[N_AHEAD] = self.n
        if scope["path"] in self._uncounted:
            return app
        self.n += 1

        async def leaving(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await app(scope, receive, send)
            finally:
                self.n -= 1

        return leaving


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol over such a transport, its requests in line."""

    def __init__(self, *args: Any, line: Line, **more: Any) -> None:
        super().__init__(*args, **more)
        self._line = line

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(cast(asyncio.Transport, OneWrite(transport, self.loop)))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        super()._start_asgi_task(cycle, cast(Any, self._line.stand(cycle.scope, app)))

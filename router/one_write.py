"""HTTP connections that hand an answer to the system in one piece.

uvicorn writes the head of an answer and its body apart: two system calls, two packets, a client that wakes up twice.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

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


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol over such a transport; it tells each request how many are before it.

    A request that need not wait for anything runs in one go, so those that arrived with it stand in line where nothing
    else counts them.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(cast(asyncio.Transport, OneWrite(transport, self.loop)))

    def on_headers_complete(self) -> None:
        """A request is read."""
        self.scope["state"][N_AHEAD] = len(self.tasks)
        super().on_headers_complete()

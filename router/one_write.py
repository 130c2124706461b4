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


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol over such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(cast(asyncio.Transport, OneWrite(transport, self.loop)))

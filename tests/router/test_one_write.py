from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from router.one_write import N_AHEAD, HttpProtocol, Line, OneWrite


class Recording(asyncio.Transport):
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.told: list[Any] = []

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.told.append(list(list_of_data))

    def close(self) -> None:
        self.told.append("close")

    def is_closing(self) -> bool:
        return False


async def test_what_is_written_in_one_turn_goes_out_together_and_in_order() -> None:
    transport = Recording()
    joined = OneWrite(transport, asyncio.get_running_loop())
    joined.write(b"head")
    joined.write(b"body")
    assert transport.told == []
    await asyncio.sleep(0)
    joined.write(b"next")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert transport.told == [[b"head", b"body"], [b"next"]]


async def test_closing_sends_first_what_was_written() -> None:
    transport = Recording()
    joined = OneWrite(transport, asyncio.get_running_loop())
    joined.write(b"last words")
    joined.close()
    joined.close()
    await asyncio.sleep(0)
    assert transport.told == [[b"last words"], "close", "close"]


async def test_all_else_is_the_transport_s_own() -> None:
    assert OneWrite(Recording(), asyncio.get_running_loop()).get_extra_info("peername") == ("127.0.0.1", 1)


async def test_a_request_is_told_how_many_are_before_it() -> None:
    ahead: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        ahead.append(scope["state"][N_AHEAD])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    config, state = uvicorn.Config(app, lifespan="off", log_config=None), ServerState()
    config.load()
    line = Line({"/healthz"})
    for path in (b"/route", b"/healthz", b"/route", b"/route"):
        protocol = HttpProtocol(config, state, app_state={}, line=line)
        protocol.connection_made(Recording())
        protocol.data_received(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (ahead, line.n) == ([], 3)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (ahead, line.n) == ([0, 1, 1, 2], 0)


async def test_a_request_that_fails_leaves_the_line() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("no")

    line = Line()
    app = line.stand({"type": "http", "path": "/route"}, failing)
    assert line.n == 1
    with pytest.raises(ValueError, match="no"):
        await app({}, cast(Any, None), cast(Any, None))
    assert line.n == 0

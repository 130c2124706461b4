"""The parts of the server that need no process of its own; starts and stops as a whole are in tests/service."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.types import Message, Receive, Scope, Send

from models.errors import ConfigError, StoreError
from models.settings import Settings
from router import server
from router.app import create_app


def settings_of(folder: Path, **fields: Any) -> Settings:
    return Settings(store=f"sqlite:///{folder / 'store.db'}", **fields)


def test_a_taken_port_ends_the_start_before_anything_is_opened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot bind 127.0.0.1:{port}: .*--port"):
            server.run(settings_of(tmp_path, port=port))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_an_address_that_is_not_ours_is_told(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot bind {host}:0: "):
        server.run(settings_of(tmp_path, host=host, port=0))


@pytest.mark.parametrize(("host", "told"), [("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")])
def test_it_listens_and_says_where(tmp_path: Path, host: str, told: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = settings_of(tmp_path, host=host, port=0)
    try:
        listening = server._bound(settings)
    except ConfigError:
        pytest.skip(f"this machine has no {host}")
    with listening, caplog.at_level(logging.INFO):
        server._announce(settings, listening)
        assert f"{told}{listening.getsockname()[1]}," in caplog.text


async def lived(app: Any) -> list[Message]:
    """What a lifespan says from its start to its stop."""
    said: list[Message] = []
    asked = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Message:
        return next(asked)

    async def send(message: Message) -> None:
        said.append(message)

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    return said


async def test_a_start_that_fails_is_kept_for_the_command_and_not_printed(tmp_path: Path) -> None:
    failures: list[Exception] = []
    app = server._noting(create_app(Settings(store=f"sqlite:///{tmp_path}/no/such/folder/store.db")), failures)
    with pytest.raises(StoreError):
        await lived(app)
    assert [type(failure) for failure in failures] == [StoreError]


async def test_a_failure_is_announced_without_its_traceback() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "Traceback (most recent call last)"})

    assert await lived(server._noting(failing, [])) == [{"type": "lifespan.startup.failed", "message": ""}]


async def test_a_good_life_leaves_nothing(tmp_path: Path) -> None:
    failures: list[Exception] = []
    said = await lived(server._noting(create_app(settings_of(tmp_path)), failures))
    assert ([message["type"] for message in said], failures) == (
        ["lifespan.startup.complete", "lifespan.shutdown.complete"],
        [],
    )


async def test_requests_pass() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": scope["type"]})

    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    await server._noting(app, [])({"type": "http"}, asyncio.Queue[Message]().get, send)
    assert said == [{"type": "http"}]


def test_uvicorn_can_be_told_to_stop_before_it_serves() -> None:
    """What `run` counts on: the handler of an early signal is the server's own."""
    early = uvicorn.Server(uvicorn.Config(create_app(Settings())))
    early.handle_exit(15, None)
    assert early.should_exit

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.service.scene import Scene
from tests.service.server import CLASSIFYING, SHOP_OPTIONS, Server

Serve = Callable[..., Server]
Stage = Callable[..., Scene]
Headers = dict[str, str]


@dataclass(frozen=True)
class Keyed:
    """A server with keys: one that grants nothing, another like it, one to read all, one to change all."""

    server: Server
    one: Headers
    other: Headers
    reader: Headers
    admin: Headers

    @property
    def client(self) -> httpx.Client:
        return self.server.client

    def statuses(self, method: str, path: str, **fields: Any) -> list[int]:
        """What each gets: nobody, one, other, reader, admin."""
        keys: tuple[Headers, ...] = ({}, self.one, self.other, self.reader, self.admin)
        return [self.client.request(method, path, headers=key, **fields).status_code for key in keys]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers, each with a folder of its own, and stops those that still run; none may leave a traceback."""
    with _serving(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The shop, keys off; its cards and policy stay as they are."""
    with _serving(tmp_path_factory) as start:
        yield start(*SHOP_OPTIONS, env=CLASSIFYING)


@pytest.fixture(scope="session")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """The shop with keys on."""
    with _serving(tmp_path_factory) as start:
        server = start(*SHOP_OPTIONS)
        reader, admin = server.key("reader", "router:read"), server.key("admin", "router:admin")
        keyed = Keyed(server, server.key("one"), server.key("other"), reader, admin)
        server.wait(lambda: server.client.get("/agents").status_code == 401, "no key is needed")
        yield keyed


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of all scenes; each has its namespace, and the policy is that of the scene that was opened last."""
    with _serving(tmp_path_factory) as start:
        yield start()


@pytest.fixture
async def stage(stages: Server) -> AsyncIterator[Stage]:
    """Opens scenes; their agents and clients end with the test."""
    async with AsyncExitStack() as stack:

        def open_scene(name: str, on: Server = stages, **policy: Any) -> Scene:
            scene = Scene(on, name, stack)
            scene.rule(**policy)
            return scene

        yield open_scene


@contextmanager
def _serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    servers: list[Server] = []
    with ExitStack() as stack:

        def start(*options: str, until_ready: bool = True, **fields: Any) -> Server:
            server = Server(tmp_path_factory.mktemp("server"), *options, **fields)
            servers.append(server)
            stack.callback(_end, server)
            return server.start(until_ready=until_ready)

        yield start
    for server in servers:
        assert "Traceback" not in server.log, server.log


def _end(server: Server) -> None:
    if server.process.poll() is None:
        assert server.stop() == 0, server.log

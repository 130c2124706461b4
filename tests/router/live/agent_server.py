"""An agent as a real server of its own, in a thread, for what it answers to a probe."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass
class Agent:
    """Answers by the path, as its name says.

    Attributes:
        asked: all requests so far.
    """

    port: int = 0
    asked: list[Asked] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/somewhere"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        body = (await receive())["body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append(Asked(scope["path"], headers, json.loads(body)))
        what = scope["path"].removeprefix("/")
        if what == "silent":
            await receive()  # http.disconnect
            return
        status, more, answer = self._answer(what, json.loads(body))
        await send({"type": "http.response.start", "status": status, "headers": more})
        if what == "unfinished":
            await send({"type": "http.response.body", "body": answer, "more_body": True})
            await receive()
            return
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, what: str, asked: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        right = {"nonce": asked["nonce"], "time": "2026-01-02T03:04:05Z"}
        answers: dict[str, Any] = {
            "wrong": {**right, "nonce": "another"},
            "no-nonce": {"time": right["time"]},
            "no-time": {"nonce": right["nonce"]},
            "number-as-time": {**right, "time": 1767323045},
            "list": [right],
            "large": {**right, "padding": "x" * 60_000},
            "huge": {**right, "padding": "x" * 10_000_000},
        }
        text = b"<html>" if what == "garbage" else json.dumps(answers.get(what, right)).encode()
        if what == "redirect":
            return 307, [(b"location", f"http://127.0.0.1:{self.port}/right".encode())], b""
        if what == "cookie":
            return 200, [(b"set-cookie", b"taste=sweet")], text
        return (500 if what == "broken" else 200), [], text


@contextmanager
def serving() -> Iterator[Agent]:
    """An agent that listens on a free port of loopback."""
    agent = Agent()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        agent.port = listener.getsockname()[1]
        # listening already, so that who connects before the thread accepts waits for it
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(agent, log_config=None, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield agent
        finally:
            server.should_exit = True
            thread.join()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port

"""Agents as real servers on loopback, whose behaviour a test switches while they serve."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

ROOT = Path(__file__).parents[2]
SLOW_S = 5.0
SHARED = "crm"
"""What `NO_DEPENDENCY` says has failed."""

MALFORMED = "malformed"
"""A text that no agent gets on with, however it behaves."""


class Behaviour(StrEnum):
    """What an agent does with a call."""

    NORMAL = "normal"
    SLOW = "slow"
    HUNG = "hung"
    WRONG = "wrong"
    MISFIT = "misfit"
    GARBAGE = "garbage"
    BROKEN = "broken"
    BUSY = "busy"
    FLAPPING = "flapping"
    NO_DEPENDENCY = "no_dependency"


@dataclass
class Agent:
    """Answers `{"payload": {"text": …}}` with the text in capitals, while it is well.

    Attributes:
        asked: the texts of all calls so far.
        retry_after_s: what a busy one asks for.
    """

    port: int = 0
    behaviour: Behaviour = Behaviour.NORMAL
    retry_after_s: int = 1
    asked: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/call"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        text = json.loads(await _body(receive))["payload"]["text"]
        self.asked.append(text)
        waits_s = {Behaviour.SLOW: SLOW_S, Behaviour.HUNG: None}
        if self.behaviour in waits_s and await _has_left(receive, waits_s[self.behaviour]):
            return
        status, headers, answer = self._answer(text)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, text: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        does = self.behaviour
        if does is Behaviour.FLAPPING:
            does = Behaviour.BROKEN if len(self.asked) % 2 else Behaviour.NORMAL
        if text == MALFORMED or does is Behaviour.BROKEN:
            return 500, [], b"it broke"
        if does is Behaviour.BUSY:
            return 503, [(b"retry-after", str(self.retry_after_s).encode())], b"later"
        if does is Behaviour.NO_DEPENDENCY:
            return 502, [], json.dumps({"dependency": SHARED}).encode()
        answers: dict[Behaviour, Any] = {Behaviour.WRONG: {"text": "nonsense"}, Behaviour.MISFIT: {"words": 3}}
        body = (
            b"<html>" if does is Behaviour.GARBAGE else json.dumps(answers.get(does, {"text": text.upper()})).encode()
        )
        return 200, [], body


async def _body(receive: Receive) -> bytes:
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body, has_more = body + message["body"], message.get("more_body", False)
    return body


async def _has_left(receive: Receive, within_s: float | None) -> bool:
    """Wait so long, None for ever; whether the caller went away meanwhile."""
    try:
        async with asyncio.timeout(within_s):
            await receive()  # http.disconnect
    except TimeoutError:
        return False
    return True


@contextmanager
def serving() -> Iterator[Agent]:
    """An agent that listens on a free port of loopback, in a thread of this process."""
    agent = Agent()
    with socket.socket() as listener:
        agent.port = _listen(listener)
        server = uvicorn.Server(uvicorn.Config(agent, log_config=None, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield agent
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def serving_process() -> Iterator[tuple[Agent, subprocess.Popen[str]]]:
    """An agent as a process of its own, which signals can stop; `asked` stays empty here."""
    process = subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with process:
        assert process.stdout is not None
        try:
            yield Agent(int(process.stdout.readline())), process
        finally:
            process.kill()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _listen(listener: socket.socket) -> int:
    """Listen before anybody accepts, so that early callers wait; the port."""
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port: int = listener.getsockname()[1]
    return port


def main() -> None:
    """Tell the port, and serve until killed."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with socket.socket() as listener:
        print(_listen(listener), flush=True)
        server = uvicorn.Server(uvicorn.Config(Agent(), log_config=None, lifespan="off", ws="none"))
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()

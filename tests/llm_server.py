"""A server of chat completions that does what a test scripts: real sockets, and bytes no framework would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """What the server sends.

    Attributes:
        sent_bytes: so many bytes of the body, then the connection is lost; None sends them all.
        is_silent: nothing is sent at all, ever.
        gate: waits for it before it answers.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sent_bytes: int | None = None
    is_silent: bool = False
    gate: asyncio.Event | None = None


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def form(self) -> str:
        form: str = self.body["response_format"]["type"]
        return form

    @property
    def system(self) -> str:
        text: str = self.body["messages"][0]["content"]
        return text

    @property
    def user(self) -> str:
        text: str = self.body["messages"][1]["content"]
        return text

    @property
    def ids(self) -> dict[str, str]:
        """Description → id, as the prompt offers them."""
        return {option["description"]: option["id"] for option in self.options}

    @property
    def options(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.user.splitlines() if line.startswith("{")]

    @property
    def utterance(self) -> str:
        text: str = json.loads(self.user.splitlines()[-2])
        return text


Script = Callable[[Asked], Reply]


class LlmServer:
    """Answers each request by the script; notes them all.

    Attributes:
        script: may be exchanged at any time.
        asked: all requests so far.
        n_lost: connections that the client left before it had its answer.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.n_lost = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._serve(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            # cancelled by the end of the server only
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))))
        self.asked.append(Asked(head[0].split()[1], headers, body))
        reply = self.script(self.asked[-1])
        if (reply.is_silent or reply.gate is not None) and await self._is_left(reader, reply.gate):
            self.n_lost += 1
            return False
        sent = {"content-type": "application/json", "content-length": str(len(reply.body)), **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}", *(f"{k}: {v}" for k, v in sent.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body[: reply.sent_bytes])
        await writer.drain()
        return reply.sent_bytes is None

    async def _is_left(self, reader: asyncio.StreamReader, gate: asyncio.Event | None) -> bool:
        """Wait for the gate (none never opens), or until the client hangs up; whether it did."""
        gone = asyncio.ensure_future(reader.read(1))
        opened = asyncio.ensure_future((gate or asyncio.Event()).wait())
        try:
            await asyncio.wait([gone, opened], return_when=asyncio.FIRST_COMPLETED)
            return gone.done()
        finally:
            for future in (gone, opened):
                future.cancel()
            await asyncio.gather(gone, opened, return_exceptions=True)


def says(content: object, n_tokens: int | None = 100, **fields: Any) -> Reply:
    """A chat completion with this content."""
    completion: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
    }
    if n_tokens is not None:
        completion["usage"] = {"prompt_tokens": n_tokens - 9, "completion_tokens": 9, "total_tokens": n_tokens}
    return Reply(json.dumps(completion).encode(), **fields)


def fails(status: int, headers: Mapping[str, str] | None = None, **error: Any) -> Reply:
    """An error as OpenAI words it."""
    return Reply(json.dumps({"error": {"message": "no", **error}}).encode(), status, headers or {})


def picks(description: str, **fields: Any) -> Script:
    """A model that always chooses the candidate of that description."""
    return lambda asked: says(json.dumps({"choice": asked.ids[description]}), **fields)


def silent(asked: Asked) -> Reply:
    """A model that never answers."""
    return Reply(b"", is_silent=True)

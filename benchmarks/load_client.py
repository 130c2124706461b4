"""Sends requests over raw sockets and times them; run in a process of its own, a Plan as JSON on standard input.

An open loop sends at instants fixed beforehand (a Poisson process) and counts latency from those instants, so that a
slow answer does not hold back, and thereby hide, the requests behind it. A closed loop keeps every connection busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import selectors
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length:"
_DRAIN_S = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send.

    Attributes:
        bodies: JSON texts, taken in turn; from the start again at the end.
        per_s: rate of an open loop; 0 means a closed loop.
        warm_up_s: before what is counted begins.
        first: which body comes first, so that the next run need not repeat the last one's.
        good: the status of answers whose latency counts.
    """

    host: str
    port: int
    path: str
    key: str | None
    bodies: list[str]
    n_connections: int
    seconds: float
    warm_up_s: float
    per_s: float = 0.0
    seed: int = 0
    first: int = 0
    good: int = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back in the counted time.

    Attributes:
        latencies_ms: of answers with the plan's `good` status.
        sent_ms: the same answers, counted from when a connection was free to send the request.
        statuses: status → how many.
        n_bytes: mean size of an answer's body.
        n_answers: all that came, those of the warm-up too.
    """

    seconds: float
    latencies_ms: list[float]
    statuses: dict[str, int]
    n_bytes: float
    n_answers: int
    sent_ms: list[float] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """Good answers per second."""
        return len(self.latencies_ms) / self.seconds


def request_bytes(host: str, path: str, body: str, key: str | None) -> bytes:
    """An HTTP/1.1 request as it goes over the wire."""
    content = body.encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *([f"Authorization: Bearer {key}"] if key else []),
    ]
    return "\r\n".join(lines).encode() + _END_OF_HEAD + content


def answer_end(data: bytes | bytearray) -> tuple[int, int, int] | None:
    """(status, where its body begins, where it ends) of the answer at the front of `data`; None while it is not whole.

    >>> answer_end(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
    (200, 38, 40)
    """
    start = data.find(_END_OF_HEAD)
    if start < 0:
        return None
    head = bytes(data[:start]).lower()
    at = head.find(_LENGTH)
    if at < 0:
        raise ValueError(f"an answer has no content-length, its head is {head!r}")
    length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
    end = start + len(_END_OF_HEAD) + length
    return None if len(data) < end else (int(head[9:12]), end - length, end)


class Connection(asyncio.Protocol):
    """One socket with at most one request under way."""

    def __init__(self, answered: Callable[[Connection, int, int], None]) -> None:
        self._answered = answered
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None
        self.due_at = self.sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, message: bytes, counted_from: float) -> None:
        """Send a request whose latency is counted from an instant of `perf_counter`."""
        assert self._transport is not None
        self.due_at, self.sent_at = counted_from, perf_counter()
        self._transport.write(message)

    def data_received(self, data: bytes) -> None:
        """Collect until the answer is whole."""
        self._data += data
        found = answer_end(self._data)
        if found is not None:
            status, start, end = found
            del self._data[:end]
            self._answered(self, status, end - start)

    def close(self) -> None:
        """Close the socket."""
        if self._transport is not None:
            self._transport.close()


class Load:
    """One run of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._messages = [request_bytes(plan.host, plan.path, body, plan.key) for body in plan.bodies]
        self._n_sent = plan.first
        self._idle: list[Connection] = []
        self._waiting: deque[float] = deque()
        self._latencies: list[float] = []
        self._sent_ms: list[float] = []
        self._statuses: dict[str, int] = {}
        self._n_bytes = 0
        self._n_answers = 0
        self._counts_from = 0.0
        self._ends_at = 0.0
        self._became_idle = asyncio.Event()

    async def run(self) -> Outcome:
        """Connect, send, collect."""
        plan, loop = self._plan, asyncio.get_running_loop()
        for _ in range(plan.n_connections):
            _, connection = await loop.create_connection(lambda: Connection(self._answered), plan.host, plan.port)
            self._idle.append(connection)
        connections = list(self._idle)
        begin = perf_counter()
        self._counts_from, self._ends_at = begin + plan.warm_up_s, begin + plan.warm_up_s + plan.seconds
        if plan.per_s > 0:
            await self._open_loop(arrivals(plan.per_s, plan.warm_up_s + plan.seconds, plan.seed), begin)
        else:
            while self._idle:
                self._send(self._idle.pop(), perf_counter())
            await asyncio.sleep(plan.warm_up_s + plan.seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._all_idle()
        for connection in connections:
            connection.close()
        mean_bytes = self._n_bytes / max(1, self._n_answers)
        return Outcome(plan.seconds, self._latencies, self._statuses, mean_bytes, self._n_answers, self._sent_ms)

    async def _open_loop(self, instants: Sequence[float], begin: float) -> None:
        for instant in instants:
            at = begin + instant
            if (left := at - perf_counter()) > 0:
                await asyncio.sleep(left)
            if self._idle:
                self._send(self._idle.pop(), at)
            else:
                self._waiting.append(at)

    async def _all_idle(self) -> None:
        while len(self._idle) < self._plan.n_connections:
            self._became_idle.clear()
            await self._became_idle.wait()

    def _send(self, connection: Connection, counted_from: float) -> None:
        message = self._messages[self._n_sent % len(self._messages)]
        self._n_sent += 1
        connection.send(message, counted_from)

    def _answered(self, connection: Connection, status: int, n_bytes: int) -> None:
        now = perf_counter()
        self._n_answers += 1
        self._n_bytes += n_bytes
        # a closed loop counts what ends within the time, an open one what was due within it
        marked = connection.due_at if self._plan.per_s > 0 else now
        if self._counts_from <= marked < self._ends_at:
            self._statuses[str(status)] = self._statuses.get(str(status), 0) + 1
            if status == self._plan.good:
                self._latencies.append((now - connection.due_at) * 1000)
                self._sent_ms.append((now - connection.sent_at) * 1000)
        if self._waiting:
            self._send(connection, self._waiting.popleft())
        elif self._plan.per_s == 0 and now < self._ends_at:
            self._send(connection, now)
        else:
            self._idle.append(connection)
            self._became_idle.set()


def arrivals(per_s: float, seconds: float, seed: int) -> list[float]:
    """Instants of a Poisson process, in seconds from its start.

    >>> len(arrivals(100, 10, seed=1)) in range(900, 1100)
    True
    """
    draw, now, found = random.Random(seed), 0.0, []
    while (now := now + draw.expovariate(per_s)) < seconds:
        found.append(now)
    return found


def _exact_timers() -> asyncio.AbstractEventLoop:
    # epoll, and uvloop with it, rounds timers to whole milliseconds; select does not
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=_exact_timers) as runner:
        outcome = runner.run(Load(Plan(**json.load(sys.stdin))).run())
    json.dump(asdict(outcome), sys.stdout)

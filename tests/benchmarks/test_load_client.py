import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.load_client import Load, Plan, answer_end, arrivals, request_bytes
from benchmarks.processes import cpu_seconds, resident_mb


class _Echo(asyncio.Protocol):
    """Answers every request with its own body, in two pieces, as the network may do it."""

    def __init__(self, gone: list[asyncio.Future[None]]) -> None:
        self._gone = asyncio.get_running_loop().create_future()
        gone.append(self._gone)
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if end and len(body) == length:
            status = b"503 No" if b"bad" in body else b"200 OK"
            self._transport.write(b"HTTP/1.1 " + status + b"\r\nContent-")
            self._transport.write(b"Length: " + str(length).encode() + b"\r\n\r\n" + body)
            self._data = b""

    def connection_lost(self, error: Exception | None) -> None:
        self._gone.set_result(None)


def _plan(port: int, **changes: object) -> Plan:
    fields: dict[str, object] = {
        "host": "127.0.0.1",
        "port": port,
        "path": "/route",
        "key": None,
        "bodies": ["{}"],
        "n_connections": 2,
        "seconds": 0.05,
        "warm_up_s": 0.0,
    }
    return Plan(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("per_s", [0.0, 200.0])
async def test_a_run_counts_good_and_bad_answers(per_s: float) -> None:
    gone: list[asyncio.Future[None]] = []
    server = await asyncio.get_running_loop().create_server(lambda: _Echo(gone), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        outcome = await Load(_plan(port, per_s=per_s, seconds=0.2, bodies=["{}", '"bad"'])).run()
        await asyncio.gather(*gone)
    assert set(outcome.statuses) == {"200", "503"}
    assert len(outcome.latencies_ms) == outcome.statuses["200"]
    assert outcome.per_s == len(outcome.latencies_ms) / 0.2
    assert 2 <= outcome.n_bytes <= 5


def test_an_answer_is_whole_only_with_its_body() -> None:
    text = b"HTTP/1.1 422 No\r\ncontent-length: 3\r\nx: y\r\n\r\nabc"
    assert answer_end(text[:-1]) is None
    assert answer_end(text + b"HTTP") == (422, len(text) - 3, len(text))


def test_an_answer_without_a_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="content-length"):
        answer_end(b"HTTP/1.1 200 OK\r\n\r\n")


def test_a_request_carries_its_key_and_its_length_in_bytes() -> None:
    sent = request_bytes("h", "/route", json.dumps("ü", ensure_ascii=False), "ar_1")
    assert b"Authorization: Bearer ar_1\r\n" in sent
    assert b"Content-Length: 4\r\n" in sent


def test_arrivals_are_those_of_the_seed() -> None:
    assert arrivals(50, 2, seed=3) == arrivals(50, 2, seed=3)
    assert arrivals(50, 2, seed=3) != arrivals(50, 2, seed=4)


def test_memory_and_processor_time_are_read_from_the_system(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tx\nVmRSS:\t  1000 kB\n")
    (tmp_path / "stat").write_text("7 (a (b) c) S " + " ".join(["0"] * 10) + " 100 50 0 0\n")
    assert resident_mb(tmp_path / "status") == 1.024
    assert cpu_seconds(tmp_path / "stat") == pytest.approx(1.5, rel=0.5)
    assert resident_mb(tmp_path / "none") is None
    assert cpu_seconds(tmp_path / "none") is None

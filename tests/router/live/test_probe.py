from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import httpx
import pytest

from models.card import Probe
from router.clock import SystemClock
from router.live.health_score import ProbeResult
from router.live.probe import Probed, probe_client, send_probe
from router.live.probe_hosts import ProbeHosts
from tests.router.live.agent_server import Agent, free_port, serving

LOOPBACK = ProbeHosts(["127.0.0.0/8"])
LONG_MS, SHORT_MS = 10_000, 150


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with serving() as agent:
        yield agent


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with probe_client(ssl.create_default_context()) as client:
        yield client


async def send(
    client: httpx.AsyncClient, endpoint: str, what: str, *, timeout_ms: int = LONG_MS, hosts: ProbeHosts = LOOPBACK
) -> Probed:
    probe = Probe(path=f"/{what}", timeout_ms=timeout_ms)
    return await send_probe(client, endpoint, probe, hosts, nonce="n-1", clock=SystemClock())


def names(*found: str) -> ProbeHosts:
    """Hosts of 127.0.0.0/8 and any name, where every name has these addresses."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return found

    return ProbeHosts(["127.0.0.0/8"], resolve)


@asynccontextmanager
async def raw(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Host and port of a server that answers these bytes to whatever comes, and what came."""
    came: list[bytes] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await reader.read(65_536))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", came


async def test_the_right_echo_is_well(client: httpx.AsyncClient, agent: Agent) -> None:
    before = len(agent.asked)
    probed = await send(client, agent.endpoint, "right")

    assert (probed.result, probed.note) == (ProbeResult.OK, "")
    assert 0 < probed.latency_ms < LONG_MS
    asked = agent.asked[before:]
    assert [(each.path, each.body["nonce"]) for each in asked] == [("/right", "n-1")]
    told = datetime.fromisoformat(asked[0].body["time"])
    assert abs(told.timestamp() * 1000 - SystemClock().now_ms()) < 60_000


@pytest.mark.parametrize(
    ("what", "result", "note"),
    [
        ("wrong", ProbeResult.WRONG_ECHO, ""),
        ("no-nonce", ProbeResult.WRONG_ECHO, ""),
        ("no-time", ProbeResult.GARBAGE, "no time"),
        ("number-as-time", ProbeResult.GARBAGE, "no time"),
        ("list", ProbeResult.GARBAGE, "no JSON object"),
        ("garbage", ProbeResult.GARBAGE, "no JSON"),
        ("broken", ProbeResult.GARBAGE, "status 500"),
        ("redirect", ProbeResult.GARBAGE, "status 307"),
        ("large", ProbeResult.OK, ""),
        ("huge", ProbeResult.GARBAGE, "over 65536 bytes"),
    ],
)
async def test_an_answer_is_judged(
    client: httpx.AsyncClient, agent: Agent, what: str, result: ProbeResult, note: str
) -> None:
    before = len(agent.asked)
    probed = await send(client, agent.endpoint, what)

    assert (probed.result, probed.note) == (result, note)
    assert [each.path for each in agent.asked[before:]] == [f"/{what}"]


@pytest.mark.parametrize("what", ["silent", "unfinished"])
async def test_an_answer_that_is_not_whole_in_time_is_slow(client: httpx.AsyncClient, agent: Agent, what: str) -> None:
    probed = await send(client, agent.endpoint, what, timeout_ms=SHORT_MS)

    assert probed.result is ProbeResult.SLOW
    assert probed.latency_ms >= SHORT_MS
    assert (await send(client, agent.endpoint, "right")).result is ProbeResult.OK


async def test_nobody_there_is_unreachable(client: httpx.AsyncClient) -> None:
    probed = await send(client, f"http://127.0.0.1:{free_port()}", "right")
    assert (probed.result, probed.note) == (ProbeResult.UNREACHABLE, "ConnectError")


async def test_a_name_that_does_not_resolve_in_time_is_unreachable(client: httpx.AsyncClient) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    hosts = ProbeHosts(["*"], resolve)
    probed = await send(client, "http://agent.test", "right", timeout_ms=SHORT_MS, hosts=hosts)
    assert (probed.result, probed.note) == (ProbeResult.UNREACHABLE, "no connection")


async def test_a_name_that_cannot_be_one_is_unreachable(client: httpx.AsyncClient) -> None:
    probed = await send(client, f"http://{'a' * 64}.test", "right", hosts=ProbeHosts(["*"]))
    assert probed.result is ProbeResult.UNREACHABLE


async def test_what_is_no_http_is_garbage(client: httpx.AsyncClient) -> None:
    async with raw(b"SSH-2.0-OpenSSH_9.9\r\n") as (host, _):
        probed = await send(client, f"http://{host}", "right")
    assert (probed.result, probed.note) == (ProbeResult.GARBAGE, "no HTTP")


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:{}", "http://localhost:{}", "http://127.1:{}"])
async def test_loopback_is_refused_unless_it_is_named(client: httpx.AsyncClient, agent: Agent, endpoint: str) -> None:
    before = len(agent.asked)
    probed = await send(client, endpoint.format(agent.port), "right", hosts=ProbeHosts(["*", "localhost"]))

    assert (probed.result, probed.note) == (ProbeResult.REFUSED_HOST, "not among probe_hosts")
    assert len(agent.asked) == before


@pytest.mark.parametrize("endpoint", ["", "agent.test", "ftp://agent.test:80", "queue:tasks", "http://", "http://a:b"])
async def test_what_is_no_http_url_is_refused(client: httpx.AsyncClient, endpoint: str) -> None:
    assert (await send(client, endpoint, "right", hosts=ProbeHosts(["*"]))).result is ProbeResult.REFUSED_HOST


async def test_the_checked_address_is_asked_for_the_name(client: httpx.AsyncClient, agent: Agent) -> None:
    before = len(agent.asked)
    probed = await send(client, f"http://user:word@Agent.test:{agent.port}", "right", hosts=names("127.0.0.1"))

    assert probed.result is ProbeResult.OK
    asked = agent.asked[before:]
    assert [each.headers["host"] for each in asked] == [f"agent.test:{agent.port}"]
    assert "authorization" not in asked[0].headers


async def test_a_name_with_one_address_that_may_not_be_probed_is_refused(
    client: httpx.AsyncClient, agent: Agent
) -> None:
    before = len(agent.asked)
    endpoint = f"http://agent.test:{agent.port}"
    probed = await send(client, endpoint, "right", hosts=names("127.0.0.1", "169.254.169.254"))

    assert probed.result is ProbeResult.REFUSED_HOST
    assert len(agent.asked) == before


async def test_a_name_is_resolved_once_for_a_probe(client: httpx.AsyncClient, agent: Agent) -> None:
    answers = ["127.0.0.1", "127.0.0.2"]

    async def resolve(host: str, port: int) -> Sequence[str]:
        return [answers.pop(0)]

    hosts = ProbeHosts(["127.0.0.1"], resolve)
    assert (await send(client, f"http://agent.test:{agent.port}", "right", hosts=hosts)).result is ProbeResult.OK
    assert answers == ["127.0.0.2"]


async def test_tls_asks_for_the_name(client: httpx.AsyncClient) -> None:
    async with raw(b"") as (host, came):
        endpoint = f"https://agent.test:{host.split(':')[1]}"
        probed = await send(client, endpoint, "right", hosts=names("127.0.0.1"))

    assert probed.result is ProbeResult.UNREACHABLE
    assert [b"agent.test" in hello for hello in came] == [True]


async def test_proxies_of_the_environment_are_not_used(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with probe_client(ssl.create_default_context()) as client:
        assert (await send(client, agent.endpoint, "right")).result is ProbeResult.OK


async def test_an_agent_gets_no_cookies_back(client: httpx.AsyncClient, agent: Agent) -> None:
    before = len(agent.asked)
    for _ in range(2):
        assert (await send(client, agent.endpoint, "cookie")).result is ProbeResult.OK
    assert [each.headers.get("cookie") for each in agent.asked[before:]] == [None, None]


async def test_a_path_may_hold_a_query_and_none_that_is_no_path(client: httpx.AsyncClient, agent: Agent) -> None:
    assert (await send(client, agent.endpoint, "right?deep=1")).result is ProbeResult.OK
    probed = await send(client, agent.endpoint, "right#part")
    assert (probed.result, probed.note) == (ProbeResult.REFUSED_HOST, "no path of a URL")

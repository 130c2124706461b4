"""Probe: one minimal task over HTTP, which shows whether an agent answers, and answers what it was asked."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from typing import Any, NamedTuple

import httpx
import orjson

from models.card import Probe
from models.ports import Clock
from router.live.health_score import ProbeResult
from router.live.probe_hosts import ProbeHosts

MAX_BODY_BYTES = 65_536
_PORTS = {"http": 80, "https": 443}


class Probed(NamedTuple):
    """How a probe ended; `note` says more of it in a few words of our own, never the agent's."""

    result: ProbeResult
    latency_ms: float
    note: str = ""


class _Ended(NamedTuple):
    result: ProbeResult
    note: str = ""


class _Aim(NamedTuple):
    """Where a probe goes: `address` is what is connected to, `name` what is asked for there."""

    url: httpx.URL
    host: str
    name: str


def probe_client(trusted: ssl.SSLContext) -> httpx.AsyncClient:
    """A client for the probes of one agent: one connection, which each probe opens anew.

    It follows no redirect and uses no proxy of the environment: both would lead where nobody has checked.

    Args:
        trusted: whose certificates are believed.
    """
    return httpx.AsyncClient(
        verify=trusted,
        trust_env=False,
        follow_redirects=False,
        timeout=None,
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
        headers={"User-Agent": "agency-router", "Accept": "application/json", "Accept-Encoding": "identity"},
    )


async def send_probe(
    client: httpx.AsyncClient, endpoint: str, probe: Probe, hosts: ProbeHosts, *, nonce: str, clock: Clock
) -> Probed:
    """POST `{"nonce": …, "time": …}` to the probe's path on the endpoint's host; the agent answers with both.

    `time` is in ISO 8601, ours in the request and the agent's in the answer. Within the probe's timeout the name has to
    resolve and the whole answer to be there: before anything could be sent the agent is unreachable, later it is slow.
    An answer of another status than 2xx (so a redirect too), over 64 kB, not JSON, or without a time is garbage.

    Args:
        client: of `probe_client`, used by no other probe at the same time.
        endpoint: of the card; only its scheme, host and port count.
    """
    started_ms = clock.monotonic_ms()
    has_connected = asyncio.Event()
    try:
        async with asyncio.timeout(probe.timeout_ms / 1000):
            ended = await _exchange(client, endpoint, probe.path, hosts, nonce, clock, has_connected)
    except TimeoutError:
        ended = _Ended(ProbeResult.SLOW) if has_connected.is_set() else _Ended(ProbeResult.UNREACHABLE, "no connection")
    except httpx.RemoteProtocolError:
        ended = _Ended(ProbeResult.GARBAGE, "no HTTP")
    except (httpx.TransportError, OSError, UnicodeError) as error:
        ended = _Ended(ProbeResult.UNREACHABLE, type(error).__name__)
    finally:
        # an agent may set what cookies it likes, and gets none back
        client.cookies.clear()
    return Probed(ended.result, clock.monotonic_ms() - started_ms, ended.note)


async def _exchange(
    client: httpx.AsyncClient,
    endpoint: str,
    path: str,
    hosts: ProbeHosts,
    nonce: str,
    clock: Clock,
    has_connected: asyncio.Event,
) -> _Ended:
    aim = await _aim(endpoint, path, hosts)
    if isinstance(aim, _Ended):
        return aim

    async def trace(event: str, _info: dict[str, Any]) -> None:
        if event == "http11.send_request_headers.started":
            has_connected.set()

    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    sent = client.stream(
        "POST",
        aim.url,
        content=orjson.dumps({"nonce": nonce, "time": now.isoformat(timespec="milliseconds")}),
        headers={"Host": aim.host, "Content-Type": "application/json"},
        # for https: the name is asked for, and the certificate has to be of it
        extensions={"sni_hostname": aim.name, "trace": trace},
    )
    async with sent as response:
        if not response.is_success:
            return _Ended(ProbeResult.GARBAGE, f"status {response.status_code}")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return _Ended(ProbeResult.GARBAGE, f"over {MAX_BODY_BYTES} bytes")
    return _judged(bytes(body), nonce)


async def _aim(endpoint: str, path: str, hosts: ProbeHosts) -> _Aim | _Ended:
    try:
        url = httpx.URL(endpoint)
        name = url.raw_host.decode("ascii").rstrip(".")
    except httpx.InvalidURL:
        return _Ended(ProbeResult.REFUSED_HOST, "no URL")
    if url.scheme not in _PORTS or not name:
        return _Ended(ProbeResult.REFUSED_HOST, "no http or https URL")
    port = url.port or _PORTS[url.scheme]
    address = await hosts.address_of(name, port)
    if address is None:
        return _Ended(ProbeResult.REFUSED_HOST, "not among probe_hosts")
    host = url.netloc.decode("ascii")
    try:
        return _Aim(httpx.URL(scheme=url.scheme, host=address, port=port, raw_path=path.encode("ascii")), host, name)
    except httpx.InvalidURL:
        return _Ended(ProbeResult.REFUSED_HOST, "no path of a URL")


def _judged(body: bytes, nonce: str) -> _Ended:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _Ended(ProbeResult.GARBAGE, "no JSON")
    if not isinstance(answer, dict):
        return _Ended(ProbeResult.GARBAGE, "no JSON object")
    if answer.get("nonce") != nonce:
        return _Ended(ProbeResult.WRONG_ECHO)
    try:
        datetime.fromisoformat(answer.get("time"))  # type: ignore[arg-type] # what is no text is told by TypeError
    except (TypeError, ValueError):
        return _Ended(ProbeResult.GARBAGE, "no time")
    return _Ended(ProbeResult.OK)

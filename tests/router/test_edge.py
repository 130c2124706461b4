from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.types import Message, Receive, Scope, Send

from models.errors import StoreError
from router.edge import InFlightLimit
from router.keys import create_key
from router.metrics import Metrics
from router.one_write import N_AHEAD
from tests.router.asgi import speaking
from tests.router.memory_store import WaitingEmbedder
from tests.router.waiting import eventually

REQUEST = {"intent": "anything"}


async def test_before_the_first_cards_are_embedded_decisions_are_503_and_records_answer(tmp_path: Path) -> None:
    with WaitingEmbedder() as embedder:
        async with speaking(tmp_path, embedder=embedder) as (client, parts):
            for method, path in [("POST", "/route"), ("POST", "/route/batch"), ("GET", "/agents"), ("GET", "/policy")]:
                response = await client.request(method, path, json=REQUEST if method == "POST" else None)
                assert (response.status_code, response.json()["code"]) == (503, "not_ready")
                assert response.headers["Retry-After"] == "1"
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()) == (503, {"status": "starting", "problems": {}})
            paths = ["/healthz", "/metrics", "/openapi.json", "/docs", "/events", "/traces/x"]
            statuses = [(await client.get(path)).status_code for path in paths]
            assert statuses == [200, 200, 200, 200, 200, 404]
            embedder.may_end.set()
            await asyncio.wait_for(parts["readiness"].ready.wait(), 30)
            assert (await client.get("/readyz")).json() == {"status": "ready", "problems": {}}
            assert (await client.post("/route", json=REQUEST)).status_code == 200


async def test_a_wrong_key_is_401_even_before_the_start_is_over(tmp_path: Path) -> None:
    with WaitingEmbedder() as embedder:
        async with speaking(tmp_path, embedder=embedder) as (client, _):
            response = await client.post("/route", json=REQUEST, headers={"Authorization": "Bearer wrong"})
            assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_key_made_while_serving_is_taken_at_once_and_from_then_on_needed(tmp_path: Path, scheme: str) -> None:
    async with speaking(tmp_path) as (client, parts):
        assert (await client.get("/agents")).status_code != 401
        key, token = create_key("new", ["router:read"], None, None, now_ms=0)
        await parts["store"].keys.add_key(key)
        response = await client.get("/events", headers={"Authorization": f"{scheme}  {token} "})
        assert response.status_code == 200
        assert (await client.get("/events")).status_code == 401


async def test_a_store_out_of_reach_is_503(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["store"].close()
        response = await client.get("/decisions/none")
        assert (response.status_code, response.json()["code"]) == (503, StoreError.code)


async def test_an_error_of_ours_is_a_500_that_tells_nothing_and_is_counted_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with speaking(tmp_path) as (client, parts):
        await asyncio.wait_for(parts["readiness"].ready.wait(), 30)
        parts["registry"] = cast(Any, "no registry")
        response = await client.get("/agents")
        assert (response.status_code, response.headers["content-type"]) == (500, "application/problem+json")
        assert response.json() == {
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "code": "internal",
            "detail": "an error of ours; it is in the log",
            "errors": [],
        }
        assert "GET /agents failed: 'str' object has no attribute 'snapshot'" in caplog.text
        parts["readiness"].ready.clear()  # without a snapshot there is nothing to tell of it
        assert 'http_requests_total{status="500"} 1.0' in (await client.get("/metrics")).text


class Door:
    """An ASGI application that holds each request until it is let go."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.entered: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.append(scope["path"])
        if scope["path"] == "/started":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.open.wait()
        if scope["path"] != "/started":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def ask(limit: InFlightLimit, path: str) -> tuple[int, dict[bytes, bytes]]:
    """The status and headers of the answer to one request."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        raise NotImplementedError

    await limit({"type": "http", "path": path, "method": "GET", "headers": []}, receive, send)
    return messages[0]["status"], dict(messages[0]["headers"])


async def test_as_many_as_the_limit_are_admitted_and_the_next_is_429_until_one_has_left() -> None:
    door, metrics = Door(), Metrics()
    limit = InFlightLimit(door, max_in_flight=2, metrics=metrics)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask(limit, "/route")) for _ in range(2)]
        await eventually(lambda: len(door.entered) == 2)
        status, headers = await ask(limit, "/route")
        assert (status, headers[b"retry-after"]) == (429, b"1")
        assert metrics.in_flight == 2
        open_ones = [group.create_task(ask(limit, path)) for path in ("/healthz", "/readyz", "/metrics")]
        await eventually(lambda: len(door.entered) == 5)
        door.open.set()
    assert [task.result()[0] for task in asked + open_ones] == [200] * 5
    assert metrics.in_flight == 0
    assert (await ask(limit, "/route"))[0] == 200
    text = metrics.text().decode()
    assert 'http_requests_total{status="200"} 6.0' in text
    assert 'http_requests_total{status="429"} 1.0' in text


async def test_those_that_stand_in_line_are_counted_too() -> None:
    door, sent = Door(), []
    door.open.set()
    limit = InFlightLimit(door, max_in_flight=2, metrics=Metrics())

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            sent.append(message["status"])

    async def receive() -> Message:
        raise NotImplementedError

    for n_ahead in (0, 1, 2, 3):
        scope = {"type": "http", "path": "/route", "method": "GET", "headers": [], "state": {N_AHEAD: n_ahead}}
        await limit(scope, receive, send)
    assert sent == [200, 200, 429, 429]


async def test_a_request_that_fails_gives_its_place_back() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("no")

    metrics = Metrics()
    limit = InFlightLimit(failing, max_in_flight=1, metrics=metrics)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await ask(limit, "/route")
    assert metrics.in_flight == 0


async def test_what_a_stop_cuts_off_is_answered_503_unless_its_answer_has_begun() -> None:
    door, metrics = Door(), Metrics()
    limit = InFlightLimit(door, max_in_flight=9, metrics=metrics)
    waiting, started = (asyncio.create_task(ask(limit, path)) for path in ("/route", "/started"))
    await eventually(lambda: len(door.entered) == 2)
    waiting.cancel()
    started.cancel()
    status, headers = await waiting
    assert (status, headers[b"retry-after"]) == (503, b"1")
    with pytest.raises(asyncio.CancelledError):
        await started
    assert metrics.in_flight == 0


async def test_what_is_no_http_passes() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        raise NotImplementedError

    await InFlightLimit(app, max_in_flight=1, metrics=Metrics())({"type": "lifespan"}, nothing, nothing)
    assert seen == ["lifespan"]

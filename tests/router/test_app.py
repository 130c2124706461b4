from __future__ import annotations

import gc
from pathlib import Path

import httpx
import pytest

from router.app import calm_collector
from router.keys import create_key
from tests.router.asgi import speaking


async def test_nothing_is_opened_before_the_lifespan_and_all_is_closed_after_it(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, _):
        assert (await client.get("/healthz")).json() == {"status": "ok"}
    async with speaking(tmp_path) as (client, _):
        assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/decisions/a/b", 404, "not_found"),
        ("POST", "/", 404, "not_found"),
        ("DELETE", "/route", 405, "method_not_allowed"),
        ("TRACE", "/healthz", 405, "method_not_allowed"),
    ],
)
async def test_what_is_not_there_is_a_problem_document(
    tmp_path: Path, method: str, path: str, status: int, code: str
) -> None:
    async with speaking(tmp_path) as (client, _):
        response = await client.request(method, path)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert ("Allow" in response.headers) == (status == 405)


async def security(client: httpx.AsyncClient, **headers: str) -> list[dict[str, list[str]]]:
    response = await client.get("/openapi.json", headers=headers)
    found: list[dict[str, list[str]]] = response.json()["paths"]["/route"]["post"]["security"]
    return found


async def test_the_document_says_whether_a_key_is_needed_now(tmp_path: Path) -> None:
    key, token = create_key("any", (), None, None, now_ms=0)
    async with speaking(tmp_path) as (client, parts):
        assert await security(client) == [{}, {"key": []}]
        await parts["store"].keys.add_key(key)
    async with speaking(tmp_path) as (client, _):
        assert await security(client, Authorization=f"Bearer {token}") == [{"key": []}]


@pytest.mark.parametrize(("host", "n_warnings"), [("127.0.0.1", 1), ("localhost", 1), ("::1", 1), ("0.0.0.0", 0)])
async def test_the_log_says_that_keys_are_off_where_they_are(
    tmp_path: Path, host: str, n_warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with speaking(tmp_path, host=host) as (client, _):
        assert caplog.text.count("keys are off") == n_warnings
        assert caplog.text.count("every call needs a key, and there is none") == 1 - n_warnings
        assert (await client.get("/metrics")).status_code == (200 if n_warnings else 401)


async def test_the_log_does_not_say_so_where_the_store_holds_a_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with speaking(tmp_path) as (_, parts):
        await parts["store"].keys.add_key(create_key("any", (), None, None, now_ms=0)[0])
    caplog.clear()
    async with speaking(tmp_path) as (client, _):
        assert "agency-router keys create" not in caplog.text
        assert (await client.get("/metrics")).status_code == 401


def test_the_collector_passes_over_what_is_there_once_it_is_calmed() -> None:
    thresholds = gc.get_threshold()
    try:
        calm_collector()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold() == (50_000, 20, 100)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)

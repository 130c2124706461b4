"""Operation over HTTP: keys, silence, pages, starts, changes of files while serving, and stops."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.events import DecisionRow
from router.stores.open import open_store
from tests.service.conftest import Keyed, Serve
from tests.service.server import SHOP, SHOP_NAMESPACE, SHOP_OPTIONS, Server, problem, run, run_json

CANCEL = {"intent": "cancel_booking", "namespace": SHOP_NAMESPACE}


def status(client: httpx.Client, headers: dict[str, str] | None = None) -> int:
    return client.post("/route", json=CANCEL, headers=headers).status_code


def test_keys_are_off_until_one_is_made_and_a_revoked_one_is_refused_soon(serve: Serve) -> None:
    server = serve(*SHOP_OPTIONS)
    assert status(server.client) == 200
    assert server.log.count("keys are off") == 1
    made = run_json("keys", "create", "first", "--store", server.store)
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert status(server.client, headers) == 200
    server.wait(lambda: status(server.client) == 401, "no key is needed")
    second = server.key("second")
    assert status(server.client, second) == 200

    run_json("keys", "revoke", "first", "--store", server.store)
    revoked_at = time.monotonic()
    server.wait(lambda: status(server.client, headers) == 401, "the revoked key is taken")
    # a refresh takes 250 ms; the rest is for a machine under load
    assert time.monotonic() - revoked_at < 5
    assert status(server.client, second) == 200
    run_json("keys", "revoke", "second", "--store", server.store)
    server.wait(lambda: status(server.client, second) == 401, "the revoked key is taken")
    assert status(server.client) == 401
    assert server.stop() == 0
    server.start()
    assert status(server.client) == 401
    assert server.log.count("keys are off") == 1


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer nonsense", "Basic dTpw", "ar_0_0", "Bearer ar_" + "0" * 16 + "_" + "0" * 64]
)
def test_a_wrong_key_is_refused_also_where_none_is_needed(shop: Server, keyed: Keyed, header: str) -> None:
    for client in (shop.client, keyed.client):
        response = client.post("/route", json=CANCEL, headers={"Authorization": header})
        problem(response, 401, "unauthenticated")
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_with_keys_only_health_and_readiness_are_open(keyed: Keyed) -> None:
    opened = ["/healthz", "/readyz"]
    closed = ["/metrics", "/openapi.json", "/docs", "/docs/swagger-ui.css", "/traces/x", "/decisions/x", "/events"]
    statuses = {path: keyed.client.get(path).status_code for path in [*opened, *closed]}
    assert statuses == dict.fromkeys(opened, 200) | dict.fromkeys(closed, 401)


def test_beyond_loopback_a_key_is_needed_before_any_was_made(serve: Serve) -> None:
    server = serve("--host", "0.0.0.0")
    assert "keys are off" not in server.log
    assert [status(server.client), server.client.get("/readyz").status_code] == [401, 200]
    assert status(server.client, server.key("first")) == 200


def test_a_key_is_held_to_its_namespaces_and_callers(keyed: Keyed) -> None:
    bound = keyed.server.key("bound", callers=["front"])
    for caller, wanted in [({}, 200), ({"agent_id": "front"}, 200), ({"agent_id": "other"}, 403)]:
        response = keyed.client.post("/route", json={**CANCEL, "caller": caller}, headers=bound)
        assert response.status_code == wanted
    batch = keyed.client.post("/route/batch", json=[CANCEL, {**CANCEL, "caller": {"agent_id": "x"}}], headers=bound)
    assert [each.get("code", each.get("action")) for each in batch.json()] == ["invoke", "forbidden"]


def test_a_denial_teaches_no_names(keyed: Keyed) -> None:
    """No agent, endpoint, permission or source of it stands in the answer, whatever was asked for."""
    secrets = ("records_officer", "care_agent", "care:7070", "records:7070", "rider:erase", "switchboard", "required")
    erase: dict[str, Any] = {"namespace": SHOP_NAMESPACE, "limit": 100}
    requests = [
        {**erase, "intent": "erase_rider_data"},
        {**erase, "intent": "erase_rider_data", "payload": {"rider_id": 5}},
        {**erase, "intent": "erase_rider_data", "version": ">=9"},
        {**erase, "intent": "erase_rider_data", "response_timeout_ms": 1},
        {**erase, "intent": "erase_rider_data", "min_quality": 1.0, "max_cost_level": 1},
        {**erase, "utterance": "wipe my personal data"},
    ]
    for request in requests:
        for caller in ({}, {"agent_id": "kiosk"}):
            response = keyed.client.post("/route?explain=true", json={**request, "caller": caller}, headers=keyed.one)
            answer = response.json()
            assert (response.status_code, answer["action"]) == (200, "deny")
            assert (answer["target"], answer["plan"], answer["candidates"], answer["skipped_versions"]) == (
                None,
                [],
                [],
                [],
            )
            told = response.text + str(response.headers)
            assert [secret for secret in secrets if secret in told] == []
            record = keyed.client.get(f"/decisions/{answer['decision_id']}", headers=keyed.one).text
            events = keyed.client.get(f"/traces/{answer['trace_id']}", headers=keyed.one).text
            assert [secret for secret in secrets if secret in record + events] == []


def test_a_wish_for_a_forbidden_agent_is_answered_as_one_for_an_unknown_agent(keyed: Keyed) -> None:
    told = []
    for agent in ("records_officer", "no_such_agent_"):
        request = {"intent": "erase_rider_data", "namespace": SHOP_NAMESPACE, "target_agent": agent}
        answer = keyed.client.post("/route", json=request, headers=keyed.one).json()
        told.append({name: answer[name] for name in ("action", "reason", "degraded", "candidates")})
    assert told[0] == told[1]


def test_the_page_of_the_documentation_loads_nothing_from_elsewhere(shop: Server) -> None:
    page = shop.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert re.findall(r"https?://", page.text) == []
    linked = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert sorted(linked) == ["docs/swagger-ui-bundle.js", "docs/swagger-ui.css"]
    for path in linked:
        asset = shop.client.get(f"/{path}")
        assert (asset.status_code, len(asset.content) > 10_000) == (200, True)
    style = shop.client.get("/docs/swagger-ui.css").text
    assert re.findall(r"url\(\s*['\"]?(?:https?:)?//", style) == re.findall(r"@import", style) == []
    problem(shop.client.get("/docs/LICENSE.swagger-ui"), 404, "not_found")
    problem(shop.client.get("/docs/..%2F..%2Fapp.py"), 404, "not_found")


def test_head_is_answered_as_get_without_a_body(shop: Server) -> None:
    for path in ("/healthz", "/agents", "/docs"):
        head, get = shop.client.head(path), shop.client.get(path)
        assert (head.status_code, head.headers["content-type"], head.content) == (200, get.headers["content-type"], b"")
    problem(shop.client.get("/agents/nobody"), 404, "not_found")
    assert shop.client.head("/agents/nobody").status_code == 404


def test_metrics_tell_decisions_answers_queues_and_garbage(shop: Server) -> None:
    shop.client.post("/route", json=CANCEL)
    text = shop.client.get("/metrics").text
    for name in (
        'agency_router_decisions_total{action="invoke",reason="selected"}',
        'agency_router_http_requests_total{status="200"}',
        "agency_router_decision_seconds_bucket",
        "agency_router_journal_pending_rows",
        "agency_router_journal_written_rows_total",
        "agency_router_embed_waiting",
        "agency_router_gc_collections_total",
        "agency_router_ready 1.0",
        "process_resident_memory_bytes",
    ):
        assert name in text
    assert "deposit_desk" not in text


def test_a_card_file_that_breaks_while_serving_is_told_and_the_old_cards_stay(serve: Serve, tmp_path: Path) -> None:
    cards = tmp_path / "cards.yaml"
    shutil.copy(SHOP / "cards.yaml", cards)
    server = serve("--cards", str(cards))
    whole = cards.read_text(encoding="utf-8")

    def problems() -> dict[str, str]:
        response = server.client.get("/readyz")
        assert response.status_code == 200
        found: dict[str, str] = response.json()["problems"]
        return found

    cards.write_text(whole.replace("quality: 0.88", "quality: 88"), encoding="utf-8")
    server.wait(lambda: "cards" in problems(), "the wrong file is not told")
    assert "quality" in problems()["cards"]
    assert re.search(r"line \d+", problems()["cards"])
    assert server.client.post("/route", json=CANCEL).json()["target"]["agent_id"] == "rental_desk"
    cards.write_text(whole.replace("http://rental-desk:7070", "http://moved:1"), encoding="utf-8")
    server.wait(lambda: problems() == {}, "the mended file is not taken")
    assert server.client.post("/route", json=CANCEL).json()["target"]["endpoint"] == "http://moved:1/call"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--cards", "broken.yaml"), "quality"),
        (("--cards", "missing.yaml"), "missing.yaml"),
        (("--policy", "policy.yaml"), "preference"),
        (("--store", "mysql://there"), "mysql"),
        (("--store", "sqlite:////no/such/folder/store.db"), "/no/such/folder"),
        (("--host", "no.such.host.invalid"), "no.such.host.invalid"),
    ],
)
def test_a_start_that_cannot_be_made_ends_with_its_reason(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    (tmp_path / "broken.yaml").write_text("agent_id: a\ncapabilities: [{intent: b, quality: 88}]\n", encoding="utf-8")
    (tmp_path / "policy.yaml").write_text("defaults: {preference: cheap}\n", encoding="utf-8")
    code, out, errors = run("serve", "--port", "0", *options, cwd=tmp_path)
    assert (code, out) == (1, "")
    assert "Traceback" not in errors
    assert told in errors.split("error: ")[-1]


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, errors = run("serve", "--port", port, cwd=tmp_path)
    assert code == 1
    assert errors.startswith(f"error: cannot bind 127.0.0.1:{port}: ")
    assert errors.count("\n") == 1


def test_a_stop_answers_what_is_under_way_and_writes_down_every_decision(serve: Serve) -> None:
    # rows wait for a full batch, so that all of them are still unwritten when the signal comes
    slow = {"AGENCY_ROUTER_JOURNAL_WAIT_MS": "600000", "AGENCY_ROUTER_JOURNAL_BATCH": "100000"}
    server = serve(*SHOP_OPTIONS, env=slow)
    answers = server.client.post("/route/batch", json=[CANCEL] * 100).json()
    body = json.dumps(CANCEL).encode()
    with server.connect() as connection:
        head = f"POST /route HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body[:10])
        server.wait(lambda: "in_flight 1.0" in server.client.get("/metrics").text, "it is not under way")
        server.process.terminate()
        server.wait(lambda: refuses(server), "it still takes connections")
        connection.sendall(body[10:])
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert received.startswith(b"HTTP/1.1 200 OK")
    answers.append(json.loads(received.partition(b"\r\n\r\n")[2]))
    assert server.ended() == 0
    rows = asyncio.run(stored(server.store, [answer["decision_id"] for answer in answers]))
    assert [json.loads(row.answer) if row else None for row in rows] == answers


def refuses(server: Server) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    return False


async def stored(store: str, decision_ids: list[str]) -> list[DecisionRow | None]:
    async with open_store(store) as opened:
        return [await opened.records.decision(decision_id) for decision_id in decision_ids]


def test_a_stop_does_not_wait_for_ever_for_a_caller_that_hangs(serve: Serve) -> None:
    server = serve(env={"AGENCY_ROUTER_SHUTDOWN_S": "1"})
    with server.connect() as connection:
        connection.sendall(b"POST /route HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n{")
        server.wait(lambda: "in_flight 1.0" in server.client.get("/metrics").text, "it is not under way")
        assert server.stop(signal.SIGINT) == 0
        received = connection.recv(65_536)
    assert received.startswith(b"HTTP/1.1 503 Service Unavailable")
    assert b"retry-after: 1" in received


def test_a_signal_during_the_start_ends_it(serve: Serve) -> None:
    assert serve(until_ready=False).stop() == 0

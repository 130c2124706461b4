from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.contract import Namespace
from models.live_policy import QueuePolicy
from models.policy import Policy
from models.queue import ClaimedTicket, Ticket, TicketPage, TicketState
from router.clock import SystemClock
from router.degrade_queue import DegradeQueue
from router.endpoints.queue import CALLS, CLAIMED, TICKET, TICKETS
from router.running import Parts
from tests.router.asgi import speaking

_NUMBERS = count(1)


@pytest.fixture
async def spoken(tmp_path: Path) -> AsyncIterator[tuple[httpx.AsyncClient, Parts]]:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        yield client, parts


async def filed(parts: Parts, namespace: Namespace = "default", intent: str = "greet", **policy: Any) -> str:
    """The name of a new ticket."""
    queue = DegradeQueue(parts["store"].tickets, Policy, SystemClock(), lambda: f"{next(_NUMBERS):08}")
    ticket = await queue.put(
        request_json=json.dumps({"intent": intent}),
        namespace=namespace,
        intent=intent,
        decision_id="d1",
        trace_id="t1",
        caller="",
        expires_at=None,
        policy=QueuePolicy(**policy),
        now_ms=time.time() * 1000,
    )
    assert ticket is not None
    return ticket.ticket


def code(response: httpx.Response) -> tuple[int, Any]:
    return response.status_code, response.json().get("code")


def test_the_documented_answers_are_those_of_the_contracts() -> None:
    assert list(TICKET["properties"]) == list(Ticket.model_fields)
    assert list(TICKETS["properties"]) == list(TicketPage.model_fields)
    assert list(CLAIMED["properties"]["tickets"]["items"]["properties"]) == list(ClaimedTicket.model_fields)
    assert TICKET["properties"]["state"]["enum"] == [state.value for state in TicketState]
    assert {f"{call.method} {call.path}" for call in CALLS} == {
        "GET /queue", "POST /queue/claim", "GET /queue/{ticket}", "POST /queue/{ticket}/settle",
    }  # fmt: skip


async def test_a_ticket_is_claimed_with_its_request_and_settled(spoken: tuple[httpx.AsyncClient, Parts]) -> None:
    client, parts = spoken
    ticket = await filed(parts)
    claimed = (await client.post("/queue/claim", json={})).json()
    assert [(each["ticket"], each["request"]) for each in claimed["tickets"]] == [(ticket, {"intent": "greet"})]
    assert 0 < claimed["claimed_until"] - time.time() * 1000 <= 60_000
    settlement = {"claim_id": claimed["claim_id"], "status": "settled", "note": "done \u0000 </b>"}
    first = await client.post(f"/queue/{ticket}/settle", json=settlement)
    again = await client.post(f"/queue/{ticket}/settle", json=settlement)
    assert (first.status_code, first.json()) == (200, again.json())
    assert (first.json()["state"], first.json()["note"]) == ("settled", "done \u0000 </b>")
    assert (await client.get(f"/queue/{ticket}")).json() == first.json()
    assert code(await client.post(f"/queue/{ticket}/settle", json={**settlement, "status": "returned"})) == (
        409,
        "conflict",
    )


async def test_tickets_are_listed_by_state_namespace_and_intent_in_pages(
    spoken: tuple[httpx.AsyncClient, Parts],
) -> None:
    client, parts = spoken
    made = [await filed(parts, namespace, intent) for namespace in ("a/b", "c") for intent in ("greet", "订单")]
    await client.post("/queue/claim", json={"namespace": "c", "intents": ["订单"], "limit": 5, "claim_ms": 60_000})

    async def listed(**parameters: Any) -> list[str]:
        response = await client.get("/queue", params=parameters)
        assert response.status_code == 200, response.text
        return [each["ticket"] for each in response.json()["tickets"]]

    assert await listed() == made
    assert await listed(state="claimed") == [made[3]]
    assert await listed(namespace="a/b") == made[:2]
    assert await listed(intent="订单", state="waiting") == [made[1]]
    assert await listed(after=made[1], limit=1) == [made[2]]
    page = (await client.get("/queue?namespace=c&limit=1")).json()
    assert (page["n_waiting"], page["n_claimed"], page["next"]) == (1, 1, made[2])
    assert page["oldest_wait_ms"] >= 0


@pytest.mark.parametrize(
    ("method", "path", "body", "named"),
    [
        ("GET", "/queue?state=lost", None, ["state"]),
        ("GET", "/queue?limit=0", None, ["limit"]),
        ("GET", "/queue?limit=1001", None, ["limit"]),
        ("GET", "/queue?namespace=a//b", None, ["namespace"]),
        ("GET", "/queue?after=%20", None, ["after"]),
        ("GET", "/queue?intent=%00", None, ["intent"]),
        ("POST", "/queue/claim", [], [""]),
        ("POST", "/queue/claim", {"limit": 101}, ["limit"]),
        ("POST", "/queue/claim", {"claim_ms": 0, "intents": [], "x": 1}, ["intents", "claim_ms", "x"]),
        ("POST", "/queue/t/settle", {"status": "lost"}, ["claim_id", "status"]),
        ("POST", "/queue/t/settle", {"claim_id": "c", "status": "settled", "note": "x" * 2001}, ["note"]),
    ],
)
async def test_what_does_not_fit_is_named(
    spoken: tuple[httpx.AsyncClient, Parts], method: str, path: str, body: Any, named: list[str]
) -> None:
    response = await spoken[0].request(method, path, json=body)
    assert code(response) == (422, "invalid_request")
    assert [each["path"] for each in response.json()["errors"]] == named


async def test_a_ticket_that_is_not_there_is_404(spoken: tuple[httpx.AsyncClient, Parts]) -> None:
    client, _ = spoken
    settlement = {"claim_id": "c", "status": "settled"}
    for name in ("none", "%C3%A9", "%00", "%ff", "x" * 200):
        assert code(await client.get(f"/queue/{name}")) == (404, "not_found")
        assert code(await client.post(f"/queue/{name}/settle", json=settlement)) == (404, "not_found")


async def test_claiming_is_no_ticket(spoken: tuple[httpx.AsyncClient, Parts]) -> None:
    response = await spoken[0].get("/queue/claim")
    assert (code(response), response.headers["Allow"]) == ((405, "method_not_allowed"), "POST")

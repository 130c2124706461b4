"""The degrade queue over HTTP: what was acknowledged outlives a kill, and every key sees what is its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from models.live_policy import QueuePolicy
from models.policy import Policy
from router.clock import SystemClock
from router.degrade_queue import DegradeQueue
from router.random_ids import random_ids
from router.stores.open import open_store
from tests.service.conftest import Keyed, Serve
from tests.service.server import SHOP_NAMESPACE, SHOP_OPTIONS, Server, environment, problem

CANCEL = '{"intent":"cancel_booking","namespace":"%s","step_index":%d}'


def file(server: Server, n_tickets: int, caller: str = "", namespace: str = SHOP_NAMESPACE) -> list[str]:
    """Put tickets into the server's store, as it would."""

    async def put() -> list[str]:
        clock = SystemClock()
        async with open_store(server.store) as store:
            queue = DegradeQueue(store.tickets, Policy, clock, random_ids(clock).new)
            made = [
                await queue.put(
                    request_json=CANCEL % (namespace, number),
                    namespace=namespace,
                    intent="cancel_booking",
                    decision_id=f"d{number}",
                    trace_id=f"t{number}",
                    caller=caller,
                    expires_at=None,
                    policy=QueuePolicy(),
                    now_ms=clock.now_ms(),
                )
                for number in range(n_tickets)
            ]
        return [each.ticket for each in made if each is not None]

    return asyncio.run(put())


def claim(client: httpx.Client, limit: int = 1, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    body = {"namespace": SHOP_NAMESPACE, "limit": limit, **fields}
    response = client.post("/queue/claim", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve(*SHOP_OPTIONS)


def test_a_worker_serves_what_waited_by_sending_the_request_again(server: Server) -> None:
    (ticket,) = file(server, 1)
    claimed = claim(server.client)
    assert [each["ticket"] for each in claimed["tickets"]] == [ticket]
    answer = server.client.post("/route", json=claimed["tickets"][0]["request"]).json()
    assert (answer["action"], answer["intent"]["name"]) == ("invoke", "cancel_booking")
    settlement = {"claim_id": claimed["claim_id"], "status": "settled", "note": answer["decision_id"]}
    assert server.client.post(f"/queue/{ticket}/settle", json=settlement).json()["state"] == "settled"


def test_a_killed_server_loses_no_claim_and_no_settlement_that_it_answered(server: Server) -> None:
    tickets = file(server, 60)
    known: dict[str, str] = dict.fromkeys(tickets, "waiting")
    claims: dict[str, str] = {}
    enough = threading.Event()

    def work(worker: int) -> None:
        statuses = ("settled", "given_up", "returned")
        for number in range(100):
            try:
                taken = server.client.post("/queue/claim", json={"namespace": SHOP_NAMESPACE, "claim_ms": 3_600_000})
                claim_id, (ticket,) = taken.json()["claim_id"], taken.json()["tickets"]
                known[ticket["ticket"]], claims[ticket["ticket"]] = "claimed", claim_id
                if number % 2:
                    status = statuses[(number // 2 + worker) % 3]
                    path = f"/queue/{ticket['ticket']}/settle"
                    # until it is answered, either may be; what was returned another worker may have by then
                    known[ticket["ticket"]] = "unsure"
                    answer = server.client.post(path, json={"claim_id": claim_id, "status": status}).json()
                    if status != "returned":
                        known[ticket["ticket"]] = answer["state"]
            except (httpx.TransportError, ValueError):
                return
            if list(known.values()).count("settled") >= 3:
                enough.set()

    with ThreadPoolExecutor(4) as pool:
        for worker in range(4):
            pool.submit(work, worker)
        assert enough.wait(60)
        server.kill()
    server.start()
    found = {each["ticket"]: each for each in server.client.get("/queue?limit=1000").json()["tickets"]}
    assert set(tickets) <= set(found)
    states = {ticket: found[ticket]["state"] for ticket in tickets}
    # a claim under way at the kill may have been made without an answer
    sure = {ticket: state for ticket, state in known.items() if state in ("claimed", "settled", "given_up")}
    assert {ticket: states[ticket] for ticket in sure} == sure
    assert all(states[ticket] in ("waiting", "claimed") for ticket, state in known.items() if state == "waiting")
    held = next(ticket for ticket, state in sure.items() if state == "claimed")
    settlement = {"claim_id": claims[held], "status": "settled"}
    assert server.client.post(f"/queue/{held}/settle", json=settlement).json()["state"] == "settled"


PUTTING = """
import asyncio, sys
from models.live_policy import QueuePolicy
from models.policy import Policy
from router.clock import SystemClock
from router.degrade_queue import DegradeQueue
from router.random_ids import random_ids
from router.stores.open import open_store

async def put(queue, clock):
    while True:
        ticket = await queue.put(request_json="{}", namespace="killed", intent="i", decision_id="d", trace_id="t",
            caller="", expires_at=None, policy=QueuePolicy(), now_ms=clock.now_ms())
        sys.stdout.write(ticket.ticket + "\\n")
        sys.stdout.flush()

async def main():
    clock = SystemClock()
    async with open_store(sys.argv[1]) as store:
        queue = DegradeQueue(store.tickets, Policy, clock, random_ids(clock).new)
        await asyncio.gather(*(put(queue, clock) for _ in range(16)))

asyncio.run(main())
"""


def test_a_process_that_is_killed_while_it_puts_loses_no_ticket_that_it_gave(server: Server) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PUTTING, server.store], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        given = [process.stdout.readline() for _ in range(200)]
        process.kill()
        # what was written before the end, the last line perhaps in part
        given += process.stdout.readlines()
    tickets = {line.strip() for line in given if line.endswith("\n")}
    stored: set[str] = set()
    after = ""
    while after is not None:
        parameters: dict[str, str | int] = {"namespace": "killed", "limit": 1000, **({"after": after} if after else {})}
        page = server.client.get("/queue", params=parameters).json()
        stored |= {each["ticket"] for each in page["tickets"]}
        after = page["next"]
    assert len(tickets) >= 200
    assert tickets <= stored


def test_workers_that_claim_at_once_never_get_the_same(server: Server) -> None:
    tickets = file(server, 40, namespace="crowd")
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(lambda _: claim(server.client, 3, namespace="crowd"), range(16)))
    taken = [each["ticket"] for one in claimed for each in one["tickets"]]
    assert sorted(taken) == sorted(tickets)


def test_who_may_do_what(keyed: Keyed) -> None:
    client, worker = keyed.client, keyed.server.key("worker", "router:queue")
    (ticket,) = file(keyed.server, 1, caller="one")
    keyed.server.wait(lambda: client.get("/queue").status_code == 401, "no key is needed")
    assert keyed.statuses("GET", "/queue") == [401, 403, 403, 200, 200]
    assert keyed.statuses("GET", f"/queue/{ticket}") == [401, 200, 404, 200, 200]
    assert keyed.statuses("POST", "/queue/claim", content=b"not json") == [401, 403, 403, 403, 400]
    assert keyed.statuses("POST", f"/queue/{ticket}/settle", content=b"not json") == [401, 403, 403, 403, 400]
    assert client.get(f"/queue/{ticket}", headers=worker).status_code == 200
    problem(client.get("/queue", headers=worker), 403, "forbidden")
    claimed = claim(client, headers=worker)
    assert [each["claimed_by"] for each in claimed["tickets"]] == ["worker"]
    assert client.get(f"/queue/{ticket}", headers=keyed.one).json()["state"] == "claimed"
    settlement = {"claim_id": claimed["claim_id"], "status": "settled"}
    problem(client.post(f"/queue/{ticket}/settle", json={**settlement, "claim_id": "other"}, headers=worker),
            409, "conflict")  # fmt: skip
    assert client.post(f"/queue/{ticket}/settle", json=settlement, headers=worker).status_code == 200

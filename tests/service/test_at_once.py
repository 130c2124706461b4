"""What arrives at the same instant, and what a kill leaves: exactly as much passes as may, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.service.conftest import Serve, Stage
from tests.service.scene import CALLER, DECIDED, at_once


async def test_of_64_at_once_exactly_as_many_pass_as_have_a_place(stage: Stage) -> None:
    scene = stage("places")
    scene.agent("a", max_inflight=5)
    caller = await scene.caller()
    await caller.ask(**scene.request())
    crowd = await at_once(64, lambda: caller.decide(**scene.request("all at once")))
    assert Counter(each["reason"] for each in crowd) == {"only_candidate": 5, "at_capacity": 59}
    passed = [each for each in crowd if each["action"] == "invoke"]
    assert {each["target"]["agent_id"] for each in passed} == {"a"}
    assert scene.health("a")["in_flight"] == 5
    for each in passed:
        await caller.carry_out(each, {"text": "all at once"})
    assert scene.health("a")["in_flight"] == 0
    assert scene.told(passed[0]) == [*DECIDED, "invoke:succeeded"]
    again = await at_once(64, lambda: caller.decide(**scene.request("once more")))
    assert Counter(each["action"] for each in again) == {"invoke": 5, "fallback": 59}
    assert scene.breakers() == {"a": ("closed", 6, 0)}
    for each in again:
        if each["action"] == "invoke":
            await caller.tell(each["decision_id"], 1, status="cancelled")
    batch = [scene.request("in one", caller={"agent_id": CALLER})] * 64
    answers = scene.server.client.post("/route/batch", json=batch).json()
    assert Counter(each["reason"] for each in answers) == {"only_candidate": 5, "at_capacity": 59}
    assert scene.health("a")["in_flight"] == 5


@pytest.mark.parametrize("over", ["degrade", "queue", "reject"])
async def test_of_64_at_once_exactly_as_many_pass_as_the_callers_own_quota_has(stage: Stage, over: str) -> None:
    name = f"own-{over}"
    quota = {"per_caller": True, "namespace": name, "max_calls": 7, "window_ms": 600_000, "over": over}
    scene = stage(name, quotas=[quota])
    scene.agent("a")
    async with httpx.AsyncClient(base_url=scene.server.client.base_url, timeout=20) as router:
        body = scene.request("all at once", caller={"agent_id": CALLER})
        crowd = await at_once(64, lambda: router.post("/route", json=body))
    told = [(each.status_code, each.json().get("action"), each.json().get("reason")) for each in crowd]
    beyond = {
        "degrade": (200, "fallback", "quota"),
        "queue": (200, "queue", "queued"),
        "reject": (429, None, None),
    }[over]
    assert Counter(told) == {(200, "invoke", "only_candidate"): 7, beyond: 57}
    waits_s = [int(each.headers["Retry-After"]) for each in crowd if each.status_code == 429]
    assert all(590 <= wait_s <= 600 for wait_s in waits_s)
    assert len(waits_s) == (57 if over == "reject" else 0)
    tickets = scene.server.client.get(f"/queue?namespace={name}&limit=1000").json()["tickets"]
    assert len(tickets) == (57 if over == "queue" else 0)
    other = await scene.caller("another")
    assert (await other.decide(**scene.request()))["action"] == "invoke"


async def test_of_64_at_once_exactly_as_many_pass_as_the_quota_has(stage: Stage) -> None:
    quota = {"agent": "a", "namespace": "quota", "max_calls": 7, "window_ms": 600_000}
    scene = stage("quota", quotas=[quota])
    agent = scene.agent("a")
    caller = await scene.caller()
    crowd = await at_once(64, lambda: caller.decide(**scene.request("all at once")))
    assert Counter(each["reason"] for each in crowd) == {"only_candidate": 7, "quota": 57}
    passed = [each for each in crowd if each["action"] == "invoke"]
    refused = next(each for each in crowd if each["action"] == "fallback")
    assert scene.told(refused) == ["request", "read:sure", "route:fallback", "response:fallback"]
    # a call that is taken back is refunded, once; those that were made are not
    for _ in range(2):
        await caller.tell(passed[0]["decision_id"], 1, status="cancelled")
    for each in passed[1:]:
        await caller.carry_out(each, {"text": "all at once"})
    assert len(agent.asked) == 6
    again = await at_once(64, lambda: caller.decide(**scene.request("once more")))
    assert Counter(each["action"] for each in again) == {"invoke": 1, "fallback": 63}
    assert scene.breakers() == {"a": ("closed", 6, 0)}


async def test_a_killed_router_has_lost_no_outcome_that_it_acknowledged_and_holds_no_place(
    stage: Stage, serve: Serve
) -> None:
    server = serve()
    scene = stage("killed", on=server)
    scene.agent("a", max_inflight=64)
    caller = await scene.caller()
    await caller.ask(**scene.request())
    for _ in range(3):
        await caller.decide(**scene.request())
    keyed: dict[str, Any] = {
        "json": scene.request("under a key", caller={"agent_id": CALLER}),
        "headers": {"Idempotency-Key": "k"},
    }
    first = server.client.post("/route", **keyed).json()
    assert scene.health("a")["in_flight"] == 4

    posted: list[str] = []
    acknowledged: list[str] = []
    enough = asyncio.Event()

    async def work() -> None:
        with suppress(httpx.TransportError):
            while True:
                decision = await caller.decide(**scene.request())
                posted.append(decision["decision_id"])
                await caller.tell(posted[-1], 1, status="succeeded", tokens=3)
                acknowledged.append(decision["decision_id"])
                if len(acknowledged) >= 200:
                    enough.set()

    workers = [asyncio.ensure_future(work()) for _ in range(16)]
    async with asyncio.timeout(30):
        await enough.wait()
    server.kill()
    await asyncio.gather(*workers)

    server.start()
    assert scene.health("a")["in_flight"] == 0
    assert scene.breakers() == {}
    again = server.client.post("/route", **keyed)
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first, "true")
    assert scene.health("a")["in_flight"] == 0
    outcomes = [{"decision_id": each, "attempt": 1, "status": "succeeded", "tokens": 3} for each in posted]
    told = server.client.post("/feedback", json=outcomes).json()
    effects = {one: receipt.get("effect", "unknown") for one, receipt in zip(posted, told, strict=True)}
    assert {effects[each] for each in acknowledged} == {"duplicate"}
    # of those without an answer anything may be stored, of each decision as much as was written in its order
    assert {effects[each] for each in posted if each not in acknowledged} <= {"duplicate", "late", "unknown"}
    n_known = sum(effect != "unknown" for effect in effects.values())
    [used] = server.client.get("/usage?group=agent&namespace=killed&agent=a").json()["usage"]
    assert (used["n_calls"], used["n_succeeded"], used["tokens"]) == (n_known + 1, n_known + 1, 3 * n_known)
    assert used["n_decisions"] >= n_known
    late = await (await scene.caller()).tell(first["decision_id"], 1, status="succeeded")
    assert late["effect"] == "late"
    assert scene.health("a")["in_flight"] == 0
    assert scene.told(first) == [*DECIDED, "invoke:succeeded"]

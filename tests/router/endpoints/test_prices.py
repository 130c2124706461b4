"""What a call costs is the price that its agent's card had when it was decided, however late its outcomes come."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from router.running import Parts
from tests.router.asgi import speaking

TEXT = {"examples": ["help me"], "input_schema": {}, "output_schema": {}}
OWN = {"caller_choice": {"agent_id": "desk"}}
UNKNOWN_VERSION = {"caller_choice": {"agent_id": "far", "namespace": "elsewhere"}}


async def put(client: httpx.AsyncClient, per_call_usd: float | None, agent_id: str = "desk", **fields: Any) -> None:
    """A card with a price per call, and 10 times of it per 1000 tokens."""
    price = None if per_call_usd is None else {"per_call_usd": per_call_usd, "per_1k_tokens_usd": 10 * per_call_usd}
    card = {"endpoint": "http://desk:1/call", "price": price, "capabilities": [{"intent": "help", **TEXT}], **fields}
    response = await client.put(f"/agents/{agent_id}", json=card)
    assert response.is_success, response.text


async def decided(client: httpx.AsyncClient, **fields: Any) -> str:
    decision = (await client.post("/route", json={"intent": "help", **fields})).json()
    assert decision["action"] == "invoke", decision
    decision_id: str = decision["decision_id"]
    return decision_id


async def spent(client: httpx.AsyncClient, agent_id: str = "desk") -> float:
    [row] = (await client.get("/usage", params={"group": "agent", "agent": agent_id})).json()["usage"]
    cost_usd: float = row["cost_usd"]
    return cost_usd


async def told(client: httpx.AsyncClient, parts: Parts, decision_id: str, is_late: bool, **fields: Any) -> None:
    """Post an outcome; a late one finds its decision in the record alone."""
    if is_late:
        await parts["journal"].flush(5000)
        parts["live"].live.opened._decisions.clear()
    outcome = {"decision_id": decision_id, "status": "succeeded", "tokens": 500, **fields}
    response = await client.post("/feedback", json=outcome)
    assert response.status_code == 202, response.text
    await parts["journal"].flush(5000)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("fields", [{}, OWN], ids=["routed", "own choice"])
@pytest.mark.parametrize("now", [1.0, None], ids=["dearer", "without a price"])
async def test_outcomes_and_amendments_take_the_price_of_the_decision(
    tmp_path: Path, fields: Any, is_late: bool, now: float | None
) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        await put(client, 0.02)
        first, second = await decided(client, **fields), await decided(client, **fields)
        await told(client, parts, first, is_late)
        assert await spent(client) == pytest.approx(0.02 + 0.1)
        await put(client, now)
        await told(client, parts, first, is_late, quality=0.5)
        assert await spent(client) == pytest.approx(0.12)
        await told(client, parts, first, is_late, tokens=1000)
        assert await spent(client) == pytest.approx(0.02 + 0.2)
        await told(client, parts, second, is_late, tokens=0)
        assert await spent(client) == pytest.approx(0.22 + 0.02)
        await told(client, parts, first, is_late, cost_usd=0.5)
        assert await spent(client) == pytest.approx(0.5 + 0.02)


@pytest.mark.parametrize("is_late", [False, True])
async def test_what_had_no_price_costs_nothing_whatever_its_card_says_now(tmp_path: Path, is_late: bool) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        await put(client, None)
        decision_id = await decided(client)
        await put(client, 0.02)
        await told(client, parts, decision_id, is_late)
        assert await spent(client) == 0


@pytest.mark.parametrize("is_late", [False, True])
async def test_each_step_of_a_plan_has_the_price_of_its_agent(tmp_path: Path, is_late: bool) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        await put(client, 0.02, backup_agent_id="spare", retry={"max_attempts": 0})
        await put(client, 0.03, "spare")
        decision_id = await decided(client, exclude=[], target_agent="desk")
        for agent_id in ("desk", "spare"):
            await put(client, 7.0, agent_id)
        await told(client, parts, decision_id, is_late, status="unreachable", tokens=0)
        await told(client, parts, decision_id, is_late, attempt=2, tokens=0)
        assert await spent(client) == pytest.approx(0.02)
        assert await spent(client, "spare") == pytest.approx(0.03)


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_choice_that_names_no_version_is_the_version_of_its_time(tmp_path: Path, is_late: bool) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        await put(client, 1.0)
        await put(client, 0.02, "far", namespace="elsewhere", version="1.0.0")
        decision_id = await decided(client, **UNKNOWN_VERSION)
        await put(client, 5.0, "far", namespace="elsewhere", version="2.0.0")
        await told(client, parts, decision_id, is_late)
        assert await spent(client, "far") == pytest.approx(0.12)
        record = (await client.get(f"/decisions/{decision_id}")).json()
        assert record["inputs"]["prices"] == {"elsewhere/far/1.0.0": [0.02, 0.2]}
        replayed = (await client.post(f"/decisions/{decision_id}/replay")).json()
        assert replayed["verdict"] == "equal", replayed


async def test_a_price_that_was_altered_in_the_record_is_found_by_name(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await parts["readiness"].ready.wait()
        await put(client, 0.02)
        decision_id = await decided(client)
        assert (await client.post(f"/decisions/{decision_id}/replay")).json()["verdict"] == "equal"
        await parts["journal"].flush(5000)
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
            connection.execute("UPDATE decisions SET inputs = replace(inputs, '[0.02,0.2]', '[0.01,0.2]')")
        replayed = (await client.post(f"/decisions/{decision_id}/replay")).json()
        assert (replayed["verdict"], replayed["part"]) == ("differs", "live")

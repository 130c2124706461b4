"""Who could not see a record does not hear that it was erased, whichever call is asked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from router.running import Parts
from tests.router.asgi import keyed, speaking
from tests.router.endpoints.desk import CARD

SESSION, AGENT = "session-4711", "desk-4711"
KEYS: dict[str, list[str]] = {
    "owner": [], "other": [], "narrow": [], "reader": ["router:read"], "admin": ["router:admin"],
}  # fmt: skip
Headers = dict[str, dict[str, str]]


async def ready(parts: Parts, client: httpx.AsyncClient) -> Headers:
    """A card, and the header of each key."""
    await parts["readiness"].ready.wait()
    assert (await client.put("/agents/desk", json=CARD)).status_code == 201
    return await keyed(parts, KEYS, {"narrow": ["elsewhere"]})


async def decided(client: httpx.AsyncClient, headers: Headers, **fields: Any) -> str:
    """The id of a decision of the key `owner`."""
    made = await client.post("/route", json={"intent": "help", **fields}, headers=headers["owner"])
    decision_id: str = made.json()["decision_id"]
    return decision_id


async def told(client: httpx.AsyncClient, decision_id: str, key: dict[str, str]) -> list[Any]:
    """What each call that takes a decision's id answers, without the id itself."""
    outcome = {"decision_id": decision_id, "status": "succeeded"}
    answers = [
        await client.get(f"/decisions/{decision_id}", headers=key),
        await client.post(f"/decisions/{decision_id}/replay", headers=key),
        await client.post("/feedback", json=outcome, headers=key),
        await client.post("/feedback", json=[outcome], headers=key),
        await client.get(f"/traces/trace-of-{decision_id}", headers=key),
    ]
    return [(each.status_code, each.text.replace(decision_id, "ID")) for each in answers]


def codes(answers: list[Any]) -> list[Any]:
    """What the first three say, in short."""
    return [next(word for word in ("erased", "not_found") if word in text) for _, text in answers[:3]]


async def erased_of(client: httpx.AsyncClient, name: str, headers: Headers, by: str = "admin") -> str:
    """The id of a decision of the key `owner` that was erased with all of a subject."""
    decision_id = await decided(client, headers, caller={"session_id": SESSION, "agent_id": AGENT})
    assert (await client.get(f"/decisions/{decision_id}", headers=headers["owner"])).status_code == 200
    answer = await client.delete(f"/subjects/{name}", headers=headers[by])
    assert answer.json()["erased"]["decisions"] == 1
    return decision_id


@pytest.mark.parametrize("name", [SESSION, AGENT, "owner"])
async def test_of_an_erased_record_others_are_told_what_they_are_of_one_that_never_was(
    tmp_path: Path, name: str
) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        headers = await ready(parts, client)
        decision_id = await erased_of(client, name, headers)
        for key in ("other", "narrow"):
            answers = await told(client, decision_id, headers[key])
            assert answers == await told(client, "never-made", headers[key])
            assert codes(answers) == ["not_found"] * 3
        assert codes(await told(client, decision_id, headers["admin"])) == ["erased"] * 3
        assert codes(await told(client, decision_id, headers["reader"])) == ["erased", "erased", "not_found"]


@pytest.mark.parametrize(("name", "by"), [(SESSION, "owner"), (SESSION, "admin"), (AGENT, "owner"), (AGENT, "admin")])
async def test_who_asked_is_told_that_it_was_erased(tmp_path: Path, name: str, by: str) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        headers = await ready(parts, client)
        decision_id = await erased_of(client, name, headers, by)
        answers = await told(client, decision_id, headers["owner"])
        assert codes(answers) == ["erased"] * 3
        assert [status for status, _ in answers] == [410, 200, 410, 202, 404]


@pytest.mark.parametrize("by", ["owner", "admin"])
async def test_a_key_whose_own_name_was_erased_is_told_nothing_any_more(tmp_path: Path, by: str) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        headers = await ready(parts, client)
        decision_id = await erased_of(client, "owner", headers, by)
        assert await told(client, decision_id, headers["owner"]) == await told(client, "never-made", headers["owner"])
        [seal] = [seal for seal, _ in await parts["store"].seals.page(0, 10)]
        assert (seal.erased_at is not None, seal.caller) == (True, None)


async def test_of_a_record_dropped_at_its_age_only_its_key_and_readers_hear(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        headers = await ready(parts, client)
        decision_id = await decided(client, headers)
        await parts["journal"].flush(5000)
        assert await parts["store"].retention.drop_decisions(2**53, 2**53, 10) == 1
        statuses = {
            name: (await client.get(f"/decisions/{decision_id}", headers=headers[name])).status_code for name in KEYS
        }
        assert statuses == {"owner": 410, "other": 404, "narrow": 404, "reader": 410, "admin": 410}


async def test_a_record_gone_without_a_note_is_told_to_readers_alone(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        headers = await ready(parts, client)
        decision_id = await decided(client, headers)
        await parts["journal"].flush(5000)
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
            connection.execute("DELETE FROM decisions")
        replayed = [await client.post(f"/decisions/{decision_id}/replay", headers=headers[name]) for name in KEYS]
        assert [each.status_code for each in replayed] == [404, 404, 404, 200, 200]
        assert replayed[-1].json()["part"] == "record"

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from models.events import WeightRow
from models.learning_policy import FreezePolicy
from models.subject import Erased
from router.endpoints.subjects import CALLS, ERASED, EXPORT
from router.running import Parts
from router.seals import GENESIS, first_break
from tests.router.asgi import keyed, speaking

UTTERANCE = "give me my money back for the violet chair"
SESSION, AGENT = "session-4711", "desk-4711"
CARD = {
    "version": "1.0.0",
    "endpoint": "http://refunds.internal/invoke",
    "capabilities": [{"intent": "refunds", "examples": [UTTERANCE], "input_schema": "text", "output_schema": "text"}],
}
CONFIGURATION = {"keys", "cards", "policies", "generations", "vectors"}


def holding(folder: Path, word: str) -> set[str]:
    """Tables, those of configuration left out, with a value that holds a word, be it in bytes."""
    found = set()
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in set(names) - CONFIGURATION:
            for row in connection.execute(f'SELECT * FROM "{name}"'):  # noqa: S608 - names of our own tables
                if any(word in str(value) for value in row):
                    found.add(name)
    return found


def n_in_files(folder: Path, word: str) -> int:
    """How often a word stands in the store's files, whatever they say is deleted."""
    return sum(each.read_bytes().count(word.encode()) for each in folder.glob("store.db*"))


async def ready(parts: Parts, client: httpx.AsyncClient) -> None:
    await parts["readiness"].ready.wait()
    response = await client.put("/agents/refunds", json=CARD)
    assert response.status_code == 201, response.text


async def asked(client: httpx.AsyncClient, session_id: str = SESSION, agent_id: str = AGENT, **how: Any) -> str:
    """The id of a decision with an outcome."""
    caller = {"session_id": session_id, "agent_id": agent_id}
    body = {"utterance": UTTERANCE, "payload": {"text": UTTERANCE}, "caller": caller, "task_id": f"{session_id}-task"}
    decision = (
        await client.post("/route", json={**body, "global_goal_hash": "g", "trace_id": session_id}, **how)
    ).json()
    assert decision["action"] == "invoke", decision
    outcome = {"decision_id": decision["decision_id"], "status": "failed", "correct_intent": "other"}
    told = await client.post("/feedback", json=outcome, **how)
    assert told.status_code == 202, told.text
    decision_id: str = decision["decision_id"]
    return decision_id


@pytest.mark.parametrize("name", [SESSION, AGENT])
async def test_what_is_erased_is_gone_from_store_and_memory_and_said_so(tmp_path: Path, name: str) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        ids = [await asked(client) for _ in range(3)]
        other = await asked(client, "session-8", "desk-8")
        await parts["live"].keeper.take("before")
        assert {"decisions"} < holding(tmp_path, name)

        answer = await client.delete(f"/subjects/{name}")
        assert answer.status_code == 200, answer.text
        jsonschema_rs.validate(ERASED, answer.json())
        erased = answer.json()["erased"]
        assert (answer.json()["complete"], erased["decisions"], erased["outcomes"]) == (True, 3, 3)
        assert erased["events"] > 0

        assert holding(tmp_path, name) == set()
        for decision_id in ids:
            for response in (
                await client.get(f"/decisions/{decision_id}"),
                await client.post("/feedback", json={"decision_id": decision_id, "status": "succeeded"}),
            ):
                assert (response.status_code, response.json()["code"]) == (410, "erased")
        [problem] = (await client.post("/feedback", json=[{"decision_id": ids[0], "status": "failed"}])).json()
        assert problem["code"] == "erased"
        assert (await client.get(f"/decisions/{other}")).status_code == 200

        seals = await parts["store"].seals.page(0, 100)
        assert first_break((0, GENESIS), seals)[1] is None
        assert [seal.decision_id for seal, _ in seals if seal.erased_at is not None] == ids
        again = (await client.delete(f"/subjects/{name}")).json()
        assert set(again["erased"].values()) == {0}
        assert (await client.get(f"/subjects/{name}")).json()["decisions"] == []


async def test_the_file_holds_nothing_of_the_last_one_who_said_it(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        for _ in range(5):
            await asked(client)
        await client.delete("/agents/refunds?namespace=default")
        answer = await client.delete(f"/subjects/{AGENT}")
        assert answer.json()["complete"] is True
        assert [table for table in holding(tmp_path, UTTERANCE) if table != "meta"] == []
        for name in (SESSION, AGENT):
            assert n_in_files(tmp_path, name) == 0


async def test_posteriors_stay_as_they_are_when_their_caller_is_erased(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        for _ in range(4):
            await asked(client)
        learner = parts["live"].learning.learner
        agent = ("default", "refunds", "1.0.0")
        before = learner.evidence_of(agent, "refunds")
        assert before[0] > 0
        version = await parts["live"].keeper.take("before")
        await client.delete(f"/subjects/{AGENT}")
        assert learner.evidence_of(agent, "refunds") == before
        found = await parts["store"].weights.snapshot(version, 0)
        assert found is not None
        weights, _ = await parts["store"].weights.load()
        assert {row.caller for row in weights} == {""}
        learner.restore(found.body, 0)
        assert learner.evidence_of(agent, "refunds") == before
        assert {row.caller for row in learner.rows(0) if isinstance(row, WeightRow)} == {""}


async def test_an_export_holds_all_of_a_session_and_nothing_else(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        ids = sorted([await asked(client) for _ in range(3)])
        await asked(client, "session-8", "desk-8")
        first = (await client.get(f"/subjects/{SESSION}?limit=2")).json()
        jsonschema_rs.validate(EXPORT, first)
        rest = (await client.get(f"/subjects/{SESSION}?limit=2&after={first['next']}")).json()
        told = first["decisions"] + rest["decisions"]
        assert ([each["decision_id"] for each in told], rest["next"]) == (ids, None)
        record = (await client.get(f"/decisions/{ids[0]}")).json()
        assert {name: told[0][name] for name in ("request", "answer", "inputs")} == {
            name: record[name] for name in ("request", "answer", "inputs")
        }
        assert [each["body"]["status"] for each in told[0]["outcomes"]] == ["failed"]
        assert "invoke" in [each["event_type"] for each in told[0]["events"]]
        of_agent = (await client.get(f"/subjects/{AGENT}")).json()
        assert [row["n_decisions"] for row in of_agent["usage"]] == [3]
        assert [row["n_outcomes"] > 0 for row in of_agent["evidence"]] == [True]
        assert (first["usage"], first["evidence"], first["truncated"]) == ([], [], False)


async def test_a_key_reaches_what_was_asked_with_it_and_an_admin_all(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        headers = await keyed(parts, {"one": [], "two": [], "admin": ["router:admin"]})
        mine = await asked(client, headers=headers["one"])
        others = await asked(client, headers=headers["two"])
        assert (await client.get(f"/subjects/{SESSION}")).status_code == 401

        def ids(response: httpx.Response) -> list[str]:
            return [each["decision_id"] for each in response.json()["decisions"]]

        assert ids(await client.get(f"/subjects/{SESSION}", headers=headers["one"])) == [mine]
        assert ids(await client.get(f"/subjects/{SESSION}", headers=headers["admin"])) == sorted([mine, others])
        answer = await client.delete(f"/subjects/{AGENT}", headers=headers["one"])
        assert (answer.json()["erased"]["decisions"], answer.json()["erased"]["usage"]) == (1, 0)
        assert (await client.get(f"/decisions/{others}", headers=headers["two"])).status_code == 200
        assert ids(await client.get("/subjects/two", headers=headers["two"])) == [others]
        assert (await client.delete("/subjects/two", headers=headers["two"])).json()["erased"]["decisions"] == 1


async def test_a_key_is_not_trusted_again_because_it_erases_itself(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        headers = await keyed(parts, {"forger": [], "admin": ["router:admin"]})
        watch, policy = parts["live"].learning.watch, FreezePolicy(window=20)
        for _ in range(10):
            watch.told("forger", is_first=False, is_odd=True, policy=policy)

        for name in ("forger", AGENT):
            assert (await client.delete(f"/subjects/{name}", headers=headers["forger"])).json()["complete"]
        assert watch.distrusted == ["forger"]
        await client.delete("/subjects/forger", headers=headers["admin"])
        assert watch.distrusted == []


@pytest.mark.parametrize("name", ["a%2Fb", "%E8%AE%A2%E5%8D%95%20%3F"])
async def test_a_session_may_be_called_anything(tmp_path: Path, name: str) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        session_id = httpx.URL(f"http://x/{name}").path[1:]
        caller = {"session_id": session_id}
        await client.post("/route", json={"intent": "refunds", "caller": caller})
        export = (await client.get(f"/subjects/{name}")).json()
        assert (export["subject"], len(export["decisions"])) == (session_id, 1)
        assert (await client.delete(f"/subjects/{name}")).json()["erased"]["decisions"] == 1


async def test_what_cannot_be_a_name_is_refused(tmp_path: Path) -> None:
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await ready(parts, client)
        for response in (await client.get(f"/subjects/{'x' * 257}"), await client.delete("/subjects/")):
            assert (response.status_code, json.loads(response.content)["errors"][0]["path"]) == (
                422,
                "session_or_caller",
            )


def test_the_documented_answers_are_those_of_the_contracts() -> None:
    assert list(ERASED["properties"]["erased"]["properties"]) == list(Erased._fields)  # type: ignore[index]
    assert {f"{call.method} {call.path}" for call in CALLS} == {
        "GET /subjects/{session_or_caller}",
        "DELETE /subjects/{session_or_caller}",
    }

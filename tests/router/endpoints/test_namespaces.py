"""Namespaces in the query of every call: impossible ones are refused, those that merely do not exist hold nothing."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest

from router.app import CALLS
from router.endpoints.call import Call
from tests.router.asgi import speaking
from tests.router.endpoints.desk import CARD

ASKING = [call for call in CALLS if "namespace" in call.query_names]
LISTS = [call for call in ASKING if call.method == "GET" and "{" not in call.path]
WRONG = ["", " ", "a b", "/a", "a//b", "a/", "-", "x" * 201, "café", "a\nb"]
Answers = dict[tuple[str, str], httpx.Response]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """(operation, namespace) → what is answered where there is one agent, with a decision and an outcome."""

    async def ask() -> Answers:
        found: Answers = {}
        async with speaking(tmp_path_factory.mktemp("names"), classifier=False) as (client, parts):
            await parts["readiness"].ready.wait()
            await client.put("/agents/desk", json=CARD)
            decided = (await client.post("/route", json={"intent": "help", "utterance": "help me"})).json()
            outcome = {"decision_id": decided["decision_id"], "status": "failed", "correct_intent": "other"}
            assert (await client.post("/feedback", json=outcome)).status_code == 202
            await parts["journal"].flush(5000)
            for call in ASKING:
                path = re.sub(r"\{\w+\}", "desk", call.path)
                body = {"digest": "0" * 64} if call.operation_id == "post_heartbeat" else CARD
                for namespace in (*WRONG, "not/there", "default"):
                    if call.method == "GET" or namespace in WRONG:
                        response = await client.request(
                            call.method, path, params={"namespace": namespace}, json=body if call.body else None
                        )
                        found[call.operation_id, namespace] = response
            assert (await client.get("/agents/desk")).status_code == 200
        return found

    return asyncio.run(ask())


def test_all_lists_by_namespace_are_looked_at() -> None:
    assert {call.operation_id for call in LISTS} == {
        "list_agents", "get_usage", "get_weights", "list_tickets", "list_reviews",
    }  # fmt: skip


@pytest.mark.parametrize("namespace", WRONG)
@pytest.mark.parametrize("call", ASKING, ids=lambda call: call.operation_id)
def test_a_namespace_that_can_never_be_is_refused_with_what_one_looks_like(
    call: Call, namespace: str, answers: Answers
) -> None:
    response = answers[call.operation_id, namespace]
    assert response.status_code == 422, response.text
    [error] = response.json()["errors"]
    assert error["path"] == "namespace"
    wanted = (
        "more than 200" if len(namespace) > 200 else "no namespace such as prod/commerce: letters, digits and . _ -"
    )
    assert wanted in error["message"]


@pytest.mark.parametrize("call", LISTS, ids=lambda call: call.operation_id)
def test_a_namespace_that_does_not_exist_gives_an_empty_list(call: Call, answers: Answers) -> None:
    response = answers[call.operation_id, "not/there"]
    assert response.status_code == 200
    name = {"get_usage": "usage", "get_weights": "agents", "list_tickets": "tickets", "list_reviews": "reviews"}
    assert response.json()[name.get(call.operation_id, "agents")] == []
    if call.operation_id != "list_tickets":
        assert answers[call.operation_id, "default"].json()[name.get(call.operation_id, "agents")] != []

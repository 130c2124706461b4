"""`/policy` over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.service.conftest import Keyed, Serve
from tests.service.server import SHOP_CARDS, SHOP_NAMESPACE, Server, paths_of, problem

OLD = {"intent": "deposit_status", "namespace": SHOP_NAMESPACE}


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve(*SHOP_CARDS)


@pytest.fixture
def client(server: Server) -> httpx.Client:
    return server.client


def put(client: httpx.Client, policy: dict[str, Any]) -> int:
    response = client.put("/policy", json=policy)
    assert response.status_code == 200, response.text
    generation: int = response.json()["generation"]
    return generation


def test_a_policy_is_in_force_once_it_was_answered_and_generations_rise(client: httpx.Client) -> None:
    assert client.post("/route", json=OLD).json()["target"]["agent_id"] == "deposit_desk"
    before = client.get("/policy").json()["generation"]
    generation = put(client, {"namespaces": {SHOP_NAMESPACE: {"preference": "best"}}})
    assert generation > before
    answer = client.post("/route", json=OLD).json()
    assert (answer["target"]["agent_id"], answer["generations"]["policy"]) == ("deposit_auditor", generation)
    assert put(client, {}) == generation + 1
    assert client.post("/route", json=OLD).json()["target"]["agent_id"] == "deposit_desk"


def test_what_is_read_can_be_put_again(client: httpx.Client) -> None:
    put(client, {
        "version": 10**30,
        "defaults": {"cross_namespaces": ["a", "b"], "intents": {"x": {"agents": ["y"]}}},
        "namespaces": {"n": {"cross_namespaces": {"extend_from_base": True, "items": ["c"]}}, "empty": None},
        "agents": {"y": {"weight": 2.0}},
        "rules": [{"pattern": "now|at once", "preference": "best"}],
    })  # fmt: skip
    read = client.get("/policy").json()["policy"]
    assert read["version"] == 10**30
    assert read["namespaces"]["n"]["cross_namespaces"] == {"extend_from_base": False, "items": ["a", "b", "c"]}
    put(client, read)
    assert client.get("/policy").json()["policy"] == read
    put(client, {})


@pytest.mark.parametrize(
    ("policy", "paths"),
    [
        ({"defalts": {}}, ["defalts"]),
        ({"defaults": {"preference": "cheap", "hide_denied": "no"}}, ["defaults.hide_denied", "defaults.preference"]),
        ({"rules": [{"pattern": "(", "preference": "best"}]}, ["rules[0].pattern"]),
        ({"learning": {"mode": "guess"}, "defaults": {"risk": {}}}, ["defaults.risk", "learning.mode"]),
        ({"defaults": {"cross_namespaces": ["a"]}, "namespaces": {"n": {"cross_namespaces": ["b"]}}},
         ["namespaces.n.cross_namespaces"]),
        ([], [""]),
        (7, [""]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_with_a_policy_is_named_and_the_old_one_stays(
    client: httpx.Client, policy: Any, paths: list[str]
) -> None:
    before = client.get("/policy").json()
    response = client.put("/policy", json=policy)
    assert sorted(paths_of(problem(response, 422, "policy_invalid"))) == paths
    assert client.get("/policy").json() == before


def test_a_policy_over_the_api_outlives_the_process(server: Server) -> None:
    generation = put(server.client, {"defaults": {"hide_denied": True}})
    server.kill()
    server.start()
    read = server.client.get("/policy").json()
    assert (read["generation"], read["policy"]["defaults"]["hide_denied"]) == (generation, True)


def test_a_rollback_outlives_the_process_and_restores_the_decisions(server: Server) -> None:
    best = put(server.client, {"namespaces": {SHOP_NAMESPACE: {"preference": "best"}}})
    put(server.client, {})
    assert server.client.post("/route", json=OLD).json()["target"]["agent_id"] == "deposit_desk"
    back = server.client.post("/policy/rollback")
    assert (back.status_code, back.json()["generation"], back.headers["ETag"]) == (200, best + 2, f'"{best + 2}"')
    server.kill()
    server.start()
    answer = server.client.post("/route", json=OLD).json()
    assert (answer["target"]["agent_id"], answer["generations"]["policy"]) == ("deposit_auditor", best + 2)
    put(server.client, {})


def test_of_two_who_change_the_same_policy_one_is_told(client: httpx.Client) -> None:
    tag = client.get("/policy").headers["ETag"]
    mine = client.put("/policy", json={"version": 2}, headers={"If-Match": tag})
    theirs = client.put("/policy", json={"version": 3}, headers={"If-Match": tag})
    assert mine.status_code == 200
    problem(theirs, 412, "precondition_failed")
    assert client.get("/policy").json() == mine.json()


def test_reading_needs_router_read_and_changing_router_admin(keyed: Keyed) -> None:
    assert keyed.statuses("GET", "/policy") == [401, 403, 403, 200, 200]
    policy = keyed.client.get("/policy", headers=keyed.admin).json()["policy"]
    assert keyed.statuses("PUT", "/policy", json=policy) == [401, 403, 403, 403, 200]
    # the last two policies are the same, so that others find the shop as it was
    assert keyed.statuses("POST", "/policy/rollback") == [401, 403, 403, 403, 200]

"""What is learned, over HTTP: seen, frozen, put back, and the same after a restart."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from tests.service.conftest import Keyed, Serve
from tests.service.server import Server, problem

ECHO = {"intent": "cancel_order", "caller": {"agent_id": "web"}}


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve()


def teach(client: httpx.Client, n: int, seed: int = 1) -> None:
    """Outcomes of decisions, some amended."""
    rng = random.Random(seed)
    for _ in range(n):
        decision = client.post("/route", json=ECHO).json()
        outcome = {"decision_id": decision["decision_id"], "latency_ms": 200, "cost_usd": round(rng.random(), 3)}
        for status in ("succeeded", "failed")[: 1 + (rng.random() < 0.2)]:
            assert client.post("/feedback", json={**outcome, "status": status}).status_code == 202


def weights(client: httpx.Client, **params: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/weights", params=params).raise_for_status().json()
    return found


def learned(told: dict[str, Any]) -> dict[str, Any]:
    """What a restart must not change."""
    return {name: told[name] for name in ("version", "frozen", "exponents", "agents", "mode")}


def n_outcomes(told: dict[str, Any]) -> float:
    return sum(float(each["n_outcomes"]) for agent in told["agents"] for each in agent["intents"].values())


def test_what_was_learned_is_the_same_to_the_last_bit_after_a_restart(serve: Serve) -> None:
    server = serve()
    teach(server.client, 60)
    before = weights(server.client)
    assert n_outcomes(before) == 60
    server.stop()
    server.start()
    after = weights(server.client)
    assert learned(after) == learned(before)
    teach(server.client, 1)
    assert weights(server.client)["version"] == before["version"] + 1 + (after["version"] != before["version"])


def test_what_was_learned_outlives_a_kill(serve: Serve) -> None:
    server = serve()
    teach(server.client, 20)
    before = weights(server.client)
    server.kill()
    server.start()
    assert learned(weights(server.client)) == learned(before)


def test_a_rollback_to_what_was_never_kept_is_refused(server: Server) -> None:
    client = server.client
    teach(client, 5)
    before = weights(client)
    assert before["snapshots"] == []
    problem(client.post("/weights/rollback"), 404, "not_found")
    problem(client.post("/weights/rollback", json={"version": 10**9}), 404, "not_found")
    assert weights(client) == before


def test_a_rollback_restores_what_was_kept_as_a_new_version(serve: Serve) -> None:
    server = serve()
    client = server.client
    teach(client, 10)
    # only now: a snapshot that is due in the middle of them would be of fewer
    client.put("/policy", json={"learning": {"snapshot_every": 10}}).raise_for_status()
    server.wait(lambda: weights(client)["snapshots"], "no snapshot is taken")
    client.put("/policy", json={"learning": {"snapshot_every": 500}}).raise_for_status()
    kept = weights(client)
    teach(client, 9)
    now = weights(client)
    assert n_outcomes(now) == 19
    version = now["snapshots"][0]["version"]
    back = client.post("/weights/rollback", json={"version": version}).raise_for_status().json()
    assert back["agents"] == kept["agents"]
    assert back["version"] > now["version"]
    forth = client.post("/weights/rollback", json={"version": now["version"]}).raise_for_status().json()
    assert forth["agents"] == now["agents"]
    reasons = [each["reason"] for each in forth["snapshots"]]
    assert reasons[0] == f"rollback to version {now['version']}"
    assert "before a rollback" in reasons
    server.kill()
    server.start()
    assert weights(server.client)["agents"] == now["agents"]


def test_frozen_weights_stay_as_they_are_also_after_a_restart(serve: Serve) -> None:
    server = serve()
    teach(server.client, 3)
    told = server.client.post("/weights/freeze", json={"reason": "an audit"}).raise_for_status().json()
    assert told["frozen"] == "an audit"
    server.stop()
    server.start()
    teach(server.client, 3)
    assert learned(weights(server.client)) == learned(told)
    told = server.client.post("/weights/freeze", json={"frozen": False}).raise_for_status().json()
    assert told["frozen"] is None
    teach(server.client, 3)
    assert n_outcomes(weights(server.client)) == 6


def test_an_agent_shows_what_it_declared_and_what_it_earned(server: Server) -> None:
    client = server.client
    client.post("/weights/freeze", json={"frozen": False}).raise_for_status()
    teach(client, 20, seed=3)
    name = client.post("/route", json={**ECHO, "dry_run": True}).json()["target"]["agent_id"]
    [view] = client.get(f"/agents/{name}").json()["agents"]
    found = view["earned"]["cancel_order"]
    declared = next(c["quality"] for c in view["card"]["capabilities"] if c["intent"] == "cancel_order")
    assert found["declared"] == declared
    assert 0 < found["low"] < found["quality"] < found["high"] < 1
    assert found["n_outcomes"] > 0
    assert set(view["earned"]) == set(view["routable"])


def test_weights_are_shown_of_one_namespace(server: Server) -> None:
    assert weights(server.client, namespace="nowhere")["agents"] == []
    assert {each["namespace"] for each in weights(server.client, namespace="default")["agents"]} == {"default"}
    problem(server.client.get("/weights", params={"namespace": "/"}), 422, "invalid_request")


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/weights/rollback", {"version": -1}, "version"),
        ("POST", "/weights/rollback", {"versoin": 1}, "versoin"),
        ("POST", "/weights/freeze", {"frozen": "yes"}, "frozen"),
        ("POST", "/weights/freeze", {"reason": ""}, "reason"),
    ],
)
def test_a_wrong_body_names_its_field(server: Server, method: str, path: str, body: Any, field: str) -> None:
    told = problem(server.client.request(method, path, json=body), 422, "invalid_request")
    assert [each["path"] for each in told["errors"]] == [field]


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("GET", "/weights", [401, 403, 403, 200, 200]),
        ("POST", "/weights/freeze", [401, 403, 403, 403, 200]),
        ("POST", "/weights/rollback", [401, 403, 403, 403, 404]),
    ],
)
def test_who_may_see_and_change_weights(keyed: Keyed, method: str, path: str, statuses: list[int]) -> None:
    assert keyed.statuses(method, path) == statuses


def test_a_caller_that_shadows_keeps_its_choice_and_its_outcomes_teach(serve: Serve) -> None:
    server = serve()
    client = server.client
    answer = client.post("/route", json={**ECHO, "caller_choice": {"agent_id": "concierge"}}).json()
    assert (answer["action"], answer["lease"], answer["target"]["agent_id"]) == ("invoke", None, "orders_desk")
    outcome = {"decision_id": answer["decision_id"], "status": "succeeded"}
    receipt = client.post("/feedback", json=outcome).json()
    assert (receipt["charged_to"], receipt["learned"]) == ("agent", True)
    taught = [each for each in weights(client)["agents"] if each["intents"].get("cancel_order", {}).get("n_outcomes")]
    assert [each["agent_id"] for each in taught] == ["concierge"]
    problem(client.post("/route", json={**ECHO, "caller_choice": {"agent": "x"}}), 422, "invalid_request")
    foreign = client.post("/route", json={**ECHO, "caller_choice": {"agent_id": "nobody-we-know"}}).json()
    for status, effect in (("failed", "accepted"), ("succeeded", "amended"), ("succeeded", "duplicate")):
        receipt = client.post("/feedback", json={"decision_id": foreign["decision_id"], "status": status}).json()
        assert (receipt["effect"], receipt["charged_to"], receipt["learned"]) == (effect, "nobody", False)

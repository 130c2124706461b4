"""Replays over HTTP and by the command line, of the real encoder and fitted classifiers, across restarts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

from tests.service.conftest import Keyed, Serve
from tests.service.server import CLASSIFYING, SHOP_NAMESPACE, SHOP_OPTIONS, problem, run, run_json

SAID = (
    "please drop my reservation for the weekend",
    "i would like to rent a mountain bike for tomorrow",
    "我不租了请退订",
    "what is the weather on the moon",
    "when do i get my deposit back, and please cancel my bike rental",
)
ASKED: tuple[dict[str, Any], ...] = (
    {"intent": "deposit_status", "payload": {"amount": 30}},
    {"intent": "erase_rider_data"},
    {"intent": "book_bike", "response_timeout_ms": 300},
    {"intent": "cancel_booking", "limit": 9, "constraints": {"max": 10**30}},
)


def test_decisions_are_equal_after_a_restart_with_other_cards_policy_and_classifiers(serve: Serve) -> None:
    server = serve(*SHOP_OPTIONS, env=CLASSIFYING)
    wanted: list[dict[str, Any]] = [*({"utterance": text} for text in SAID), *ASKED]
    bodies = [{"namespace": SHOP_NAMESPACE, **each} for each in wanted]
    decided = [server.client.post("/route?explain=true", json=body).json() for body in bodies]
    assert {each["action"] for each in decided} >= {"invoke", "fallback"}
    assert any(each["parts"] for each in decided)
    at_once = server.client.post(f"/decisions/{decided[0]['decision_id']}/replay").json()
    assert (at_once["verdict"], at_once["part"], at_once["partial"]) == ("equal", None, False)
    assert {"classifier", "reading", "ranking", "plan", "answer"} <= set(at_once["checked"])
    server.stop()
    new = {"intent": "repair_bike", "examples": ["my bike is broken", "repair the wheel"], "input_schema": "text"}
    changed = serve("--store", server.store, env=CLASSIFYING)
    card = {"version": "9.0.0", "endpoint": "http://new/", "capabilities": [{**new, "output_schema": "text"}]}
    assert changed.client.put(f"/agents/wheel_doctor?namespace={SHOP_NAMESPACE}", json=card).is_success
    assert changed.client.delete(f"/agents/rental_desk?namespace={SHOP_NAMESPACE}").is_success
    assert changed.client.put("/policy", json={"defaults": {"cost_weights": {"auto": 5.0}}}).is_success
    for each in decided:
        told = changed.client.post(f"/decisions/{each['decision_id']}/replay").json()
        assert (told["verdict"], told["detail"], told["taken"]) == ("equal", None, [])
    changed.stop()
    report = run_json("replay", "--all", "--store", server.store)
    assert report["verdicts"] == {"equal": report["n"]}
    assert report["n"] == len(decided) + sum(len(each["parts"]) for each in decided)
    assert run_json("replay", "--chain", "--store", server.store) == report["chain"]


def test_one_altered_card_is_named_at_once_by_a_service_that_has_replayed_before(serve: Serve) -> None:
    server = serve(*SHOP_OPTIONS)
    body = {"namespace": SHOP_NAMESPACE, "intent": "deposit_status"}
    decision_id = server.client.post("/route", json=body).json()["decision_id"]
    path = f"/decisions/{decision_id}/replay"
    assert server.client.post(path).json()["verdict"] == "equal"
    with closing(sqlite3.connect(server.store.removeprefix("sqlite:///"))) as connection:
        rows = connection.execute("SELECT digest, body FROM generations WHERE kind = 'card'").fetchall()
        digest, text = next((digest, text) for digest, text in rows if b"deposit_desk" in text)
        card = json.loads(text)
        card["capabilities"][0]["quality"] = 0.01
        connection.execute("UPDATE generations SET body = ? WHERE digest = ?", (json.dumps(card).encode(), digest))
        connection.commit()
    told = server.client.post(path).json()
    assert (told["verdict"], told["part"]) == ("differs", "cards")
    assert f"{SHOP_NAMESPACE}/deposit_desk/" in told["detail"]
    code, out, _ = run("replay", decision_id, "--store", server.store, "--json")
    assert code == 1
    assert json.loads(out) == told


def test_a_replay_is_for_the_caller_of_the_decision_and_for_those_who_may_read(keyed: Keyed) -> None:
    body = {"intent": "cancel_booking", "namespace": SHOP_NAMESPACE}
    own = keyed.client.post("/route", json=body, headers=keyed.one).json()["decision_id"]
    assert keyed.statuses("POST", f"/decisions/{own}/replay") == [401, 200, 404, 200, 200]
    problem(keyed.client.post("/decisions/never/replay", headers=keyed.reader), 404, "not_found")
    problem(keyed.client.post(f"/decisions/{'x' * 129}/replay", headers=keyed.reader), 422, "invalid_request")


def test_a_replay_of_an_erased_decision_says_so(serve: Serve) -> None:
    server = serve(*SHOP_OPTIONS)
    caller = {"session_id": "s-erased"}
    body = {"intent": "cancel_booking", "namespace": SHOP_NAMESPACE, "caller": caller}
    decision_id = server.client.post("/route", json=body).json()["decision_id"]
    server.client.post("/route", json={**body, "caller": {"session_id": "s-kept"}})
    path = f"/decisions/{decision_id}/replay"
    assert server.client.post(path).json()["verdict"] == "equal"
    assert server.client.delete("/subjects/s-erased").is_success
    assert server.client.post(path).json()["verdict"] == "erased"
    code, out, _ = run("replay", "--all", "--store", server.store, "--json")
    told = json.loads(out)
    assert (code, told["verdicts"], told["chain"]["broken"], told["chain"]["n_erased"]) == (
        0,
        {"erased": 1, "equal": 1},
        None,
        1,
    )

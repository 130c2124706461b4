"""Corrections, redaction and erasure with the real service, commands and files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Serve
from tests.service.server import SHOP_CARDS, SHOP_NAMESPACE, Server, problem, run_json

SESSION, DESK = "session-8151", "desk-8151"
SAID = "please cancel my booking BX-20731 and write to ann.miller@example.com"
CONFIGURATION = {"keys", "cards", "policies", "generations", "vectors"}


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve(*SHOP_CARDS)


def asked(server: Server, said: str = SAID, session_id: str = SESSION, agent_id: str = DESK, **fields: Any) -> str:
    """The id of a decision that named an agent."""
    request = {
        "utterance": said,
        "intent": "cancel_booking",
        "payload": {"text": said},
        "namespace": SHOP_NAMESPACE,
        "caller": {"session_id": session_id, "agent_id": agent_id},
        **fields,
    }
    answer = server.client.post("/route", json=request).json()
    assert answer["action"] == "invoke", answer
    decision_id: str = answer["decision_id"]
    return decision_id


def told(server: Server, decision_id: str, **fields: Any) -> Any:
    outcome = {"decision_id": decision_id, "status": "failed", **fields}
    return server.client.post("/feedback", json=outcome)


def stored(server: Server) -> Path:
    return Path(server.store.removeprefix("sqlite:///"))


def holding(server: Server, word: str) -> set[str]:
    """Tables without configuration that hold a word in any column."""
    found = set()
    with closing(sqlite3.connect(stored(server))) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in set(names) - CONFIGURATION:
            rows = connection.execute(f'SELECT * FROM "{name}"')  # noqa: S608 - names of our own tables
            if any(word in str(value) for row in rows for value in row):
                found.add(name)
    return found


def n_in_files(server: Server, word: str) -> int:
    file = stored(server)
    return sum(each.read_bytes().count(word.encode()) for each in file.parent.glob(f"{file.name}*"))


def test_a_correction_waits_until_it_is_accepted(server: Server) -> None:
    first, second = (asked(server, f"{SAID} {number}") for number in range(2))
    assert told(server, first, correct_intent="book_bike").status_code == 202
    assert told(server, second, correct_intent="nothing_of_ours").status_code == 202
    waiting = server.client.get(f"/reviews?state=waiting&namespace={SHOP_NAMESPACE}").json()["reviews"]
    assert [(each["decision_id"], each["intent"], each["correct_intent"]) for each in waiting] == [
        (first, "cancel_booking", "book_bike"),
        (second, "cancel_booking", "nothing_of_ours"),
    ]
    accepted = server.client.post(f"/reviews/{waiting[0]['review_id']}/accept")
    assert (accepted.status_code, accepted.json()["text"]) == (200, f"{SAID} 0")
    problem(server.client.post(f"/reviews/{waiting[1]['review_id']}/accept"), 409, "conflict")
    listed = run_json("reviews", "list", "--store", server.store)
    assert [each["review_id"] for each in listed["reviews"]] == [waiting[1]["review_id"]]
    run_json("reviews", "reject", waiting[1]["review_id"], "--store", server.store)
    assert server.client.get("/reviews?state=waiting").json()["n_waiting"] == 0


def test_an_amendment_takes_its_correction_back(server: Server) -> None:
    decision_id = asked(server, "cancel it again", "s-2", "desk-2")
    told(server, decision_id, correct_intent="book_bike")
    assert [each["caller"] for each in server.client.get("/reviews?state=waiting").json()["reviews"]] == ["desk-2"]
    assert told(server, decision_id).json()["effect"] == "amended"
    assert server.client.get("/reviews?state=waiting").json()["reviews"] == []


def test_a_caller_cannot_fill_the_reviews(server: Server) -> None:
    ids = [asked(server, f"cancel {number}", "s-loud", "loud") for number in range(230)]
    outcomes = [{"decision_id": each, "status": "failed", "correct_intent": "book_bike"} for each in ids]
    answers = server.client.post("/feedback", json=outcomes).json()
    assert {answer["effect"] for answer in answers} == {"accepted"}
    page = server.client.get("/reviews?caller=loud&limit=1000").json()
    assert (len(page["reviews"]), page["n_waiting"], page["n_refused"]) == (200, 200, 30)
    assert server.client.delete("/subjects/loud").json()["erased"]["reviews"] == 200


def test_what_was_erased_is_gone_for_good_and_the_chain_holds(server: Server) -> None:
    kept = asked(server, "cancel the other one", "s-3", "desk-3")
    ids = [asked(server, task_id=f"{SESSION}/{number}", trace_id=f"{SESSION}-{number}") for number in range(5)]
    for decision_id in ids:
        assert told(server, decision_id, correct_intent="book_bike").status_code == 202
    export = server.client.get(f"/subjects/{SESSION}?limit=100").json()
    assert set(ids) <= {each["decision_id"] for each in export["decisions"]}
    assert "ann.miller" in json.dumps(export)

    answer = server.client.delete(f"/subjects/{DESK}").json()
    assert (answer["complete"], answer["erased"]["decisions"] >= 5) == (True, True)
    for word in (SESSION, DESK, "ann.miller"):
        assert holding(server, word) == set(), word
        assert n_in_files(server, word) == 0, word
    server.stop()
    server.start()
    for decision_id in ids:
        problem(server.client.get(f"/decisions/{decision_id}"), 410, "erased")
        problem(told(server, decision_id), 410, "erased")
        assert server.client.post(f"/decisions/{decision_id}/replay").json()["verdict"] == "erased"
    assert server.client.get(f"/decisions/{kept}").status_code == 200
    chain = run_json("replay", "--chain", "--store", server.store)
    assert chain["broken"] is None
    assert chain["n_erased"] >= 5


@pytest.mark.parametrize(
    ("utterances", "kept", "status"),
    [("redacted", "cancel booking [id], mail to [email]", 200), ("digest", "sha256:", 409)],
)
def test_no_more_is_written_down_than_the_policy_says(server: Server, utterances: str, kept: str, status: int) -> None:
    put = server.client.put("/policy", json={"retention": {"utterances": utterances}})
    assert put.status_code == 200, put.text
    decision_id = asked(server, f"cancel booking BX-55555, mail to bob.jones@{utterances}.example", "s-5", utterances)
    assert told(server, decision_id, correct_intent="book_bike").status_code == 202
    record = server.client.get(f"/decisions/{decision_id}").json()
    assert record["request"]["utterance"].startswith(kept)
    [review] = server.client.get(f"/reviews?caller={utterances}").json()["reviews"]
    assert review["text"].startswith(kept)
    assert server.client.post(f"/reviews/{review['review_id']}/accept").status_code == status
    replayed = server.client.post(f"/decisions/{decision_id}/replay").json()
    assert replayed["verdict"] == "equal", replayed
    for word in ("bob.jones", "BX-55555"):
        assert n_in_files(server, word) == 0, word


def test_an_outcome_is_joined_to_a_record_without_text_after_a_restart(server: Server) -> None:
    ids = []
    for utterances in ("redacted", "digest"):
        put = server.client.put("/policy", json={"retention": {"utterances": utterances}})
        assert put.status_code == 200, put.text
        ids.append(asked(server, session_id="s-6", agent_id="desk-6"))
        assert told(server, ids[-1]).json()["effect"] == "accepted"
    server.kill()
    server.start()
    assert [told(server, each, latency_ms=5.0).json()["effect"] for each in ids] == ["amended", "amended"]

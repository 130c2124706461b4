"""Promotion with the real service and the real commands; weeks of traffic are written into its store beforehand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from intent.embedder import bundled
from models.events import Row
from router.stores.open import open_store
from tests.router.promotions import CARDS, SAID, fitted, model_folder, shadowed, traffic
from tests.service.conftest import Keyed, Serve
from tests.service.server import Server, problem, run, run_json

BARELY: dict[str, Any] = {"other": 0.04, "worth_of_other": 0.5, "tried": 0.5, "seed": 6}
"""A candidate that is better by the 95 % bound, but not by the 99 % bound."""

PARCEL = SAID["track_parcel"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model that reads well, and one that takes every intent for another one."""
    encoder, folder = bundled(), tmp_path_factory.mktemp("models")
    good, bad = (
        model_folder(folder / name, fitted(encoder, is_good=name == "good"), encoder_id=encoder.encoder_id)
        for name in ("good", "bad")
    )
    return good, bad


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> Server:
    cards = tmp_path / "cards.json"
    cards.write_text(json.dumps({"agents": [each.model_dump(mode="json") for each in CARDS]}))
    return serve("--cards", str(cards))


def write(server: Server, rows: Sequence[Row]) -> None:
    """Put rows into the store, as another process may while it serves."""

    async def append() -> None:
        async with open_store(server.store) as store:
            await store.records.append(rows)

    asyncio.run(append())


def promote(server: Server, folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = run_json("promote", str(folder), "--store", server.store)
    assert told["moved"]
    return told


def refused(server: Server, folder: Path) -> list[str]:
    """What is missing; the exit status says that it was refused."""
    code, out, _ = run("promote", str(folder), "--store", server.store, "--json")
    told = json.loads(out)
    assert (code, told["moved"]) == (3, False)
    assert all(check["fix"] for check in told["checks"] if not check["is_met"])
    return [check["name"] for check in told["checks"] if not check["is_met"]]


def state(server: Server) -> dict[str, Any]:
    response = server.client.get("/promotion")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def asked(server: Server, name: str, n: int) -> list[dict[str, Any]]:
    """The decisions on the same sentence in n sessions."""
    requests = [{"utterance": PARCEL, "caller": {"session_id": f"{name}-{number}"}} for number in range(n)]
    answers: list[dict[str, Any]] = server.client.post("/route/batch", json=requests).json()
    return answers


def told_by_event(server: Server, path: str) -> list[str]:
    """The stages that events told of."""
    events = server.client.get(path).json()["events"]
    return [each["decision"] for each in events if "promotion_id" in each["payload"]]


def feed(server: Server, answers: Sequence[dict[str, Any]]) -> None:
    """Tell what came of decisions: the sentence was about a parcel."""
    outcomes = [
        {"decision_id": each["decision_id"], "status": "succeeded", "correct_intent": "track_parcel"}
        for each in answers
    ]
    response = server.client.post("/feedback", json=outcomes)
    assert response.status_code == 202, response.text


def accept(server: Server) -> int:
    """Accept all corrections that wait; how many those were."""
    waiting = server.client.get("/reviews?state=waiting&limit=1000").json()["reviews"]
    for each in waiting:
        assert server.client.post(f"/reviews/{each['review_id']}/accept").status_code == 200
    return len(waiting)


def test_a_better_candidate_goes_all_the_way_and_stays_after_a_restart(
    server: Server, models: tuple[Path, Path]
) -> None:
    good, _ = models
    asked(server, "before", 5)
    assert promote(server, good)["stage"] == "shadow"
    server.wait(lambda: state(server)["candidate"] is not None, "it does not follow")
    asked(server, "shadow", 40)
    server.wait(lambda: state(server)["shadow"]["n_stored"] == 40, "the candidate does not read")
    assert state(server)["shadow"]["n_dropped"] == 0
    assert refused(server, good) == ["too_few_outcomes", "baseline"]

    write(server, shadowed(1, 3200, **BARELY))
    told = promote(server, good)
    assert (told["before"], told["stage"]) == ("shadow", "canary")
    assert told["figures"]["baseline"]["n"] == 3200
    server.wait(lambda: state(server)["candidate"]["stage"] == "canary", "it does not follow")
    answers = asked(server, "canary", 200)
    generations = {each["generations"]["classifier"] for each in answers}
    assert len(generations) == 2
    n_canary = min(sum(each["generations"]["classifier"] == one for each in answers) for one in generations)
    assert 5 < n_canary < 45
    feed(server, answers)
    server.wait(lambda: state(server)["watch"]["n_outcomes"] == n_canary, "the watch does not see them")
    assert refused(server, good) == ["canary_outcomes"]

    write(server, traffic("canary", 1000, 0.77, promotion_id=1))
    assert promote(server, good)["stage"] == "full"
    server.wait(lambda: state(server)["full"] is not None, "it does not follow")
    assert state(server)["candidate"] is None
    assert server.stop() == 0
    server.start()
    assert state(server)["full"]["promotion_id"] == 1
    record = server.client.get(f"/decisions/{asked(server, 'after', 1)[0]['decision_id']}").json()
    assert record["inputs"]["promotion_id"] == 1

    changes = run_json("rollback", "--store", server.store, "--reason", "enough")["changes"]
    assert [(each["before"], each["promotion"]["stage"]) for each in changes] == [("full", "rolled_back")]
    server.wait(lambda: state(server)["full"] is None, "it does not follow")
    assert state(server)["promotions"][0]["body"]["history"][-1]["why"] == "enough"


def test_a_worse_one_is_taken_back_by_the_service(server: Server, models: tuple[Path, Path]) -> None:
    _, bad = models
    asked(server, "before", 1)
    promote(server, bad)
    write(server, shadowed(1, 3200, **BARELY))
    promote(server, bad)
    server.wait(lambda: state(server)["candidate"] is not None, "it does not follow")
    server.wait(lambda: state(server)["candidate"]["stage"] == "canary", "it does not follow")
    wrong = 0
    for number in range(3):
        answers = asked(server, f"round-{number}", 200)
        wrong += sum(each["target"]["agent_id"] == "refunder" for each in answers)
        feed(server, answers)
    assert 25 < wrong < 120
    # whoever posts outcomes condemns no reading by a word of its own
    server.wait(lambda: (state(server)["watch"] or {}).get("n_outcomes") == wrong, "the watch does not see them")
    assert state(server)["watch"]["mean"] == 1.0
    assert accept(server) == wrong
    server.wait(lambda: state(server)["candidate"] is None, "it is not taken back")
    taken_back = state(server)["promotions"][0]
    assert (taken_back["stage"], taken_back["body"]["history"][-1]["by"]) == ("rolled_back", "service")
    assert {each["target"]["agent_id"] for each in asked(server, "after", 100)} == {"tracker"}
    assert "promotion 1 is rolled back: the mean reward" in server.log
    since = f"/events?limit=1000&from={taken_back['updated_at'] - 5}"
    server.wait(lambda: told_by_event(server, since) == ["rolled_back"], "no event tells of it")
    problem(server.client.post("/promotion/rollback", json={}), 409, "conflict")


def test_the_way_back_over_http_holds_at_once(server: Server, models: tuple[Path, Path]) -> None:
    asked(server, "before", 1)
    promote(server, models[0])
    response = server.client.post("/promotion/rollback", json={"reason": "another one is better"})
    assert response.status_code == 200, response.text
    assert response.json()["candidate"] is None
    ended = response.json()["promotions"][0]
    assert (ended["stage"], ended["body"]["history"][-1]["why"]) == ("ended", "another one is better")
    problem(server.client.post("/promotion/rollback", json={"reason": ""}), 422, "invalid_request")


def test_who_may_look_and_who_may_roll_back(keyed: Keyed) -> None:
    assert keyed.statuses("GET", "/promotion") == [401, 403, 403, 200, 200]
    assert keyed.statuses("POST", "/promotion/rollback") == [401, 403, 403, 403, 409]

"""Scenes of learning, over HTTP: fleets whose true quality is known here alone, and what the router makes of it.

Outcomes are drawn by a seed; the router's own draws are of the system, so margins are wide.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import httpx
import pytest

from router.stores.training_log import START, AcceptedCorrection, open_training_log
from tests.service.conftest import Headers, Serve
from tests.service.learning_world import DECLARED, World, each_by_itself, lie, named, rule, share
from tests.service.server import CLASSIFYING, Server

COMPLEMENTARY = {"ann": {"x": 0.9, "y": 0.3}, "bob": {"x": 0.3, "y": 0.9}}
BETTER = {("x", "ann"), ("y", "bob")}
ALIKE = {"ann": {"x": 0.8, "y": 0.7}, "bob": {"x": 0.7, "y": 0.8}}
WITHOUT_DRIFT = {"mode": "observe", "drift": {"enabled": False}}
"""An alarm cuts evidence down, and the order of outcomes decides when it comes."""

N_EACH = 40
"""Outcomes that each honest caller has told of each agent."""

LOST_AFTER = 150
BACK_AFTER = 2000
N_FALSE = 1000
MOST_MOVED = 0.1


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve()


@pytest.fixture
def client(server: Server) -> httpx.Client:
    return server.client


@pytest.mark.parametrize(("mode", "risk"), [("explore", "normal"), ("exploit", "low")])
def test_each_intent_goes_to_the_agent_that_does_it_better(client: httpx.Client, mode: str, risk: str) -> None:
    rule(client, {"mode": mode})
    world = World(client, f"complementary/{mode}", COMPLEMENTARY, risk=risk)
    world.live(200)

    named = world.live(100)

    assert sum(each in BETTER for each in named) >= 80
    # with nothing learned one of two is right
    assert world.shares("x")["ann"] > 0.9
    assert world.shares("y")["bob"] > 0.9


def test_an_agent_that_fails_loses_its_traffic_and_gets_it_back_when_it_has_recovered(client: httpx.Client) -> None:
    rule(client, {"mode": "explore", "floor": 0.1})
    world = World(client, "failing", {"ann": {"x": 0.9}, "bob": {"x": 0.5}})
    world.live(200, at_once=25)
    assert share(world.live(50, at_once=25), "ann") >= 0.75

    world.truth["ann"]["x"] = 0.05
    lost = share(world.live(LOST_AFTER, at_once=25)[-50:], "ann")

    # the floor alone gives it 0.05
    assert lost <= 0.25
    world.truth["ann"]["x"] = 0.9
    n_outcomes, regained = 0, 0.0
    while regained < 0.5 and n_outcomes < BACK_AFTER:
        regained = share(world.live(50, at_once=25), "ann")
        n_outcomes += 50
    assert regained >= 0.5


def test_a_new_version_begins_with_a_part_of_what_is_known_of_the_one_before(client: httpx.Client) -> None:
    rule(client, {"mode": "observe"})
    world = World(client, "versions", {"ann": {"x": 1.0}, "bob": {"x": 0.5}})
    world.live(100, target_agent="ann")
    parent = world.earned("ann")["x"]
    assert (parent["n_outcomes"], parent["reward"]) == (100, 1)

    world.let_in("ann", {"x": DECLARED}, version="1.1.0")

    heir = world.earned("ann", "1.1.0")["x"]
    assert (heir["n_outcomes"], heir["reward"], heir["declared"]) == (0, None, DECLARED)
    assert DECLARED < heir["quality"] < parent["quality"]
    assert parent["high"] - parent["low"] < heir["high"] - heir["low"] < width_without(world)
    assert world.earned("ann")["x"]["n_outcomes"] == 100
    rule(client, {"mode": "observe", "inherit": 0.0})
    alone = world.earned("ann", "1.1.0")["x"]
    rule(client, {"mode": "observe", "inherit": 1.0})
    whole = world.earned("ann", "1.1.0")["x"]
    assert alone["quality"] < heir["quality"] < whole["quality"]
    assert alone["low"] < heir["low"] < whole["low"]


def width_without(world: World) -> float:
    """Of the interval of an agent that nobody has called."""
    bob = world.earned("bob")["x"]
    assert bob["n_outcomes"] == 0
    width: float = bob["high"] - bob["low"]
    return width


def test_an_outcome_is_spread_over_the_intents_that_the_sentence_may_have_meant(serve: Serve) -> None:
    client = serve(env=CLASSIFYING).client
    expected: dict[str, Counter[str]] = {}
    says = ["I want to change my order", "change the order of the lamp", "please cancel my order"]
    for utterance in says * 4:
        decision = client.post("/route", json={"utterance": utterance, "caller": {"agent_id": "web"}}).json()
        assert decision["action"] == "invoke", decision["reason"]
        client.post("/feedback", json={"decision_id": decision["decision_id"], "status": "succeeded"})
        intent = decision["intent"]
        read = {other["name"]: other["confidence"] for other in intent["alternatives"] if other["confidence"] >= 0.02}
        read[intent["name"]] = intent["confidence"]
        of_agent = expected.setdefault(decision["target"]["agent_id"], Counter())
        of_agent.update({name: confidence / sum(read.values()) for name, confidence in read.items()})

    told = client.get("/weights").json()

    found = {
        each["agent_id"]: {name: of["n_outcomes"] for name, of in each["intents"].items() if of["n_outcomes"]}
        for each in told["agents"]
        if each["agent_id"] in expected
    }
    assert found == {agent: pytest.approx(dict(of_agent), abs=1e-4) for agent, of_agent in expected.items()}
    assert sum(n for of_agent in found.values() for n in of_agent.values()) == pytest.approx(12, abs=1e-9)
    assert min(found["orders_desk"].values()) < 1 < max(found["orders_desk"].values())


def test_outcomes_in_lists_teach_what_they_teach_one_by_one_in_any_order(client: httpx.Client) -> None:
    rule(client, {"mode": "observe"})
    together, alone = (World(client, f"lists/{name}", ALIKE) for name in ("together", "alone"))
    rng = Random(5)
    asked = [{"intent": rng.choice("xy"), "target_agent": rng.choice(["ann", "bob"])} for _ in range(500)]
    statuses = rng.choices(["succeeded", "low_confidence", "schema_mismatch", "failed"], [12, 2, 1, 2], k=500)

    decisions: list[dict[str, Any]] = []
    for start in (0, 256):
        decisions += together.decided([together.request(**each) for each in asked[start : start + 256]])
    receipts = together.post(list(map(together.outcome, decisions, statuses)))
    apart = [(alone.request(**each), status) for each, status in zip(asked, statuses, strict=True)]
    asyncio.run(each_by_itself(alone, rng.sample(apart, 500)))

    assert {receipt["effect"] for receipt in receipts} == {"accepted"}
    learned = together.weights()
    assert learned == alone.weights()
    assert sum(of["n_outcomes"] for each in learned.values() for of in each["intents"].values()) == 500


def test_amendments_after_a_restart_leave_nothing_of_what_they_replace(server: Server) -> None:
    rule(server.client, WITHOUT_DRIFT)
    amended, failed = (World(server.client, f"amended/{name}", ALIKE) for name in ("before", "never"))
    decisions = amended.decided([amended.request("xy"[place % 2]) for place in range(50)])
    before = [amended.outcome(decision, "succeeded") for decision in decisions]
    amended.post(before)
    agents = [decision["target"]["agent_id"] for decision in decisions]
    assert set(agents) == set(ALIKE)
    untouched = failed.weights()

    server.stop()
    server.start()
    amended.client = failed.client = server.client
    receipts = amended.post([amended.outcome(decision, "failed") for decision in decisions])

    assert {receipt["effect"] for receipt in receipts} == {"amended"}
    assert failed.weights() == untouched
    requests = [failed.request("xy"[place % 2], target_agent=agent) for place, agent in enumerate(agents)]
    failed.post([failed.outcome(decision, "failed") for decision in failed.decided(requests)])
    learned = amended.weights()
    assert learned == failed.weights()
    cells = [of for each in learned.values() for of in each["intents"].values()]
    assert sum(of["n_outcomes"] for of in cells) == 50
    assert {of["reward"] for of in cells} == {0}


def test_the_intent_that_was_meant_teaches_nothing_until_it_is_accepted(server: Server) -> None:
    client = server.client
    rule(client, {"mode": "observe"})
    corrected, plain = (World(client, f"corrected/{name}", ALIKE) for name in ("corrected", "plain"))
    for world, more in ((corrected, {"correct_intent": "y"}), (plain, {})):
        [decision] = world.decided([world.request("x", utterance="y, if you please", target_agent="ann")])
        world.post([world.outcome(decision, "failed") | more])

    found = client.get("/reviews", params={"namespace": corrected.namespace}).json()

    [review] = found["reviews"]
    assert (review["state"], review["text"], review["intent"]) == ("waiting", "y, if you please", "x")
    assert review["correct_intent"] == "y"
    assert client.get("/reviews", params={"namespace": plain.namespace}).json()["reviews"] == []
    learned = corrected.weights()
    assert learned == plain.weights()
    assert learned["ann", "1.0.0"]["intents"]["y"]["n_outcomes"] == 0
    assert asyncio.run(accepted(server)) == []
    assert client.post(f"/reviews/{review['review_id']}/accept").json()["state"] == "accepted"
    [example] = asyncio.run(accepted(server))
    assert (example.text, example.correct_intent) == ("y, if you please", "y")
    assert corrected.weights() == learned


async def accepted(server: Server) -> list[AcceptedCorrection]:
    """The corrections that retraining would learn from."""
    async with open_training_log(server.store) as log:
        return list(await log.accepted(START, 100))


@pytest.fixture(scope="module")
def keyed(serve: Serve) -> tuple[Server, list[Headers]]:
    """A server, and keys of five callers; its client presents one that may do all."""
    server = serve()
    keys = [server.key(name) for name in ("one", "two", "three", "four", "liar")]
    admin = server.key("admin", "router:admin", "router:read")
    server.wait(lambda: server.client.get("/agents").status_code == 401, "no key is needed")
    server.client.headers.update(admin)
    return server, keys


@pytest.mark.parametrize("mode", ["explore", "exploit"])
def test_one_callers_false_outcomes_move_nobody_elses_share(keyed: tuple[Server, list[Headers]], mode: str) -> None:
    server, (*honest, liar) = keyed
    rule(server.client, {"mode": mode})
    truth = {agent: {"x": quality, "y": quality} for agent, quality in (("ann", 0.9), ("bob", 0.5), ("cat", 0.3))}
    world = World(server.client, f"lies/{mode}", truth)
    for agent_id in world.truth:
        for key in honest:
            world.live(N_EACH, at_once=N_EACH, headers=key, target_agent=agent_id)
    before = [world.shares(intent, key) for key in honest for intent in "xy"]
    known = world.weights()

    lie(world, liar, N_FALSE, praised="cat", slandered="ann")

    after = [world.shares(intent, key) for key in honest for intent in "xy"]
    moved = [abs(now[name] - then[name]) for now, then in zip(after, before, strict=True) for name in then]
    assert max(moved) <= MOST_MOVED
    told = world.weights()
    for agent_id in ("ann", "cat"):
        for intent in "xy":
            then, now = (of[agent_id, "1.0.0"]["intents"][intent] for of in (known, told))
            assert now["n_outcomes"] == then["n_outcomes"] + N_FALSE / 4
            assert now["n_counted"] <= then["n_counted"]
            # a thousand that count would move it by .5 and more
            assert abs(now["quality"] - then["quality"]) < 0.05
    assert world.shares("x", liar)["cat"] > 0.9


def test_an_agent_that_one_caller_alone_praises_is_not_chosen_for_others(keyed: tuple[Server, list[Headers]]) -> None:
    server, (*honest, liar) = keyed
    rule(server.client, {"mode": "explore"})
    world = World(server.client, "praise", {"ann": {"x": 0.9, "y": 0.9}, "cat": {"x": 0.3, "y": 0.3}})
    for key in honest:
        world.live(40, at_once=40, headers=key, target_agent="ann")
    before = world.shares("x", honest[0])["cat"]
    lie(world, liar, 200, praised="cat")

    assert world.shares("x", liar)["cat"] > 0.9
    assert abs(world.shares("x", honest[0])["cat"] - before) <= MOST_MOVED


@pytest.mark.parametrize(("risk", "preference"), [("normal", "best"), ("high", "auto")])
def test_nothing_is_explored_for_those_who_want_the_best_or_where_the_risk_is_high(
    client: httpx.Client, risk: str, preference: str
) -> None:
    rule(client, {"mode": "explore"})
    world = World(client, f"best/{risk}", {"ann": {"x": 0.8}, "bob": {"x": 0.6}}, risk=risk)
    world.let_in("ann", {"x": DECLARED + 0.05}, risk=risk)
    # the same fleet, of which the posteriors are as wide as can be
    explored = World(client, f"explored/{risk}", {"ann": {"x": 0.8}, "bob": {"x": 0.6}})
    explored.let_in("ann", {"x": DECLARED + 0.05})

    assert named(world, preference) == {"ann"}
    assert named(explored, "auto") == {"ann", "bob"}

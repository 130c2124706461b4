"""How calls begin again after a fault, and what is done meanwhile: with real agents."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from tests.service.agents import MALFORMED, SHARED, Behaviour
from tests.service.conftest import Stage
from tests.service.scene import (
    BREAKER,
    DECIDED,
    LEFT_OUT,
    OPEN_MS,
    RECOVERING,
    at_once,
    left_out,
    until,
    until_answered,
)


async def test_503_with_retry_after_keeps_the_caller_away_for_that_time(stage: Stage) -> None:
    scene = stage("busy")
    a = scene.agent("a")
    a.behaviour = Behaviour.BUSY
    caller = await scene.caller()
    asked_at = time.monotonic()
    done = await caller.ask(**scene.request())
    assert [each[:2] for each in done.attempts] == [("a", "failed")]
    assert scene.told(done.decision) == [*DECIDED, "invoke:failed", "breaker:open"]
    a.behaviour = Behaviour.NORMAL
    away = await caller.ask(**scene.request())
    assert (away.decision["action"], away.decision["reason"], away.attempts) == ("fallback", "breaker_open", [])
    assert 0 < away.decision["retry_after_ms"] <= 1000
    assert scene.told(away.decision) == ["request", "read:sure", "route:fallback", "response:fallback"]
    await until_answered(scene, caller)
    assert time.monotonic() - asked_at >= a.retry_after_s
    assert len(a.asked) == 2
    assert scene.state("a") == "closed"
    stranger = await scene.caller("stranger")
    assert (await stranger.ask(**scene.request())).attempts[-1][:2] == ("a", "succeeded")


async def test_after_the_open_time_exactly_one_of_20_at_once_is_let_through(stage: Stage) -> None:
    scene = stage("recovery", breaker=RECOVERING)
    a = scene.agent("a", idempotent=True)
    a.behaviour = Behaviour.BROKEN
    caller = await scene.caller()
    for _ in range(2):
        await caller.ask(**scene.request())
    assert scene.breakers() == {"a": ("open", 2, 2)}
    refused = await caller.decide(**scene.request())
    assert (refused["reason"], refused["plan"], refused["fallback"]["kind"]) == ("breaker_open", [], "full")
    a.behaviour = Behaviour.NORMAL
    await until(lambda: scene.state("a"), "half_open", "it stays open")
    crowd = await at_once(20, lambda: caller.decide(**scene.request("probe")))
    assert Counter(each["reason"] for each in crowd) == {"only_candidate": 1, "breaker_open": 19}
    [probe] = [each for each in crowd if each["action"] == "invoke"]
    done = await caller.carry_out(probe, {"text": "probe"})
    assert [each[:2] for each in done.attempts] == [("a", "succeeded")]
    assert a.asked.count("probe") == 1
    assert scene.told(probe) == [*DECIDED, "invoke:succeeded", "breaker:closed"]
    assert scene.state("a") == "closed"
    await until(lambda: scene.changes("a"), ["breaker:open", "breaker:half_open", "breaker:closed"], "events")
    after = await at_once(20, lambda: caller.ask(**scene.request()))
    assert {done.attempts[-1].status for done in after} == {"succeeded"}


async def test_a_probe_that_fails_is_one_call_and_opens_the_breaker_again(stage: Stage) -> None:
    scene = stage("probe-fails", breaker=RECOVERING)
    a, b = scene.agent("a", idempotent=True, backup_agent_id="b"), scene.agent("b", 0.3)
    a.behaviour = Behaviour.HUNG
    caller = await scene.caller()
    await caller.ask(**scene.request())
    assert (len(a.asked), scene.state("a")) == (2, "open")
    await until(lambda: scene.state("a"), "half_open", "it stays open")
    done = await caller.ask(**scene.request())
    assert [each[:2] for each in done.attempts] == [("a", "timed_out"), ("b", "succeeded")]
    assert scene.told(done.decision) == [*DECIDED, "invoke:timed_out", "breaker:open", "invoke:succeeded"]
    assert (len(a.asked), len(b.asked)) == (3, 2)


async def test_a_backup_that_recovers_is_probed_by_nobody_as_a_backup(stage: Stage) -> None:
    scene = stage("backup-recovers", breaker=RECOVERING)
    a, b = scene.agent("a", backup_agent_id="b"), scene.agent("b", 0.3)
    b.behaviour = Behaviour.BROKEN
    caller = await scene.caller()
    for _ in range(2):
        await caller.ask(**scene.request(target_agent="b"))
    await until(lambda: scene.state("b"), "half_open", "it stays open")
    a.behaviour = Behaviour.BROKEN
    crowd = await at_once(5, lambda: caller.ask(**scene.request()))
    assert [[each[:2] for each in done.attempts] for done in crowd] == [[("a", "failed")]] * 5
    assert len(b.asked) == 2


@pytest.mark.parametrize("is_named", [True, False])
async def test_a_shared_dependency_that_fails_takes_out_all_that_need_it(stage: Stage, is_named: bool) -> None:
    scene = stage(
        f"shared-{is_named}".lower(),
        breaker=LEFT_OUT,
        dependency={"min_calls": 4, "open_ms": OPEN_MS, "jitter": 0.0, "half_open_interval_ms": 60_000},
    )
    needing = [scene.agent(name, 0.9, depends_on=[SHARED], backup_agent_id="c") for name in ("a", "b")]
    scene.agent("c", 0.3)
    for agent in needing:
        agent.behaviour = Behaviour.NO_DEPENDENCY if is_named else Behaviour.BROKEN
    caller = await scene.caller()
    for number in range(4):
        done = await caller.ask(**scene.request(target_agent="ab"[number % 2]))
        charged = [each.charged_to for each in done.attempts]
        assert charged == (["dependency", "agent"] if is_named else ["agent", "agent"])
    assert scene.breakers() == {SHARED: ("open", 4, 4)}
    assert scene.told(done.decision) == [*DECIDED, "invoke:failed", "breaker:open", "invoke:succeeded"]
    after = await caller.ask(**scene.request(limit=5))
    assert left_out(after.decision) == {"a": "dependency", "b": "dependency"}
    assert (after.decision["reason"], after.attempts[-1][:2]) == ("only_candidate", ("c", "succeeded"))
    for agent in needing:
        agent.behaviour = Behaviour.NORMAL
    await until(lambda: scene.state(SHARED), "half_open", "it stays open")
    crowd = await at_once(20, lambda: caller.decide(**scene.request("probe")))
    reached = Counter(each["target"]["agent_id"] for each in crowd)
    assert (reached["a"] + reached["b"], reached["c"]) == (1, 19)
    [probe] = [each for each in crowd if each["target"]["agent_id"] != "c"]
    await caller.carry_out(probe, {"text": "probe"})
    assert scene.state(SHARED) == "closed"
    await until(lambda: scene.changes(SHARED), ["breaker:open", "breaker:half_open", "breaker:closed"], "events")


async def test_a_dependency_that_fails_an_agent_and_its_backup_is_blamed_not_the_request(stage: Stage) -> None:
    scene = stage("shared-both", breaker=LEFT_OUT, dependency={**BREAKER, "min_calls": 4})
    needing = [scene.agent("a", depends_on=[SHARED], backup_agent_id="b"), scene.agent("b", 0.3, depends_on=[SHARED])]
    for agent in needing:
        agent.behaviour = Behaviour.NO_DEPENDENCY
    caller = await scene.caller()
    for _ in range(2):
        done = await caller.ask(**scene.request("the same"))
        assert [(*each[:2], each.charged_to) for each in done.attempts] == [
            ("a", "failed", "dependency"), ("b", "failed", "dependency"),
        ]  # fmt: skip
    assert scene.breakers() == {SHARED: ("open", 4, 4)}
    assert scene.told(done.decision) == [*DECIDED, "invoke:failed", "invoke:failed", "breaker:open"]
    after = await caller.ask(**scene.request("the same"))
    assert (after.decision["action"], after.decision["reason"], after.attempts) == ("fallback", "breaker_open", [])


async def test_marked_retries_pass_the_token_bucket_of_what_their_agent_depends_on(stage: Stage) -> None:
    scene = stage("storm", dependency={"retry_burst": 3, "retries_per_s": 0.0})
    scene.agent("a", depends_on=[SHARED])
    caller = await scene.caller()
    marked = await at_once(20, lambda: caller.decide(**scene.request(retry_of="earlier", attempt=2, limit=5)))
    assert Counter(each["reason"] for each in marked) == {"only_candidate": 3, "breaker_open": 17}
    refused = next(each for each in marked if each["action"] == "fallback")
    assert left_out(refused) == {"a": "dependency"}
    assert (await caller.ask(**scene.request())).attempts[-1].status == "succeeded"


async def test_what_only_an_agent_that_is_down_could_do_waits_as_a_ticket_until_a_worker_settles_it(
    stage: Stage,
) -> None:
    scene = stage("ticket", unavailable="queue", breaker=RECOVERING)
    agent = scene.agent("a")
    agent.behaviour = Behaviour.BROKEN
    caller, client = await scene.caller(), scene.server.client
    for _ in range(2):
        await caller.ask(**scene.request())
    waiting = await caller.decide(**scene.request("wait for it"))
    assert (waiting["action"], waiting["reason"], waiting["plan"]) == ("queue", "queued", [])
    assert 0 < waiting["retry_after_ms"] <= OPEN_MS
    assert scene.told(waiting) == ["request", "read:sure", "route:queue", "response:queue"]
    ticket = waiting["queue"]["ticket"]
    assert client.get(waiting["queue"]["url"]).json()["state"] == "waiting"
    agent.behaviour = Behaviour.NORMAL
    await until(lambda: scene.state("a"), "half_open", "it stays open")
    claimed = client.post("/queue/claim", json={"namespace": scene.name}).json()
    [taken] = claimed["tickets"]
    assert (taken["ticket"], taken["decision_id"]) == (ticket, waiting["decision_id"])
    assert client.post("/queue/claim", json={"namespace": scene.name}).json()["tickets"] == []
    done = await caller.ask(**taken["request"])
    assert (done.answer, agent.asked[-1]) == ({"text": "WAIT FOR IT"}, "wait for it")
    settlement = {"claim_id": claimed["claim_id"], "status": "settled"}
    assert client.post(f"/queue/{ticket}/settle", json=settlement).json()["state"] == "settled"
    assert scene.state("a") == "closed"
    await until(lambda: scene.changes("a"), ["breaker:open", "breaker:half_open", "breaker:closed"], "events")


async def test_a_malformed_request_is_poison_after_two_agents_and_trips_no_breaker(stage: Stage) -> None:
    scene = stage("poison")
    a, b = scene.agent("a", backup_agent_id="b"), scene.agent("b", 0.3)
    caller = await scene.caller()
    done = await caller.ask(**scene.request(MALFORMED))
    assert [each[:2] for each in done.attempts] == [("a", "failed"), ("b", "failed")]
    assert [each.charged_to for each in done.attempts] == ["agent", "request"]
    assert scene.told(done.decision) == [*DECIDED, "invoke:failed", "invoke:failed"]
    crowd = await at_once(20, lambda: caller.ask(**scene.request(MALFORMED)))
    assert {(each.decision["action"], each.decision["reason"]) for each in crowd} == {("fallback", "poison_request")}
    assert scene.told(crowd[0].decision) == ["request", "read:sure", "route:fallback", "response:fallback"]
    assert (a.asked, b.asked) == ([MALFORMED], [MALFORMED])
    assert {counts[0::2] for counts in scene.breakers().values()} <= {("closed", 0)}
    assert [each["measured"]["n_outcomes"] for each in (scene.health("a"), scene.health("b"))] == [0, 0]
    other = await caller.ask(**scene.request())
    assert other.attempts[-1][:2] == ("a", "succeeded")
    # neither failure was held against a
    assert scene.breakers()["a"] == ("closed", 1, 0)


async def test_an_agent_that_falls_silent_comes_back_with_the_card_in_force_alone(stage: Stage) -> None:
    scene = stage("heartbeat")
    agent = scene.agent("a")
    card: dict[str, Any] = {"heartbeat_s": 0.5}
    old = scene.card("a", agent.endpoint, **card)
    caller = await scene.caller()
    assert scene.health("a")["state"] == "unknown"
    assert (await caller.ask(**scene.request())).attempts[-1][:2] == ("a", "succeeded")
    assert scene.beat("a", old) == 200
    states = ["healthy"]
    while states[-1] != "down":
        state = scene.health("a")["state"]
        states += [state] if state != states[-1] else []
        await asyncio.sleep(0.01)
    assert states == ["healthy", "suspect", "down"]
    silent = await caller.ask(**scene.request(limit=5))
    assert (silent.decision["action"], silent.decision["reason"], silent.attempts) == ("fallback", "degraded", [])
    assert (left_out(silent.decision), scene.health("a")["reason"]) == ({"a": "down"}, "silent")
    assert scene.told(silent.decision) == ["request", "read:sure", "route:fallback", "response:fallback"]

    current = scene.card("a", agent.endpoint, **card, display_name="rewritten", max_inflight=3)
    assert scene.beat("a", old) == 409
    health = scene.health("a")
    assert (health["state"], health["reason"], health["max_inflight"]) == ("down", "digest", 3)
    assert (await caller.decide(**scene.request()))["reason"] == "degraded"
    assert scene.beat("a", current) == 200
    back = await caller.ask(**scene.request())
    assert (back.decision["reason"], back.attempts[-1][:2]) == ("only_candidate", ("a", "succeeded"))
    assert scene.told(back.decision) == [*DECIDED, "invoke:succeeded"]
    assert len(agent.asked) == 2
    assert scene.breakers() == {"a": ("closed", 2, 0)}

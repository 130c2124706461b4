"""Faults of real agents (SPEC R14 and more): what is decided, which breakers open, what is written down."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

import httpx
import pytest

from tests.service import agents
from tests.service.agents import MALFORMED, SHARED, Behaviour
from tests.service.conftest import Serve
from tests.service.scene import (
    BREAKER,
    CALLER,
    DECIDED,
    LEFT_OUT,
    OPEN_MS,
    RECOVERING,
    TIMEOUT_MS,
    Scene,
    left_out,
    planned,
    until,
)
from tests.service.server import Server

T = TypeVar("T")
Stage = Callable[..., Scene]


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve()


@pytest.fixture
async def stage(server: Server) -> AsyncIterator[Stage]:
    """Opens scenes; their agents and clients end with the test."""
    async with AsyncExitStack() as stack:

        def open_scene(name: str, on: Server = server, **policy: Any) -> Scene:
            scene = Scene(on, name, stack)
            scene.rule(**policy)
            return scene

        yield open_scene


async def test_a_normal_call(stage: Stage) -> None:
    scene = stage("normal")
    a, b = scene.agent("a", backup_agent_id="b"), scene.agent("b", 0.3)
    done = await (await scene.caller()).ask(**scene.request("hello"))
    decision = done.decision
    assert (decision["action"], decision["reason"], decision["target"]["agent_id"]) == ("invoke", "selected", "a")
    assert planned(decision) == ["a", "a", "b"]
    assert done.answer == {"text": "HELLO"}
    assert done.attempts[0].charged_to == "agent"
    assert (a.asked, b.asked) == (["hello"], [])
    assert scene.breakers() == {"a": ("closed", 1, 0)}
    assert scene.told(decision) == [*DECIDED, "invoke:succeeded"]


async def test_an_agent_that_is_slow_by_5_s_is_given_up_after_its_slice_and_its_backup_answers(stage: Stage) -> None:
    scene = stage("slow")
    a, _ = scene.agent("a", backup_agent_id="b", idempotent=True), scene.agent("b", 0.3)
    a.behaviour = Behaviour.SLOW
    caller = await scene.caller()
    began = time.monotonic()
    done = await caller.ask(**scene.request("hello"))
    assert time.monotonic() - began < agents.SLOW_S
    assert [each[:2] for each in done.attempts] == [("a", "timed_out"), ("a", "timed_out"), ("b", "succeeded")]
    assert done.answer == {"text": "HELLO"}
    assert scene.breakers() == {"a": ("open", 2, 2), "b": ("closed", 1, 0)}
    assert scene.told(done.decision) == [
        *DECIDED, "invoke:timed_out", "invoke:timed_out", "breaker:open", "invoke:succeeded",
    ]  # fmt: skip
    after = await caller.decide(**scene.request(limit=5))
    assert (after["reason"], planned(after), left_out(after)) == ("only_candidate", ["b", "b"], {"a": "breaker"})


async def test_what_may_not_be_done_twice_is_tried_nowhere_else_after_a_time_out(stage: Stage) -> None:
    scene = stage("slow-once")
    a, b = scene.agent("a", backup_agent_id="b"), scene.agent("b", 0.3)
    a.behaviour = Behaviour.HUNG
    done = await (await scene.caller()).ask(**scene.request())
    assert [each[:2] for each in done.attempts] == [("a", "timed_out")]
    assert (len(a.asked), b.asked) == (1, [])
    assert scene.breakers() == {"a": ("closed", 1, 1)}
    assert scene.told(done.decision) == [*DECIDED, "invoke:timed_out"]
    await until(lambda: scene.health("b")["in_flight"] + scene.health("a")["in_flight"], 0, "a place is still taken")


async def test_a_hung_agent_leaves_its_backup_the_time_to_answer_before_the_deadline(stage: Stage) -> None:
    scene = stage("deadline")
    a, b = scene.agent("a", backup_agent_id="b", idempotent=True), scene.agent("b", 0.3)
    a.behaviour = Behaviour.HUNG
    caller = await scene.caller()
    reserve_ms = 200
    budget_ms = 2 * TIMEOUT_MS + reserve_ms + 100
    began = time.monotonic()
    done = await caller.ask(**scene.request(response_timeout_ms=budget_ms))
    assert (time.monotonic() - began) * 1000 < budget_ms
    assert sum(step["timeout_ms"] + step["backoff_ms"] for step in done.decision["plan"]) <= budget_ms - reserve_ms
    assert [each[:2] for each in done.attempts] == [("a", "timed_out"), ("b", "succeeded")]
    assert scene.told(done.decision) == [*DECIDED, "invoke:timed_out", "invoke:succeeded"]
    late = await caller.ask(**scene.request(response_timeout_ms=TIMEOUT_MS))
    assert (late.decision["action"], late.decision["reason"], late.attempts) == ("fallback", "deadline", [])
    assert (len(a.asked), len(b.asked)) == (1, 1)
    assert scene.breakers() == {"a": ("closed", 1, 1), "b": ("closed", 1, 0)}


async def test_a_wrong_answer_is_never_asked_for_again_and_opens_no_breaker_where_the_call_succeeded(
    stage: Stage,
) -> None:
    scene = stage("wrong")
    a, b = scene.agent("a", backup_agent_id="b", idempotent=True), scene.agent("b", 0.3)
    a.behaviour = Behaviour.WRONG
    caller = await scene.caller(judge=lambda payload, answer: float(answer["text"] == payload["text"].upper()))
    for n_calls in (1, 2, 3):
        done = await caller.ask(**scene.request())
        assert [each[:2] for each in done.attempts] == [("a", "succeeded")]
        assert scene.breakers() == {"a": ("closed", n_calls, 0)}
        assert scene.told(done.decision) == [*DECIDED, "invoke:succeeded"]
    assert (len(a.asked), b.asked) == (3, [])


async def test_a_wrong_answer_that_counts_as_a_failure_leads_to_the_backup_and_opens_the_breaker(stage: Stage) -> None:
    scene = stage("wrong-failed")
    a, b = scene.agent("a", backup_agent_id="b", idempotent=True), scene.agent("b", 0.3)
    a.behaviour = Behaviour.WRONG
    caller = await scene.caller(
        judge=lambda payload, answer: float(answer["text"] == payload["text"].upper()), least_quality=0.5
    )
    for state in ("closed", "open"):
        done = await caller.ask(**scene.request())
        assert [each[:2] for each in done.attempts] == [("a", "failed"), ("b", "succeeded")]
        assert scene.breakers()["a"][0] == state
    assert scene.told(done.decision) == [*DECIDED, "invoke:failed", "breaker:open", "invoke:succeeded"]
    assert (len(a.asked), len(b.asked)) == (2, 2)
    assert (await caller.decide(**scene.request()))["target"]["agent_id"] == "b"


async def test_an_unreachable_agent_is_tried_once_more_and_then_left_for_its_backup(stage: Stage) -> None:
    scene = stage("unreachable")
    scene.card("a", f"http://127.0.0.1:{agents.free_port()}/call", backup_agent_id="b")
    scene.agent("b", 0.3)
    caller = await scene.caller()
    done = await caller.ask(**scene.request("hello"))
    assert [16 <= step["backoff_ms"] <= 24 for step in done.decision["plan"]] == [False, True, False]
    assert [each[:2] for each in done.attempts] == [("a", "unreachable"), ("a", "unreachable"), ("b", "succeeded")]
    assert done.answer == {"text": "HELLO"}
    assert scene.breakers() == {"a": ("open", 2, 2), "b": ("closed", 1, 0)}
    assert scene.told(done.decision) == [
        *DECIDED, "invoke:unreachable", "invoke:unreachable", "breaker:open", "invoke:succeeded",
    ]  # fmt: skip
    assert (await caller.decide(**scene.request()))["target"]["agent_id"] == "b"


async def test_an_outage_of_an_agent_and_its_backup_opens_both_breakers_and_is_no_fault_of_the_requests(
    stage: Stage,
) -> None:
    scene = stage("outage")
    scene.card("a", f"http://127.0.0.1:{agents.free_port()}/call", backup_agent_id="b")
    scene.card("b", f"http://127.0.0.1:{agents.free_port()}/call", 0.3)
    caller = await scene.caller()
    first = await caller.ask(**scene.request("the same"))
    assert [(*each[:2], each.charged_to) for each in first.attempts] == [
        ("a", "unreachable", "agent"), ("a", "unreachable", "agent"), ("b", "unreachable", "agent"),
    ]  # fmt: skip
    second = await caller.ask(**scene.request("the same"))
    assert [each[:2] for each in second.attempts] == [("b", "unreachable"), ("b", "unreachable")]
    assert scene.breakers() == {"a": ("open", 2, 2), "b": ("open", 3, 3)}
    third = await caller.ask(**scene.request("the same"))
    assert (third.decision["reason"], third.attempts) == ("breaker_open", [])
    assert scene.told(first.decision)[4:] == ["invoke:unreachable"] * 2 + ["breaker:open", "invoke:unreachable"]
    assert scene.told(second.decision)[4:] == ["invoke:unreachable", "breaker:open", "invoke:unreachable"]


@pytest.mark.parametrize("behaviour", [Behaviour.MISFIT, Behaviour.GARBAGE])
async def test_an_answer_that_does_not_fit_the_schema_ends_the_plan_and_opens_the_breaker(
    stage: Stage, behaviour: Behaviour
) -> None:
    scene = stage(f"schema-{behaviour}")
    a, _ = scene.agent("a", backup_agent_id="b", idempotent=True), scene.agent("b", 0.3)
    a.behaviour = behaviour
    caller = await scene.caller()
    for n_calls, state in ((1, "closed"), (2, "open")):
        done = await caller.ask(**scene.request())
        assert [each[:2] for each in done.attempts] == [("a", "schema_mismatch")]
        assert done.answer is None
        assert scene.breakers() == {"a": (state, n_calls, n_calls)}
    assert scene.told(done.decision) == [*DECIDED, "invoke:schema_mismatch", "breaker:open"]
    after = await caller.ask(**scene.request(limit=5))
    assert (left_out(after.decision), after.attempts[0].agent_id) == ({"a": "breaker"}, "b")
    assert len(a.asked) == 2


async def test_a_process_that_stands_still_times_out_and_is_back_when_it_runs_again(stage: Stage) -> None:
    scene = stage("hung", breaker={**RECOVERING, "min_calls": 1000, "failure_threshold": 2})
    with agents.serving_process() as (agent, process):
        scene.card("a", agent.endpoint, idempotent=True, backup_agent_id="b")
        scene.agent("b", 0.3)
        caller = await scene.caller()
        # the first call of a process may be slow: what is asked here is only that it comes to answer
        await until_answered(scene, caller)
        process.send_signal(signal.SIGSTOP)
        done = await caller.ask(**scene.request())
        assert [each[:2] for each in done.attempts] == [("a", "timed_out"), ("a", "timed_out"), ("b", "succeeded")]
        assert scene.breakers()["a"][0] == "open"
        assert scene.told(done.decision)[4:] == [
            "invoke:timed_out", "invoke:timed_out", "breaker:open", "invoke:succeeded",
        ]  # fmt: skip
        process.send_signal(signal.SIGCONT)
        await until_answered(scene, caller)
        assert scene.breakers()["a"][0] == "closed"
        await until(lambda: scene.changes("a")[-3:], ["breaker:open", "breaker:half_open", "breaker:closed"], "events")


async def at_once(n: int, ask: Callable[[], Awaitable[T]]) -> list[T]:
    """What so many get who ask at the same instant."""
    return await asyncio.gather(*(ask() for _ in range(n)))


async def until_answered(scene: Scene, caller: Any) -> None:
    """Ask until agent a has answered."""
    ends_at = time.monotonic() + 20
    while True:
        done = await caller.ask(**scene.request())
        if [each[:2] for each in done.attempts] == [("a", "succeeded")]:
            return
        assert time.monotonic() < ends_at, done
        await asyncio.sleep(0.02)


async def test_a_flapping_agent_trips_its_breaker_and_its_peer_takes_over(stage: Stage) -> None:
    scene = stage("flapping", breaker={**BREAKER, "min_calls": 5})
    a, b = scene.agent("a"), scene.agent("b", 0.3)
    a.behaviour = Behaviour.FLAPPING
    caller = await scene.caller()
    stories = [await caller.ask(**scene.request()) for _ in range(10)]
    ends = [done.attempts[-1][:2] for done in stories]
    assert ends == [("a", "failed"), ("a", "succeeded")] * 2 + [("a", "failed")] + [("b", "succeeded")] * 5
    assert scene.breakers() == {"a": ("open", 5, 3), "b": ("closed", 5, 0)}
    assert scene.told(stories[3].decision) == [*DECIDED, "invoke:succeeded"]
    assert scene.told(stories[4].decision) == [*DECIDED, "invoke:failed", "breaker:open"]
    assert (len(a.asked), len(b.asked)) == (5, 5)
    assert {done.decision["reason"] for done in stories} == {"selected", "only_candidate"}


async def test_an_agent_that_fails_on_and_on_is_ejected_until_its_time_is_over(stage: Stage) -> None:
    ejection = {"consecutive_failures": 3, "base_ms": 1000, "max_ejected_share": 0.5}
    scene = stage("ejected", breaker=LEFT_OUT, ejection=ejection)
    a, _ = scene.agent("a"), scene.agent("b", 0.3)
    a.behaviour = Behaviour.BROKEN
    caller = await scene.caller()
    for _ in range(3):
        done = await caller.ask(**scene.request())
        assert done.attempts[-1][:2] == ("a", "failed")
    assert scene.told(done.decision) == [*DECIDED, "invoke:failed", "state:ejected"]
    assert scene.breakers() == {}
    assert scene.health("a")["ejected"] == ["echo"]
    after = await caller.ask(**scene.request(limit=5))
    assert (after.attempts[-1][:2], left_out(after.decision)) == (("b", "succeeded"), {"a": "ejected"})
    a.behaviour = Behaviour.NORMAL
    await until_answered(scene, caller)
    assert scene.health("a")["ejected"] == []
    await until(lambda: scene.changes("a"), ["state:ejected", "state:readmitted"], "events")


async def test_of_two_agents_that_both_fail_on_and_on_only_one_is_ejected(stage: Stage) -> None:
    scene = stage("share", breaker=LEFT_OUT, ejection={"consecutive_failures": 2, "max_ejected_share": 0.5})
    both = [scene.agent("a"), scene.agent("b", 0.3)]
    for agent in both:
        agent.behaviour = Behaviour.BROKEN
    caller = await scene.caller()
    stories = [await caller.ask(**scene.request()) for _ in range(6)]
    assert [done.attempts[-1].agent_id for done in stories] == ["a", "a", "b", "b", "b", "b"]
    assert [scene.health(each)["ejected"] for each in ("a", "b")] == [["echo"], []]
    assert [scene.told(done.decision)[4:] for done in stories] == [
        ["invoke:failed", "state:ejected"] if number == 1 else ["invoke:failed"] for number in range(6)
    ]


async def test_503_with_retry_after_keeps_the_caller_away_for_that_time(stage: Stage) -> None:
    scene = stage("busy")
    a = scene.agent("a")
    a.behaviour = Behaviour.BUSY
    caller = await scene.caller()
    done = await caller.ask(**scene.request())
    busy_at = time.monotonic()
    assert [each[:2] for each in done.attempts] == [("a", "failed")]
    assert scene.told(done.decision) == [*DECIDED, "invoke:failed", "breaker:open"]
    a.behaviour = Behaviour.NORMAL
    away = await caller.ask(**scene.request())
    assert (away.decision["action"], away.decision["reason"], away.attempts) == ("fallback", "breaker_open", [])
    assert 0 < away.decision["retry_after_ms"] <= 1000
    assert scene.told(away.decision) == ["request", "read:sure", "route:fallback", "response:fallback"]
    await until_answered(scene, caller)
    assert time.monotonic() - busy_at >= 0.95
    assert len(a.asked) == 2
    assert scene.breakers()["a"][0] == "closed"
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
    await until(lambda: scene.breakers()["a"][0], "half_open", "it stays open")
    crowd = await at_once(20, lambda: caller.decide(**scene.request("probe")))
    assert Counter(each["reason"] for each in crowd) == {"only_candidate": 1, "breaker_open": 19}
    [probe] = [each for each in crowd if each["action"] == "invoke"]
    done = await caller.carry_out(probe, {"text": "probe"})
    assert [each[:2] for each in done.attempts] == [("a", "succeeded")]
    assert a.asked.count("probe") == 1
    assert scene.told(probe) == [*DECIDED, "invoke:succeeded", "breaker:closed"]
    assert scene.breakers()["a"][0] == "closed"
    await until(lambda: scene.changes("a"), ["breaker:open", "breaker:half_open", "breaker:closed"], "events")
    after = await at_once(20, lambda: caller.ask(**scene.request()))
    assert {done.attempts[-1].status for done in after} == {"succeeded"}


async def test_a_probe_that_fails_is_one_call_and_opens_the_breaker_again(stage: Stage) -> None:
    scene = stage("probe-fails", breaker=RECOVERING)
    a, b = scene.agent("a", idempotent=True, backup_agent_id="b"), scene.agent("b", 0.3)
    a.behaviour = Behaviour.HUNG
    caller = await scene.caller()
    await caller.ask(**scene.request())
    assert (len(a.asked), scene.breakers()["a"][0]) == (2, "open")
    await until(lambda: scene.breakers()["a"][0], "half_open", "it stays open")
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
    await until(lambda: scene.breakers()["b"][0], "half_open", "it stays open")
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
    await until(lambda: scene.breakers()[SHARED][0], "half_open", "it stays open")
    crowd = await at_once(20, lambda: caller.decide(**scene.request("probe")))
    reached = Counter(each["target"]["agent_id"] for each in crowd)
    assert (reached["a"] + reached["b"], reached["c"]) == (1, 19)
    [probe] = [each for each in crowd if each["target"]["agent_id"] != "c"]
    await caller.carry_out(probe, {"text": "probe"})
    assert scene.breakers()[SHARED][0] == "closed"
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
    await until(lambda: scene.breakers()["a"][0], "half_open", "it stays open")
    claimed = client.post("/queue/claim", json={"namespace": scene.name}).json()
    [taken] = claimed["tickets"]
    assert (taken["ticket"], taken["decision_id"]) == (ticket, waiting["decision_id"])
    assert client.post("/queue/claim", json={"namespace": scene.name}).json()["tickets"] == []
    done = await caller.ask(**taken["request"])
    assert (done.answer, agent.asked[-1]) == ({"text": "WAIT FOR IT"}, "wait for it")
    settlement = {"claim_id": claimed["claim_id"], "status": "settled"}
    assert client.post(f"/queue/{ticket}/settle", json=settlement).json()["state"] == "settled"
    assert scene.breakers()["a"][0] == "closed"
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


async def test_of_64_at_once_exactly_as_many_pass_as_have_a_place(stage: Stage) -> None:
    scene = stage("places")
    scene.agent("a", max_inflight=5)
    caller = await scene.caller()
    await caller.ask(**scene.request())
    crowd = await at_once(64, lambda: caller.decide(**scene.request("all at once")))
    assert Counter(each["reason"] for each in crowd) == {"only_candidate": 5, "at_capacity": 59}
    passed = [each for each in crowd if each["action"] == "invoke"]
    assert {each["target"]["agent_id"] for each in passed} == {"a"}
    assert scene.health("a")["in_flight"] == 5
    for each in passed:
        await caller.carry_out(each, {"text": "all at once"})
    assert scene.health("a")["in_flight"] == 0
    assert scene.told(passed[0]) == [*DECIDED, "invoke:succeeded"]
    again = await at_once(64, lambda: caller.decide(**scene.request("once more")))
    assert Counter(each["action"] for each in again) == {"invoke": 5, "fallback": 59}
    assert scene.breakers() == {"a": ("closed", 6, 0)}
    for each in again:
        if each["action"] == "invoke":
            await caller.tell(each["decision_id"], 1, status="cancelled")
    batch = [scene.request("in one", caller={"agent_id": CALLER})] * 64
    answers = scene.server.client.post("/route/batch", json=batch).json()
    assert Counter(each["reason"] for each in answers) == {"only_candidate": 5, "at_capacity": 59}
    assert scene.health("a")["in_flight"] == 5


@pytest.mark.parametrize("over", ["degrade", "queue", "reject"])
async def test_of_64_at_once_exactly_as_many_pass_as_the_callers_own_quota_has(stage: Stage, over: str) -> None:
    name = f"own-{over}"
    quota = {"per_caller": True, "namespace": name, "max_calls": 7, "window_ms": 600_000, "over": over}
    scene = stage(name, quotas=[quota])
    scene.agent("a")
    async with httpx.AsyncClient(base_url=scene.server.client.base_url, timeout=20) as router:
        body = scene.request("all at once", caller={"agent_id": CALLER})
        crowd = await at_once(64, lambda: router.post("/route", json=body))
    told = [(each.status_code, each.json().get("action"), each.json().get("reason")) for each in crowd]
    beyond = {
        "degrade": (200, "fallback", "quota"),
        "queue": (200, "queue", "queued"),
        "reject": (429, None, None),
    }[over]
    assert Counter(told) == {(200, "invoke", "only_candidate"): 7, beyond: 57}
    waits_s = [int(each.headers["Retry-After"]) for each in crowd if each.status_code == 429]
    assert all(590 <= wait_s <= 600 for wait_s in waits_s)
    assert len(waits_s) == (57 if over == "reject" else 0)
    tickets = scene.server.client.get(f"/queue?namespace={name}&limit=1000").json()["tickets"]
    assert len(tickets) == (57 if over == "queue" else 0)
    other = await scene.caller("another")
    assert (await other.decide(**scene.request()))["action"] == "invoke"


async def test_of_64_at_once_exactly_as_many_pass_as_the_quota_has(stage: Stage) -> None:
    quota = {"agent": "a", "namespace": "quota", "max_calls": 7, "window_ms": 600_000}
    scene = stage("quota", quotas=[quota])
    agent = scene.agent("a")
    caller = await scene.caller()
    crowd = await at_once(64, lambda: caller.decide(**scene.request("all at once")))
    assert Counter(each["reason"] for each in crowd) == {"only_candidate": 7, "quota": 57}
    passed = [each for each in crowd if each["action"] == "invoke"]
    refused = next(each for each in crowd if each["action"] == "fallback")
    assert scene.told(refused) == ["request", "read:sure", "route:fallback", "response:fallback"]
    # a call that is taken back is refunded, once; those that were made are not
    for _ in range(2):
        await caller.tell(passed[0]["decision_id"], 1, status="cancelled")
    for each in passed[1:]:
        await caller.carry_out(each, {"text": "all at once"})
    assert len(agent.asked) == 6
    again = await at_once(64, lambda: caller.decide(**scene.request("once more")))
    assert Counter(each["action"] for each in again) == {"invoke": 1, "fallback": 63}
    assert scene.breakers() == {"a": ("closed", 6, 0)}


async def test_a_killed_router_has_lost_no_outcome_that_it_acknowledged_and_holds_no_place(
    stage: Stage, serve: Serve
) -> None:
    server = serve()
    scene = stage("killed", on=server)
    scene.agent("a", max_inflight=64)
    caller = await scene.caller()
    await caller.ask(**scene.request())
    for _ in range(3):
        await caller.decide(**scene.request())
    keyed: dict[str, Any] = {
        "json": scene.request("under a key", caller={"agent_id": CALLER}),
        "headers": {"Idempotency-Key": "k"},
    }
    first = server.client.post("/route", **keyed).json()
    assert scene.health("a")["in_flight"] == 4

    posted: list[str] = []
    acknowledged: list[str] = []
    enough = asyncio.Event()

    async def work() -> None:
        with suppress(httpx.TransportError):
            while True:
                decision = await caller.decide(**scene.request())
                posted.append(decision["decision_id"])
                await caller.tell(posted[-1], 1, status="succeeded", tokens=3)
                acknowledged.append(decision["decision_id"])
                if len(acknowledged) >= 200:
                    enough.set()

    workers = [asyncio.ensure_future(work()) for _ in range(16)]
    async with asyncio.timeout(30):
        await enough.wait()
    server.kill()
    await asyncio.gather(*workers)

    server.start()
    assert scene.health("a")["in_flight"] == 0
    assert scene.breakers() == {}
    again = server.client.post("/route", **keyed)
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first, "true")
    assert scene.health("a")["in_flight"] == 0
    outcomes = [{"decision_id": each, "attempt": 1, "status": "succeeded", "tokens": 3} for each in posted]
    told = server.client.post("/feedback", json=outcomes).json()
    effects = {one: receipt.get("effect", "unknown") for one, receipt in zip(posted, told, strict=True)}
    assert {effects[each] for each in acknowledged} == {"duplicate"}
    # of those without an answer anything may be stored, of each decision as much as was written in its order
    assert {effects[each] for each in posted if each not in acknowledged} <= {"duplicate", "late", "unknown"}
    n_known = sum(effect != "unknown" for effect in effects.values())
    [used] = server.client.get("/usage?group=agent&namespace=killed&agent=a").json()["usage"]
    assert (used["n_calls"], used["n_succeeded"], used["tokens"]) == (n_known + 1, n_known + 1, 3 * n_known)
    assert used["n_decisions"] >= n_known
    late = await (await scene.caller()).tell(first["decision_id"], 1, status="succeeded")
    assert late["effect"] == "late"
    assert scene.health("a")["in_flight"] == 0
    assert scene.told(first) == [*DECIDED, "invoke:succeeded"]

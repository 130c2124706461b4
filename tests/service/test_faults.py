"""Faults of real agents (SPEC R14 and more): what is decided, which breakers open, what is written down."""

from __future__ import annotations

import signal
import time

import pytest

from tests.service import agents
from tests.service.agents import Behaviour
from tests.service.conftest import Stage
from tests.service.scene import (
    BREAKER,
    DECIDED,
    LEFT_OUT,
    RECOVERING,
    TIMEOUT_MS,
    left_out,
    planned,
    until,
    until_answered,
)


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
        assert scene.state("a") == state
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
        assert scene.state("a") == "open"
        assert scene.told(done.decision)[4:] == [
            "invoke:timed_out", "invoke:timed_out", "breaker:open", "invoke:succeeded",
        ]  # fmt: skip
        process.send_signal(signal.SIGCONT)
        await until_answered(scene, caller)
        assert scene.state("a") == "closed"
        await until(lambda: scene.changes("a")[-3:], ["breaker:open", "breaker:half_open", "breaker:closed"], "events")


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

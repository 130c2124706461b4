from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from models.decision import Reason, RouteDecision
from models.outcome import Effect, OutcomeError
from models.policy import Policy
from router.live.effects import MOST_BLAMED
from router.live.sessions import SessionKey
from tests.router.test_settlement import agent, desk_of, post, routed
from tests.service_builders import Desk, service_of


async def test_calls_from_before_an_ejection_was_over_do_not_eject_again() -> None:
    desk = desk_of(
        agent("a"),
        agent("b", quality=0.2),
        breaker={"enabled": False},
        ejection={"consecutive_failures": 2, "base_ms": 1000},
    )
    old = [await routed(desk, payload={"text": str(number)}) for number in range(6)]
    for decision in old[:2]:
        await post(desk, decision, "failed")
    ejected = await routed(desk)
    assert ejected.target is not None
    assert ejected.target.agent_id == "b"
    desk.clock.ms += 1000
    for decision in old[2:]:
        assert (await post(desk, decision, "failed")).charged_to == "agent"
    for number in range(2):
        back = await routed(desk, payload={"text": f"new {number}"})
        assert back.target is not None
        assert back.target.agent_id == "a"
        await post(desk, back, "failed")
    again = await routed(desk)
    assert again.target is not None
    assert again.target.agent_id == "b"


@pytest.mark.parametrize(
    ("end", "charged_to"),
    [
        ({"status": "unreachable"}, "agent"),
        ({"status": "timed_out", "latency_ms": 15_000.0}, "agent"),
        ({"status": "timed_out", "latency_ms": 100.0}, "caller"),
        ({"status": "failed", "error": OutcomeError(retry_after_ms=1)}, "agent"),
        ({"status": "failed", "error": OutcomeError(dependency="crm")}, "dependency"),
    ],
    ids=str,
)
async def test_agents_that_did_not_work_on_a_request_say_nothing_against_it(
    end: dict[str, Any], charged_to: str
) -> None:
    desk = desk_of(agent("a", depends_on=["crm"]), agent("b", depends_on=["crm"]))
    fields: dict[str, Any] = {"payload": {"text": "the same"}}
    for agent_id in "abab":
        decision = await routed(desk, target_agent=agent_id, **fields)
        assert decision.target is not None
        assert decision.target.agent_id == agent_id
        assert (await post(desk, decision, **end)).charged_to == charged_to
        desk.clock.ms += 1
    assert (await routed(desk, **fields)).reason is not Reason.POISON_REQUEST


async def test_what_is_not_held_against_the_request_opens_the_breakers_of_a_target_and_its_backup() -> None:
    desk = desk_of(agent("a", backup_agent_id="b"), agent("b", quality=0.2), breaker={"min_calls": 3, "jitter": 0.0})
    for number in range(3):
        decision = await routed(desk, payload={"text": str(number)})
        for attempt in range(1, 4):
            await post(desk, decision, "unreachable", attempt=attempt)
    views = desk.live.breakers.listed(desk.clock.monotonic_ms())
    assert {view.key[1][1]: str(view.state) for view in views} == {"a": "open", "b": "open"}
    assert (await routed(desk)).reason is Reason.BREAKER_OPEN


@pytest.mark.parametrize("status", ["cancelled", "rejected"])
async def test_an_end_that_is_the_callers_does_not_clear_a_poisonous_request(status: str) -> None:
    desk = desk_of(agent("a"), agent("b"), agent("c"))
    fields: dict[str, Any] = {"payload": {"text": "drop table"}}
    first, second, third = [await routed(desk, target_agent=each, **fields) for each in "abc"]
    await post(desk, first, "failed")
    assert (await post(desk, second, "failed")).charged_to == "request"
    assert (await post(desk, third, status)).charged_to == "caller"
    assert (await routed(desk, **fields)).reason is Reason.POISON_REQUEST
    await post(desk, third, "succeeded")
    assert (await routed(desk, **fields)).reason is not Reason.POISON_REQUEST


async def test_an_outage_in_which_every_request_fails_everywhere_opens_the_breakers_all_the_same() -> None:
    desk = desk_of(
        agent("a", backup_agent_id="b"),
        agent("b", quality=0.2),
        breaker={"min_calls": 3, "jitter": 0.0},
        ejection={"enabled": False},
    )
    ends = []
    for number in range(MOST_BLAMED + 3):
        decision = await routed(desk, payload={"text": str(number)})
        receipts = [await post(desk, decision, "failed", attempt=attempt) for attempt in (1, len(decision.plan))]
        ends.append([receipt.charged_to for receipt in receipts])
    assert ends == [["agent", "request"]] * MOST_BLAMED + [["agent", "agent"]] * 3
    views = desk.live.breakers.listed(desk.clock.monotonic_ms())
    assert {view.key[1][1]: (str(view.state), view.n_failures) for view in views} == {
        "a": ("open", 3),
        "b": ("open", 3),
    }
    assert (await routed(desk)).reason is Reason.BREAKER_OPEN


async def test_requests_that_fail_everywhere_are_blamed_as_long_as_others_are_served_in_between() -> None:
    desk = desk_of(
        agent("a", backup_agent_id="b"), agent("b", quality=0.2), breaker={"min_calls": 1, "failure_share": 0.9}
    )
    for number in range(3 * MOST_BLAMED):
        for agent_id in "ab":
            well = await routed(desk, target_agent=agent_id, payload={"text": f"well {agent_id}{number}"})
            await post(desk, well)
        decision = await routed(desk, target_agent="a", payload={"text": str(number)})
        await post(desk, decision, "failed", attempt=1)
        assert (await post(desk, decision, "failed", attempt=len(decision.plan))).charged_to == "request"
    assert {str(view.state) for view in desk.live.breakers.listed(desk.clock.monotonic_ms())} == {"closed"}


async def of_own_choice(desk: Desk, agent_id: str, **fields: Any) -> RouteDecision:
    """A decision beside which the caller calls this agent, whatever the answer says."""
    return await routed(desk, caller_choice={"agent_id": agent_id}, **fields)


async def of_the_plan(desk: Desk, agent_id: str, **fields: Any) -> RouteDecision:
    return await routed(desk, target_agent=agent_id, **fields)


def touched(desk: Desk) -> dict[str, object]:
    """What outcomes may have changed."""
    live, now_ms = desk.live, desk.clock.monotonic_ms()
    session = SessionKey("web", "default", "s1")
    figures = live.health.latencies.figures(("default", "b", "1.0.0"), now_ms, 300_000)
    return {
        "breakers": [(view.key[0], view.n_calls) for view in live.breakers.listed(now_ms) if view.n_calls],
        "outcomes": figures.n_outcomes,
        "ejected": [each.agent[1] for each in live.outliers.listed(now_ms)],
        "poison": len(live.poison),
        "awaited": live.sessions.waiting(session, now_ms) is not None,
        "posting": "web" in live.posting,
    }


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (
            of_own_choice,
            {"breakers": [], "outcomes": 0, "ejected": [], "poison": 0, "awaited": False, "posting": False},
        ),
        (
            of_the_plan,
            {
                "breakers": [("web", 5), ("crm", 5)],
                "outcomes": 5,
                "ejected": ["b"],
                "poison": 5,
                "awaited": True,
                "posting": True,
            },
        ),
    ],
)
async def test_an_outcome_of_a_callers_own_choice_touches_no_live_state(
    decide: Callable[..., Awaitable[RouteDecision]], expected: dict[str, object]
) -> None:
    desk = desk_of(agent("a"), agent("b", quality=0.2, depends_on=["crm"]))
    desk.live.posting.clear()
    for number in range(5):
        fields = {"caller": {"agent_id": "web", "session_id": "s1"}, "payload": {"text": str(number)}}
        decision = await decide(desk, "b", **fields)
        receipt = await post(desk, decision, "failed", awaits_input=True)
        assert (receipt.effect, receipt.charged_to) == (Effect.ACCEPTED, "agent")
    assert touched(desk) == expected


async def test_an_amended_outcome_of_a_callers_own_choice_takes_nothing_from_what_others_told() -> None:
    desk = desk_of(agent("a"), agent("b", quality=0.2))
    await post(desk, await of_the_plan(desk, "b"), "failed")
    before = touched(desk)
    own = await of_own_choice(desk, "b")
    for status in ("failed", "succeeded", "failed"):
        assert (await post(desk, own, status)).effect in (Effect.ACCEPTED, Effect.AMENDED)
    assert touched(desk) == before


async def test_the_same_request_of_callers_own_choices_is_never_poison_nor_is_it_cleared_by_one() -> None:
    desk = desk_of(agent("a"), agent("b"), agent("c"))
    fields: dict[str, Any] = {"payload": {"text": "drop table"}}
    for agent_id in "abc":
        assert (await post(desk, await of_own_choice(desk, agent_id, **fields), "failed")).charged_to == "agent"
    assert (await routed(desk, **fields)).reason is not Reason.POISON_REQUEST
    planned = [await of_the_plan(desk, each, **fields) for each in "ab"]
    own = await of_own_choice(desk, "c", **fields)
    assert [(await post(desk, each, "failed")).charged_to for each in planned] == ["agent", "request"]
    await post(desk, own)
    assert (await routed(desk, **fields)).reason is Reason.POISON_REQUEST


async def test_a_quota_is_used_up_by_planned_calls_alone() -> None:
    quota = {"agent": "b", "max_tokens": 100, "window_ms": 60_000}
    cards = [agent("a", quality=0.2), agent("b")]
    desk = service_of(cards, Policy.model_validate({"quotas": [quota]}))
    desk.live.posting.add("")
    await post(desk, await of_own_choice(desk, "b"), tokens=5000)
    planned = await routed(desk)
    assert planned.target is not None
    assert planned.target.agent_id == "b"
    await post(desk, planned, tokens=5000)
    after = await routed(desk)
    assert after.target is not None
    assert after.target.agent_id == "a"

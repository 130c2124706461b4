from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import pytest

from models.card import AgentCard
from models.decision import Action, Reason, RouteDecision
from models.errors import ForbiddenError
from models.events import LearnerRow, OutcomeRow, SpanRow, WeightRow
from models.outcome import Outcome
from models.policy import IntentPolicy, NamespacePolicy, Policy
from router.permit import OPEN, Grants
from router.service import Ids
from router.spans import events_of
from tests.builders import capability, card, request
from tests.service_builders import Desk, key_grants, service_of

UNIT = 1_000_000


def agent(agent_id: str, quality: float = 0.9, **fields: Any) -> AgentCard:
    of_capability = {name: fields.pop(name) for name in ("risk", "cost_level") if name in fields}
    return card(agent_id, capability("echo", ["do echo"], quality=quality, **of_capability), **fields)


def desk_of(*cards: AgentCard, learning: dict[str, Any] | None = None, **policy: Any) -> Desk:
    desk = service_of(
        cards or [agent("a", 0.9), agent("b", 0.6)],
        Policy.model_validate({"learning": learning or {}, "defaults": NamespacePolicy(**policy)}),
    )
    desk.live.posting.update({"", "web"})
    return desk


async def routed(desk: Desk, caller: str = "web", **fields: Any) -> RouteDecision:
    return await desk.route(request(None, intent="echo", caller={"agent_id": caller}, **fields))


async def settled(desk: Desk, settling: Any) -> Any:
    """The end of a settling, the journal written meanwhile."""
    task = asyncio.ensure_future(settling)
    while not task.done():
        await asyncio.sleep(0)
        await desk.journal.flush(1000)
    return task.result()


async def post(desk: Desk, decision: RouteDecision, status: str = "succeeded", **how: Any) -> Any:
    outcome = Outcome.model_validate({"decision_id": decision.decision_id, "status": status, **how})
    [receipt] = await settled(desk, desk.settlement.settle([outcome], OPEN))
    return receipt


def sums(desk: Desk, agent_id: str) -> tuple[float, float]:
    return desk.learning.learner.evidence_of(("default", agent_id, "1.0.0"), "echo")


def stored(desk: Desk) -> Counter[tuple[str, str]]:
    """Evidence as the store adds it up: (agent, "n" or "s") → parts."""
    found: Counter[tuple[str, str]] = Counter()
    for row in desk.records.rows:
        if isinstance(row, WeightRow):
            found[row.agent_id, "n"] += row.n
            found[row.agent_id, "s"] += row.s
    return found


async def test_an_outcome_becomes_evidence_and_the_next_decision_names_the_new_version() -> None:
    desk = desk_of()
    first = await routed(desk)
    assert (first.generations.weights, first.target and first.target.agent_id) == (0, "a")
    await post(desk, first, quality=0.25)
    assert sums(desk, "a") == (1.0, 0.25)
    assert stored(desk) == {("a", "n"): UNIT, ("a", "s"): UNIT // 4}
    assert any(isinstance(row, LearnerRow) for row in desk.records.rows)
    assert (await routed(desk)).generations.weights == desk.learning.learner.version > 0


async def test_an_amendment_undoes_exactly_what_it_replaces() -> None:
    desk = desk_of()
    decision = await routed(desk)
    await post(desk, decision, "succeeded", quality=0.3)
    await post(desk, decision, "failed")
    assert sums(desk, "a") == (1.0, 0.0)
    await post(desk, decision, "cancelled")
    assert sums(desk, "a") == (0.0, 0.0)
    assert not any(stored(desk).values())


async def test_an_outcome_of_an_earlier_run_is_undone_by_what_was_written_down_of_it() -> None:
    desk = desk_of()
    decision = await routed(desk)
    await post(desk, decision, "succeeded")
    desk.live.opened._decisions.clear()
    await post(desk, decision, "rejected")
    assert sums(desk, "a") == (0.0, 0.0)
    rows = [row for row in desk.records.rows if isinstance(row, OutcomeRow)]
    assert [row.learnt is not None for row in rows] == [True, False]


@pytest.mark.parametrize("status", ["cancelled", "rejected"])
async def test_what_is_not_the_agent_s_is_not_learned(status: str) -> None:
    desk = desk_of()
    await post(desk, await routed(desk), status)
    assert sums(desk, "a") == (0.0, 0.0)


async def test_a_request_that_fails_everywhere_is_taken_out_of_the_evidence_again() -> None:
    desk = desk_of(agent("a", 0.9), agent("b", 0.6), agent("c", 0.5))
    for name in ("a", "b"):
        decision = await desk.route(request("do echo", intent="echo", target_agent=name, caller={"agent_id": "web"}))
        await post(desk, decision, "failed", error={"class": "bad_input"})
    assert sums(desk, "a") == sums(desk, "b") == (0.0, 0.0)
    assert not any(stored(desk).values())


async def fail_a(desk: Desk, n: int = 60) -> None:
    """Agent a fails all the time, b never."""
    for _ in range(n):
        decision = await routed(desk)
        assert decision.target is not None
        await post(desk, decision, "failed" if decision.target.agent_id == "a" else "succeeded")
        desk.clock.advance(10_000)


async def test_a_failing_agent_loses_its_traffic_to_one_that_declared_less() -> None:
    desk = desk_of(breaker={"enabled": False}, ejection={"enabled": False})
    await fail_a(desk)
    last = await desk.route(request(None, intent="echo", caller={"agent_id": "web"}), explain=True)
    assert last.target is not None
    assert last.target.agent_id == "b"
    by_agent = {each.agent_id: each for each in last.candidates}
    assert by_agent["b"].features is not None
    assert by_agent["a"].features is not None
    assert by_agent["b"].features.quality > 0.8 > by_agent["a"].features.quality


async def test_observing_keeps_what_was_learned_and_goes_by_what_is_declared() -> None:
    off = {"breaker": {"enabled": False}, "ejection": {"enabled": False}, "health": {"min_outcomes": 1000}}
    desk = desk_of(learning={"mode": "observe"}, **off)
    await fail_a(desk, 20)
    decision = await routed(desk)
    assert decision.target is not None
    assert decision.target.agent_id == "a"
    assert sums(desk, "a") == (20.0, 0.0)


async def chosen(desk: Desk, n: int = 300, **fields: Any) -> Counter[str]:
    """Whom decisions name, by changing seeds."""
    found: Counter[str] = Counter()
    for seed in range(n):
        desk.service._ids = Ids(desk.service._ids.new, partial(int, seed))
        decision = await routed(desk, dry_run=True, **fields)
        assert decision.target is not None
        assert decision.propensity is not None
        found[decision.target.agent_id] += 1
        found["explored"] += decision.reason is Reason.EXPLORED
    return found


async def test_exploring_tries_the_other_one_too_and_says_so() -> None:
    found = await chosen(desk_of(agent("a", 0.9), agent("b", 0.8), learning={"mode": "explore"}))
    assert found["b"] > 10
    assert found["explored"] == found["b"]


@pytest.mark.parametrize(
    ("risk", "mode", "explores"),
    [
        ("low", "exploit", True),
        ("normal", "exploit", False),
        ("high", "explore", False),
        ("normal", "explore", True),
        ("low", "observe", False),
    ],
)
async def test_what_may_be_explored_is_a_matter_of_risk(risk: Any, mode: str, explores: bool) -> None:
    desk = desk_of(
        agent("a", 0.9, risk="low"),
        agent("b", 0.6, risk=risk),
        learning={"mode": mode, "floor": 0.2},
    )
    assert ((await chosen(desk))["b"] > 0) == explores


async def test_the_policy_s_risk_of_an_intent_outranks_the_cards() -> None:
    desk = desk_of(
        agent("a", 0.9, risk="low"),
        agent("b", 0.6, risk="low"),
        learning={"mode": "explore", "floor": 0.2},
        intents={"echo": IntentPolicy(risk="high")},
    )
    assert (await chosen(desk))["b"] == 0


async def test_who_wants_the_best_is_not_explored_upon() -> None:
    desk = desk_of(learning={"mode": "explore", "floor": 0.2})
    assert (await chosen(desk, preference="best"))["b"] == 0


async def test_a_learner_that_fails_fails_no_decision_and_no_outcome(caplog: pytest.LogCaptureFixture) -> None:
    desk = desk_of()
    desk.learning.learner._memory = None  # type: ignore[assignment]
    decision = await desk.service.route(request(None, intent="echo", caller={"agent_id": "web"}), OPEN)
    assert decision[0].target is not None
    assert decision[0].target.agent_id == "a"
    assert (await post(desk, decision[0])).effect == "accepted"
    assert desk.learning.n_failures >= 2
    assert "decisions go on without it" in caplog.text


async def test_nothing_is_learned_while_frozen() -> None:
    desk = desk_of()
    desk.learning.learner.freeze("by hand", 0)
    await post(desk, await routed(desk))
    assert sums(desk, "a") == (0.0, 0.0)


async def test_learning_stops_by_itself_where_outcomes_stop_coming() -> None:
    desk = desk_of(learning={"freeze": {"window": 20}})
    for _ in range(60):
        await post(desk, await routed(desk))
    for _ in range(40):
        last = await routed(desk)
        desk.live.leases.give_back(last.decision_id)
    await post(desk, last)
    assert desk.learning.learner.frozen is not None
    assert desk.learning.learner.frozen.startswith(
        "by itself: most decisions are of callers whose outcomes have stopped"
    )
    for _ in range(60):
        await post(desk, await routed(desk))
    assert desk.learning.learner.frozen is None


async def test_a_thaw_by_hand_holds() -> None:
    desk = desk_of(learning={"freeze": {"window": 20}})
    for _ in range(60):
        await post(desk, await routed(desk))
    for _ in range(40):
        last = await routed(desk)
        desk.live.leases.give_back(last.decision_id)
    await post(desk, last)
    assert desk.learning.learner.is_frozen
    desk.learning.thaw(0)
    for _ in range(5):
        await post(desk, await routed(desk))
    assert not desk.learning.learner.is_frozen
    assert desk.learning.watch.trusts("web")


async def test_an_amendment_while_frozen_undoes_what_it_replaces_and_teaches_nothing() -> None:
    desk = desk_of()
    decision = await routed(desk)
    await post(desk, decision, "succeeded")
    desk.learning.learner.freeze("by hand", 0)
    await post(desk, decision, "failed")
    assert sums(desk, "a") == (0.0, 0.0)
    desk.learning.thaw(0)
    await post(desk, decision, "succeeded", quality=0.5)
    assert sums(desk, "a") == (1.0, 0.5)


async def test_a_decision_names_the_weights_it_used_though_outcomes_came_meanwhile() -> None:
    desk = desk_of()
    decision = await routed(desk)
    await post(desk, decision)
    case_version = desk.learning.version
    again = await routed(desk)
    assert again.generations.weights == case_version > 0


async def test_high_risk_is_not_explored_when_the_risky_agent_is_left_out() -> None:
    desk = desk_of(
        agent("a", 0.9, risk="high"),
        agent("b", 0.9, risk="low"),
        agent("c", 0.2, risk="low"),
        learning={"floor": 0.3},
    )
    assert (await chosen(desk, exclude=["a"]))["c"] == 0


async def test_a_limited_rise_takes_no_session_from_its_agent() -> None:
    desk = desk_of(agent("a", 0.9), agent("b", 0.6), learning={"max_rise": 0.1})
    for _ in range(40):
        await routed(desk, "quiet", target_agent="b")
    desk.clock.advance(3_600_001)
    for _ in range(40):
        await routed(desk, "quiet")
    asked = await desk.route(
        request(None, intent="echo", caller={"agent_id": "web", "session_id": "s"}, target_agent="b", exclude=["a"])
    )
    await post(desk, asked, awaits_input=True)
    for _ in range(60):
        await routed(desk, "quiet", target_agent="a")
    answer = await desk.route(request("yes", caller={"agent_id": "web", "session_id": "s"}))
    assert answer.reason is Reason.STICKY_SESSION
    assert answer.target is not None
    assert answer.target.agent_id == "b"


async def test_no_part_of_a_shadowed_sentence_takes_a_place() -> None:
    desk = service_of(
        [
            card("a", capability("play_music", ["play some music"])),
            card("b", capability("set_timer", ["set a timer"])),
        ]
    )
    desk.live.posting.add("web")
    told = await desk.route(
        request("play some music. set a timer", caller={"agent_id": "web"}, caller_choice={"agent_id": "a"})
    )
    assert len(told.parts) == 1
    assert [each.lease for each in (told, *told.parts)] == [None, None]


@pytest.mark.parametrize(
    ("choice", "grants"),
    [
        ({"agent_id": "v", "namespace": "other"}, key_grants()),
        ({"agent_id": "nobody"}, key_grants()),
        ({"agent_id": "closed"}, key_grants()),
    ],
)
async def test_nothing_is_learned_of_a_choice_that_the_router_could_not_have_made(choice: Any, grants: Grants) -> None:
    desk = service_of(
        [
            agent("a", 0.9),
            agent("closed", 0.9, allowed_callers=["another"]),
            agent("v", 0.9, namespace="other"),
        ]
    )
    decision = await desk.route(request(None, intent="echo", caller={}, caller_choice=choice), grants)
    assert any("caller_choice" in each for each in decision.degraded)
    receipts = []
    for status in ("failed", "succeeded", "succeeded", "cancelled"):
        outcome = Outcome.model_validate({"decision_id": decision.decision_id, "status": status})
        receipts += await settled(desk, desk.settlement.settle([outcome], grants))
        desk.live.opened._decisions.clear()
    assert [each.effect for each in receipts] == ["accepted", "amended", "duplicate", "amended"]
    assert {(each.charged_to, each.learned) for each in receipts} == {("nobody", False)}
    assert desk.learning.learner.version == 0
    events = [each for row in desk.records.rows if isinstance(row, SpanRow) for each in events_of(row.row)]
    charged = [orjson.loads(each.payload)["charged_to"] for each in events if each.event_type == "invoke"]
    assert charged == ["nobody"] * 3


async def test_a_receipt_says_whether_the_outcome_or_its_amendment_was_learned_from() -> None:
    desk = desk_of()
    decision = await routed(desk, caller_choice={"agent_id": "b"})
    told = [await post(desk, decision, status) for status in ("failed", "succeeded", "succeeded", "cancelled")]
    assert [(each.effect, each.charged_to, each.learned) for each in told] == [
        ("accepted", "agent", True), ("amended", "agent", True), ("duplicate", "agent", True),
        ("amended", "caller", False),
    ]  # fmt: skip
    desk.learning.learner.freeze("by hand", 0)
    told = [await post(desk, decision, status) for status in ("failed", "failed")]
    assert [(each.effect, each.charged_to, each.learned) for each in told] == [
        ("amended", "agent", False), ("duplicate", "agent", False),
    ]  # fmt: skip


async def test_a_key_cannot_shadow_into_a_namespace_that_it_does_not_reach() -> None:
    desk = service_of([agent("a", 0.9), agent("v", 0.9, namespace="other")])
    asked = request(None, intent="echo", caller={}, caller_choice={"agent_id": "v", "namespace": "other"})
    with pytest.raises(ForbiddenError, match="'other'"):
        await desk.route(asked, replace(key_grants(), namespaces=frozenset({"default"})))


async def test_a_caller_that_keeps_changing_its_mind_is_learned_from_no_longer() -> None:
    desk = desk_of(learning={"freeze": {"window": 20}})
    for _ in range(8):
        decision = await routed(desk, "web")
        await post(desk, decision, "succeeded")
        await post(desk, decision, "failed")
    assert desk.learning.watch.distrusted == ["web"]
    before = sums(desk, "a")
    await post(desk, await routed(desk, "web"))
    assert sums(desk, "a") == before


async def test_a_share_that_may_not_rise_faster_leaves_the_agent_out_with_a_stage() -> None:
    desk = desk_of(agent("a", 0.9), agent("b", 0.6), learning={"max_rise": 0.1})
    for _ in range(40):
        assert (await routed(desk, "quiet", target_agent="b")).target is not None
    desk.clock.advance(3_600_001)
    for _ in range(40):
        last = await desk.route(request(None, intent="echo", caller={"agent_id": "quiet"}), explain=True)
    assert last.target is not None
    assert last.target.agent_id == "b"
    assert [each.agent_id for each in last.candidates if each.excluded == "share"] == ["a"]


async def test_a_shadowed_decision_takes_no_place_and_its_outcome_is_the_caller_s_agent_s() -> None:
    desk = desk_of()
    decision = await routed(desk, caller_choice={"agent_id": "b"})
    assert (decision.action, decision.lease) == (Action.INVOKE, None)
    assert decision.target is not None
    assert decision.target.agent_id == "a"
    assert desk.live.leases.in_flight(("default", "a", "1.0.0")) == 0
    receipt = await post(desk, decision, "succeeded")
    assert (receipt.effect, receipt.charged_to) == ("accepted", "agent")
    assert (sums(desk, "a"), sums(desk, "b")) == ((0.0, 0.0), (1.0, 1.0))


async def test_a_shadowed_decision_of_an_earlier_run_is_still_the_caller_s_agent_s() -> None:
    desk = desk_of()
    decision = await routed(desk, caller_choice={"agent_id": "b"})
    desk.live.opened._decisions.clear()
    await post(desk, decision, "failed")
    assert (sums(desk, "a"), sums(desk, "b")) == ((0.0, 0.0), (1.0, 0.0))


async def test_a_judge_who_adds_a_quality_to_every_outcome_is_trusted() -> None:
    desk = desk_of(learning={"freeze": {"window": 20}})
    for _ in range(30):
        decision = await routed(desk)
        await post(desk, decision, "succeeded")
        await post(desk, decision, "succeeded", quality=0.6)
    assert desk.learning.watch.distrusted == []
    n_outcomes, worth = sums(desk, "a")
    assert (n_outcomes, worth) == pytest.approx((30, 18))

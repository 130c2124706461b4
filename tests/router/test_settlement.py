from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from models.card import AgentCard
from models.decision import Action, Reason, RouteDecision
from models.errors import ConflictError, InvalidRequestError, NotFoundError, QuotaExceededError
from models.events import OutcomeRow, UsageRow
from models.key import ADMIN
from models.outcome import Effect, Outcome, OutcomeError, Receipt
from models.policy import NamespacePolicy, Policy
from router.live.breaker_state import BreakerState, DependencyKey
from router.permit import OPEN, Grants
from tests.builders import capability, card, request
from tests.service_builders import Desk, key_grants, service_of


def agent(agent_id: str, intent: str = "echo", quality: float = 0.9, **fields: Any) -> AgentCard:
    return card(agent_id, capability(intent, [f"do {intent}"], quality=quality), **fields)


def desk_of(*cards: AgentCard, **policy: Any) -> Desk:
    """A desk whose callers are known to post outcomes, so that places are taken for them."""
    desk = service_of(cards or [agent("a")], Policy(defaults=NamespacePolicy(**policy)))
    desk.live.posting.update({"", "web", "key"})
    return desk


async def post(
    desk: Desk, decision: RouteDecision, status: str = "succeeded", grants: Grants = OPEN, **how: Any
) -> Any:
    """The receipt, or the error, of one outcome."""
    outcome = Outcome.model_validate({"decision_id": decision.decision_id, "status": status, **how})
    settling = desk.settlement.settle([outcome], grants)
    [receipt] = await settled(desk, settling)
    return receipt


async def settled(desk: Desk, settling: Any) -> Any:
    """The end of a settling, the journal written meanwhile."""
    task = asyncio.ensure_future(settling)
    while not task.done():
        await asyncio.sleep(0)
        await desk.journal.flush(1000)
    return task.result()


async def routed(desk: Desk, intent: str = "echo", grants: Grants = OPEN, **fields: Any) -> RouteDecision:
    return await desk.route(request(None, intent=intent, **fields), grants)


def in_flight(desk: Desk, agent_id: str = "a") -> int:
    return desk.live.leases.in_flight(("default", agent_id, "1.0.0"))


async def test_an_outcome_gives_the_place_back_and_is_stored() -> None:
    desk = desk_of()
    decision = await routed(desk)
    assert decision.lease is not None
    assert (decision.lease.id, in_flight(desk)) == (decision.decision_id, 1)
    receipt = await post(desk, decision, latency_ms=120, tokens=50)
    assert receipt == Receipt(
        decision_id=decision.decision_id, attempt=1, effect=Effect.ACCEPTED, charged_to="agent", learned=True
    )
    assert in_flight(desk) == 0
    [row] = [row for row in desk.records.rows if isinstance(row, OutcomeRow)]
    assert (row.decision_id, row.attempt, row.charged) == (decision.decision_id, 1, "agent")
    assert orjson.loads(row.body)["latency_ms"] == 120


async def test_the_same_outcome_again_changes_nothing() -> None:
    desk = desk_of()
    decision = await routed(desk)
    await post(desk, decision, "failed", idempotency_key="k")
    n_rows = len(desk.records.rows)
    again = await post(desk, decision, "failed", idempotency_key="k")
    assert again.effect is Effect.DUPLICATE
    assert (await post(desk, decision, "failed")).effect is Effect.DUPLICATE
    assert len(desk.records.rows) == n_rows
    [view] = desk.live.breakers.listed(desk.clock.monotonic_ms())
    assert (view.n_calls, view.n_failures) == (1, 1)


async def test_a_key_with_another_content_is_a_conflict() -> None:
    desk = desk_of()
    decision = await routed(desk)
    await post(desk, decision, "failed", idempotency_key="k")
    assert isinstance(await post(desk, decision, "succeeded", idempotency_key="k"), ConflictError)


async def test_an_amendment_replaces_the_earlier_contribution_exactly() -> None:
    desk = desk_of()
    decision, other = await routed(desk), await routed(desk)
    await post(desk, decision, "failed", tokens=70, latency_ms=30.0)
    await post(desk, other, "succeeded", tokens=5, latency_ms=10.0)
    amended = await post(desk, decision, "succeeded", tokens=20, latency_ms=40.0)
    assert amended.effect is Effect.AMENDED
    [view] = desk.live.breakers.listed(desk.clock.monotonic_ms())
    assert (view.n_calls, view.n_failures) == (2, 0)
    used = [row for row in desk.records.rows if isinstance(row, UsageRow) and row.agent_id == "a"]
    n_calls = sum(row.n_calls for row in used)
    assert (n_calls, sum(row.n_succeeded for row in used), sum(row.tokens for row in used)) == (2, 2, 25)
    assert (sum(row.n_latencies for row in used), sum(row.latency_ms for row in used)) == (2, 50.0)
    assert in_flight(desk) == 0


async def test_an_unknown_decision_is_told_and_the_rest_is_accepted() -> None:
    desk = desk_of()
    decision = await routed(desk)
    outcomes = [
        Outcome.model_validate({"decision_id": name, "status": "succeeded"})
        for name in ("no-such-one", decision.decision_id)
    ]
    unknown, known = await settled(desk, desk.settlement.settle(outcomes, OPEN))
    assert isinstance(unknown, NotFoundError)
    assert known.effect is Effect.ACCEPTED


async def test_only_the_caller_of_a_decision_or_an_administrator_tells_of_it() -> None:
    desk = desk_of()
    decision = await routed(desk, grants=key_grants())
    assert isinstance(await post(desk, decision, grants=key_grants(caller="stranger")), NotFoundError)
    assert in_flight(desk) == 1
    receipt = await post(desk, decision, grants=key_grants(ADMIN, caller="boss"))
    assert receipt.effect is Effect.ACCEPTED


async def test_an_attempt_beyond_the_plan_is_refused_by_name() -> None:
    desk = desk_of(agent("a", max_retries=0))
    error = await post(desk, await routed(desk), attempt=2)
    assert isinstance(error, InvalidRequestError)
    assert error.problems[0].path == "attempt"
    assert "the plan of this decision has 1 step" in error.message


async def test_a_decision_that_has_left_memory_is_joined_by_its_record() -> None:
    desk = desk_of(agent("a", labels={"tenant": "team-a"}))
    decision = await routed(desk, caller={"agent_id": "web"}, tenant="team-a")
    desk.live.opened._decisions.clear()
    receipt = await post(desk, decision, "failed")
    assert receipt.effect is Effect.ACCEPTED
    [view] = desk.live.breakers.listed(desk.clock.monotonic_ms())
    assert view.key == ("web", ("default", "a", "1.0.0"))
    assert in_flight(desk) == 0
    desk.live.opened._decisions.clear()
    assert (await post(desk, decision, "failed")).effect is Effect.DUPLICATE


async def test_an_outcome_after_the_lease_is_late_and_counts() -> None:
    desk = desk_of()
    decision = await routed(desk)
    desk.clock.ms += 600_000
    desk.live.leases.expire(desk.clock.monotonic_ms())
    assert in_flight(desk) == 0
    receipt = await post(desk, decision, "succeeded", latency_ms=5.0)
    assert receipt.effect is Effect.LATE
    figures = desk.live.health.latencies.figures(("default", "a", "1.0.0"), desk.clock.monotonic_ms(), 300_000)
    assert figures.n_outcomes == 1


async def test_the_place_moves_along_the_plan() -> None:
    desk = desk_of(
        agent("a", backup_agent_id="b", max_retries=0, idempotent=True, timeout_ms=1000),
        agent("b", quality=0.2, timeout_ms=1000),
    )
    decision = await routed(desk)
    assert [step.target.agent_id for step in decision.plan] == ["a", "b"]
    await post(desk, decision, "timed_out", attempt=1, latency_ms=1000.0)
    assert (in_flight(desk, "a"), in_flight(desk, "b")) == (0, 1)
    await post(desk, decision, "succeeded", attempt=2)
    assert (in_flight(desk, "a"), in_flight(desk, "b")) == (0, 0)


async def test_outcomes_out_of_order_leave_nothing_behind() -> None:
    desk = desk_of(
        agent("a", backup_agent_id="b", max_retries=0, idempotent=True, timeout_ms=1000),
        agent("b", quality=0.2, timeout_ms=1000),
    )
    decision = await routed(desk)
    await post(desk, decision, "succeeded", attempt=2)
    await post(desk, decision, "failed", attempt=1)
    assert (in_flight(desk, "a"), in_flight(desk, "b")) == (0, 0)


async def test_without_any_outcome_ever_no_places_are_taken() -> None:
    desk = service_of([agent("a", max_inflight=1)])
    decisions = [await routed(desk) for _ in range(3)]
    assert [decision.action for decision in decisions] == [Action.INVOKE] * 3
    assert [decision.lease for decision in decisions] == [None] * 3
    await post(desk, decisions[0])
    assert (await routed(desk)).lease is not None
    full = await routed(desk)
    assert (full.action, full.reason) == (Action.FALLBACK, Reason.AT_CAPACITY)


async def test_who_has_posted_is_known_after_a_restart_by_the_name_in_which_it_asks() -> None:
    desk = service_of([agent("a")])
    grants = key_grants(caller="key")
    await post(desk, await routed(desk, grants=grants, caller={"agent_id": "web"}), grants=grants)
    await post(desk, await routed(desk, grants=grants), grants=grants)
    assert await desk.records.known_callers(10) == ["key", "web"]
    assert desk.live.posting == {"key", "web"}


@pytest.mark.parametrize("status", ["rejected", "cancelled"])
async def test_what_is_the_callers_costs_no_agent_anything(status: str) -> None:
    desk = desk_of(breaker={"min_calls": 1})
    for _ in range(5):
        receipt = await post(desk, await routed(desk), status)
        assert receipt.charged_to == "caller"
    assert (await routed(desk)).action is Action.INVOKE
    assert desk.live.breakers.listed(desk.clock.monotonic_ms()) == []


async def test_a_request_that_fails_on_two_agents_is_poison_and_costs_neither() -> None:
    desk = desk_of(agent("a"), agent("b"))
    fields: dict[str, Any] = {"payload": {"text": "drop table"}}
    first = await routed(desk, **fields, target_agent="a")
    assert (await post(desk, first, "failed")).charged_to == "agent"
    second = await routed(desk, **fields, exclude=["a"])
    assert (await post(desk, second, "failed")).charged_to == "request"
    now_ms = desk.clock.monotonic_ms()
    assert [view.n_calls for view in desk.live.breakers.listed(now_ms)] in ([], [0], [0, 0])
    charged = {row.decision_id: row.charged for row in desk.records.rows if isinstance(row, OutcomeRow)}
    assert charged == {first.decision_id: "request", second.decision_id: "request"}
    third = await routed(desk, **fields)
    assert (third.action, third.reason) == (Action.FALLBACK, Reason.POISON_REQUEST)
    assert (await routed(desk, payload={"text": "another"})).action is Action.INVOKE
    await post(desk, second, "succeeded")
    assert (await routed(desk, **fields)).action is Action.INVOKE


async def test_a_breaker_opens_on_failures_and_the_agent_is_left_out() -> None:
    desk = desk_of(agent("a"), agent("b"), breaker={"min_calls": 3, "jitter": 0.0})
    for number in range(3):
        await post(desk, await routed(desk, target_agent="a", payload={"text": str(number)}), "failed")
    decision = await routed(desk, limit=5)
    assert decision.target is not None
    assert decision.target.agent_id == "b"
    assert [(each.agent_id, each.excluded) for each in decision.candidates[1:]] == [("a", "breaker")]
    [*_, event] = [event for event in desk.records.audit if event.event_type == "breaker"]
    assert event.decision == "open"
    told = orjson.loads(event.payload)
    assert (told["agent_id"], told["reason"], told["for_ms"]) == ("a", "failure_share", 30_000)
    desk.clock.ms += 30_000
    probes = [(await routed(desk, exclude=["b"])).action for _ in range(3)]
    assert probes == [Action.INVOKE, Action.FALLBACK, Action.FALLBACK]


async def test_the_only_agent_behind_an_open_breaker_is_no_plan_unless_the_policy_says_so() -> None:
    for unavailable, reason in (("fallback", Reason.BREAKER_OPEN), ("last_resort", Reason.DEGRADED)):
        desk = desk_of(breaker={"min_calls": 1, "jitter": 0.0}, unavailable=unavailable)
        await post(desk, await routed(desk), "failed")
        decision = await routed(desk)
        assert decision.reason is reason
        assert (decision.retry_after_ms, decision.plan == []) == (
            (30_000, True) if unavailable == "fallback" else (None, False)
        )
        assert any("last_resort" in each for each in decision.degraded) == (unavailable == "last_resort")


async def test_retry_after_of_an_outcome_keeps_callers_away_for_that_time() -> None:
    desk = desk_of()
    error = OutcomeError(retry_after_ms=7000).model_dump(by_alias=True)
    await post(desk, await routed(desk), "failed", error=error)
    decision = await routed(desk)
    assert (decision.reason, decision.retry_after_ms) == (Reason.BREAKER_OPEN, 7000)


async def test_a_shared_dependency_takes_out_all_that_need_it() -> None:
    desk = desk_of(
        agent("a", depends_on=["crm"]),
        agent("b", depends_on=["crm"]),
        agent("c"),
        dependency={"min_calls": 2, "jitter": 0.0},
        ejection={"enabled": False},
    )
    error = OutcomeError(dependency="crm").model_dump(by_alias=True)
    for number in range(2):
        decision = await routed(desk, target_agent="a", payload={"text": str(number)})
        assert (await post(desk, decision, "failed", error=error)).charged_to == "dependency"
    decision = await routed(desk, limit=5)
    assert decision.target is not None
    assert decision.target.agent_id == "c"
    assert {each.agent_id: each.excluded for each in decision.candidates[1:]} == {"a": "dependency", "b": "dependency"}


async def test_a_probe_that_fails_by_the_dependency_opens_its_breaker_again() -> None:
    desk = desk_of(agent("a", depends_on=["crm"]), dependency={"min_calls": 1, "jitter": 0.0})
    error = OutcomeError(dependency="crm").model_dump(by_alias=True)
    await post(desk, await routed(desk, payload={"text": "1"}), "failed", error=error)
    desk.clock.ms += 30_000
    probe = await routed(desk, payload={"text": "2"})
    assert probe.action is Action.INVOKE
    await post(desk, probe, "failed", error=error)
    view = desk.live.breakers.view(DependencyKey("crm", "default"), desk.clock.monotonic_ms())
    assert view is not None
    assert view.state is BreakerState.OPEN
    assert (await routed(desk, payload={"text": "3"})).reason is Reason.BREAKER_OPEN


async def test_a_bare_answer_goes_back_to_the_agent_that_asked() -> None:
    desk = desk_of(agent("a", "bake"), agent("b", "brew"))
    session = {"agent_id": "web", "session_id": "s-1"}
    asked = await desk.route(request("do bake", caller=session))
    await post(desk, asked, "succeeded", awaits_input=True)
    answer = await desk.route(request("988", caller=session))
    assert answer.target is not None
    assert (answer.target.agent_id, answer.reason) == ("a", Reason.STICKY_SESSION)
    clear = await desk.route(request("do brew", caller=session))
    assert clear.target is not None
    assert (clear.target.agent_id, clear.reason) == ("b", Reason.ONLY_CANDIDATE)
    stranger = await desk.route(request("988", caller={"agent_id": "other", "session_id": "s-1"}))
    assert stranger.reason is not Reason.STICKY_SESSION
    desk.clock.ms += 900_001
    late = await desk.route(request("988", caller=session))
    assert late.reason is not Reason.STICKY_SESSION


async def test_a_session_that_agents_fail_again_and_again_is_handed_over_to_people() -> None:
    form = {"message_internal": "to the service desk", "message_user": "A colleague will help you."}
    desk = desk_of(agent("a", fallback={"human": form}), breaker={"enabled": False}, ejection={"enabled": False})
    session = {"agent_id": "web", "session_id": "s-1"}
    for number in range(3):
        decision = await routed(desk, caller=session, payload={"text": str(number)})
        assert decision.action is Action.INVOKE
        await post(desk, decision, "failed")
    handed = await routed(desk, caller=session)
    assert (handed.action, handed.reason) == (Action.FALLBACK, Reason.DEGRADED)
    assert handed.fallback is not None
    assert (handed.fallback.kind, handed.fallback.message_user) == ("human", "A colleague will help you.")
    other = await routed(desk, caller={"agent_id": "web", "session_id": "s-2"})
    assert other.action is Action.INVOKE
    await post(desk, other, "succeeded")


@pytest.mark.parametrize(
    ("over", "unavailable"), [("queue", "fallback"), ("degrade", "queue"), ("degrade", "fallback")]
)
async def test_over_an_agents_quota_another_gets_it_then_the_quota_or_the_policy_says(
    over: str, unavailable: str
) -> None:
    quota = {"agent": "a", "max_calls": 1, "over": over}
    policy = Policy.model_validate({"quotas": [quota], "defaults": {"unavailable": unavailable}})
    desk = service_of([agent("a"), agent("b", quality=0.1)], policy)
    targets = [(await routed(desk)).target for _ in range(2)]
    assert [target and target.agent_id for target in targets] == ["a", "b"]
    nobody = await routed(desk, exclude=["b"], dry_run=True)
    expected = Action.FALLBACK if (over, unavailable) == ("degrade", "fallback") else Action.QUEUE
    assert nobody.action is expected
    assert nobody.retry_after_ms == 3_600_000


async def test_a_caller_over_its_quota_at_an_agent_may_be_refused() -> None:
    quota = {"agent": "a", "per_caller": True, "max_calls": 1, "over": "reject"}
    desk = service_of([agent("a")], Policy.model_validate({"quotas": [quota]}))
    await routed(desk, caller={"agent_id": "greedy"})
    with pytest.raises(QuotaExceededError, match="1 calls in 3600000 ms"):
        await routed(desk, caller={"agent_id": "greedy"})
    assert (await routed(desk, caller={"agent_id": "modest"})).action is Action.INVOKE


def test_a_quota_that_tells_no_callers_apart_refuses_none() -> None:
    with pytest.raises(ValueError, match="'over: reject' is for quotas of callers"):
        Policy.model_validate({"quotas": [{"agent": "a", "max_calls": 1, "over": "reject"}]})

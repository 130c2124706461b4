from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from intent.dummy_embedder import DummyEmbedder
from models.candidate import Stage
from models.card import AgentCard, FallbackForm, FallbackForms
from models.decision import Action, Reason
from models.policy import Policy
from models.ports import Embedded
from tests.builders import START_MS, FakeClock, capability, card, policy_of, request
from tests.service_builders import service_of

NOW = int(START_MS)


def agent(agent_id: str = "a", timeout_ms: int = 1500, **fields: Any) -> AgentCard:
    return card(agent_id, capability("echo", ["do echo"]), timeout_ms=timeout_ms, **fields)


def form(text: str) -> FallbackForm:
    return FallbackForm(message_internal=f"{text} internal", message_user=f"{text} user")


@pytest.mark.parametrize(
    ("wanted", "header_ms", "budget_ms", "in_time"),
    [
        ({"response_timeout_ms": 1700}, None, 20_000, True),
        ({"response_timeout_ms": 1699}, None, 20_000, False),
        ({"deadline_ms": NOW + 1700}, None, 20_000, True),
        ({"deadline_ms": NOW + 1699}, None, 20_000, False),
        ({}, NOW + 1700.0, 20_000, True),
        ({}, NOW + 1699.0, 20_000, False),
        ({}, None, 1700, True),
        ({}, None, 1699, False),
        # the earliest holds, whichever it is
        ({"response_timeout_ms": 9000, "deadline_ms": NOW + 9000}, NOW + 1699.0, 20_000, False),
        ({"response_timeout_ms": 9000, "deadline_ms": NOW + 1699}, NOW + 9000.0, 20_000, False),
        ({"response_timeout_ms": 1699, "deadline_ms": NOW + 9000}, NOW + 9000.0, 20_000, False),
        ({"response_timeout_ms": 1700, "deadline_ms": NOW + 1700}, NOW + 1700.0, 20_000, True),
        # the policy's budget is for requests that name no deadline
        ({"response_timeout_ms": 5000}, None, 1000, True),
        ({"deadline_ms": NOW + 5000}, None, 1000, True),
        ({}, NOW + 5000.0, 1000, True),
    ],
)
async def test_an_agent_is_chosen_if_its_timeout_fits_into_deadline_less_now_less_200_ms(
    wanted: dict[str, Any], header_ms: float | None, budget_ms: int, in_time: bool
) -> None:
    desk = service_of([agent(timeout_ms=1500)], policy_of(default_budget_ms=budget_ms))
    decision = await desk.route(request(intent="echo", **wanted), deadline_ms=header_ms)
    assert decision.reason is (Reason.ONLY_CANDIDATE if in_time else Reason.DEADLINE)


async def test_the_policy_sets_the_reserve() -> None:
    for reserve_ms, reason in ((0, Reason.ONLY_CANDIDATE), (1, Reason.DEADLINE)):
        desk = service_of([agent(timeout_ms=1500)], policy_of(deadline_reserve_ms=reserve_ms))
        assert (await desk.route(request(intent="echo", response_timeout_ms=1500))).reason is reason


async def test_with_little_time_a_fast_agent_serves_and_the_slow_one_is_late() -> None:
    desk = service_of([agent("slow", 5000), agent("fast", 1000)])
    decision = await desk.route(request(intent="echo", response_timeout_ms=3000), explain=True)
    assert decision.target is not None
    assert decision.target.agent_id == "fast"
    assert [(candidate.agent_id, candidate.excluded) for candidate in decision.candidates] == [
        ("fast", None),
        ("slow", Stage.DEADLINE),
    ]


@pytest.mark.parametrize("timeout_ms", [1700, 3000, 5000, 20_000])
async def test_the_plan_ends_before_the_deadline(timeout_ms: int) -> None:
    desk = service_of([agent(backup_agent_id="b"), agent("b", weight=0)])
    decision = await desk.route(request(intent="echo", response_timeout_ms=timeout_ms))
    assert sum(step.timeout_ms + step.backoff_ms for step in decision.plan) <= timeout_ms - 200


@pytest.mark.parametrize("wanted", [{"response_timeout_ms": 100}, {"response_timeout_ms": 200}, {"deadline_ms": 0}])
async def test_a_deadline_that_is_past_degrades_at_once(wanted: dict[str, Any]) -> None:
    desk = service_of([agent(fallback=FallbackForms(human=form("human")))])
    said = await desk.route(request("do echo", **wanted))
    assert (said.action, said.reason) == (Action.FALLBACK, Reason.DEADLINE)
    assert said.fallback is not None
    assert said.fallback.message_user == Policy().defaults.fallback.message_user
    given = await desk.route(request(intent="echo", **wanted))
    assert (given.action, given.reason) == (Action.FALLBACK, Reason.DEADLINE)
    assert given.intent is not None
    assert given.intent.name == "echo"
    assert given.fallback is not None
    assert given.fallback.message_user == "human user"


@pytest.mark.parametrize(
    ("declared", "kind"), [(["human"], "human"), (["human", "partial"], "partial"), (["partial", "full"], "full")]
)
async def test_late_agents_give_their_declared_forms_in_both_wordings(declared: list[str], kind: str) -> None:
    forms = FallbackForms(**{name: form(name) for name in declared})
    decision = await service_of([agent(fallback=forms)]).route(request(intent="echo", response_timeout_ms=900))
    assert decision.reason is Reason.DEADLINE
    assert decision.fallback is not None
    assert decision.fallback.model_dump() == {
        "kind": kind,
        "message_internal": f"{kind} internal",
        "message_user": f"{kind} user",
        "intent": None,
    }


async def test_without_declared_forms_the_policy_s_wording_holds() -> None:
    desk = service_of([agent()], policy_of(fallback=form("ours")))
    decision = await desk.route(request(intent="echo", response_timeout_ms=900))
    assert decision.fallback is not None
    assert (decision.fallback.message_internal, decision.fallback.message_user) == ("ours internal", "ours user")


class SlowEmbedder(DummyEmbedder):
    """Takes its time, by the clock of the test."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.takes_ms = 0.0

    def embed(self, text: str) -> Embedded:
        self.clock.advance(self.takes_ms)
        return super().embed(text)


@pytest.mark.parametrize(("takes_ms", "reason"), [(1500, Reason.ONLY_CANDIDATE), (1501, Reason.DEADLINE)])
async def test_the_time_that_reading_took_is_gone(takes_ms: float, reason: Reason) -> None:
    clock = FakeClock()
    embedder = SlowEmbedder(clock)
    desk = service_of([agent(timeout_ms=1500)], embedder=embedder, clock=clock)
    embedder.takes_ms = takes_ms
    decision = await desk.route(request("please do echo", response_timeout_ms=3200))
    assert decision.reason is reason
    assert decision.elapsed_ms == takes_ms
    assert f'"checked_ms":{START_MS + takes_ms}' in desk.records.decisions[0].inputs


class StuckEmbedder(DummyEmbedder):
    """Answers nothing but what is on the cards until it is let go."""

    def __init__(self) -> None:
        self.go = Event()

    def embed(self, text: str) -> Embedded:
        if text != "do echo":
            self.go.wait(10)
        return super().embed(text)


async def test_an_encoder_that_does_not_answer_in_time_degrades_the_request() -> None:
    embedder = StuckEmbedder()
    desk = service_of([agent()], embedder=embedder)
    decision = await desk.route(request("what is this", response_timeout_ms=201))
    embedder.go.set()
    assert (decision.action, decision.reason) == (Action.FALLBACK, Reason.DEADLINE)
    assert decision.degraded == ["encoder: no time left"]

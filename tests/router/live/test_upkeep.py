from __future__ import annotations

from typing import Any

import orjson

from feedback.attribution import Charge, Party
from models.decision import Action
from models.events import EventRow
from models.heartbeat import Heartbeat
from models.outcome import Outcome
from models.policy import NamespacePolicy, Policy
from router.live.effects import Effects
from router.live.upkeep import Upkeep
from tests.builders import capability, card, request
from tests.service_builders import Desk, counted_ids, service_of

AGENT = ("default", "a", "1.0.0")


def desk_of(**policy: Any) -> tuple[Desk, Upkeep]:
    cards = [card("a", capability("echo", ["do echo"]), timeout_ms=1000, max_retries=0)]
    desk = service_of(cards, Policy(defaults=NamespacePolicy(**policy)))
    desk.live.posting.add("")
    upkeep = Upkeep(desk.live, lambda: desk.snapshot, desk.journal, desk.clock, counted_ids().new)
    upkeep.tick()
    return desk, upkeep


async def told(desk: Desk) -> list[EventRow]:
    """Events of type `state` and `breaker`."""
    await desk.journal.flush(1000)
    return [event for event in desk.records.audit if event.event_type in ("state", "breaker")]


async def test_a_lease_without_an_outcome_is_missing_and_no_failure() -> None:
    desk, upkeep = desk_of(lease={"grace_ms": 500})
    decision = await desk.route(request(None, intent="echo"))
    assert decision.action is Action.INVOKE
    desk.clock.ms += 1499
    upkeep.tick()
    assert desk.live.leases.in_flight(AGENT) == 1
    desk.clock.ms += 1
    upkeep.tick()
    assert desk.live.leases.in_flight(AGENT) == 0
    [event] = await told(desk)
    assert (event.decision, event.trace_id) == ("missing", decision.trace_id)
    assert orjson.loads(event.payload) == {
        "decision_id": decision.decision_id,
        "agent_id": "a",
        "version": "1.0.0",
    }
    assert desk.live.breakers.listed(desk.clock.monotonic_ms()) == []


async def test_a_reservation_is_refunded_with_its_lease() -> None:
    quotas = {"quotas": [{"agent": "a", "max_calls": 1, "window_ms": 3_600_000}]}
    cards = [card("a", capability("echo", ["do echo"]), timeout_ms=1000, max_retries=0)]
    desk = service_of(cards, Policy.model_validate(quotas))
    desk.live.posting.add("")
    upkeep = Upkeep(desk.live, lambda: desk.snapshot, desk.journal, desk.clock, counted_ids().new)
    upkeep.tick()
    actions = [(await desk.route(request(None, intent="echo"))).action for _ in range(2)]
    assert actions == [Action.INVOKE, Action.FALLBACK]
    desk.clock.ms += 60_000
    upkeep.tick()
    assert desk.live.quotas.n_open == 0
    assert (await desk.route(request(None, intent="echo"))).action is Action.INVOKE


async def test_changes_of_health_are_told_once_each() -> None:
    desk, upkeep = desk_of()
    beat, policy = Heartbeat(digest=desk.snapshot.digest_of[AGENT]), desk.snapshot.policy.of("default").health
    assert desk.live.health.beat(AGENT, beat, 15.0, desk.clock.monotonic_ms(), policy)
    for _ in range(50):
        upkeep.tick()
        desk.clock.ms += 1000
    events = await told(desk)
    assert [event.decision for event in events] == ["healthy", "suspect", "down"]
    assert [orjson.loads(event.payload)["before"] for event in events] == ["unknown", "healthy", "suspect"]


async def test_a_breaker_whose_open_time_is_over_is_told() -> None:
    desk, upkeep = desk_of(breaker={"min_calls": 1, "jitter": 0.0})
    decision = await desk.route(request(None, intent="echo"))
    outcome = Outcome.model_validate({"decision_id": decision.decision_id, "status": "failed"})
    opened = desk.live.opened.get(decision.decision_id)
    assert opened is not None
    Effects(desk.live).record(opened, outcome, Charge(Party.AGENT, True), desk.clock.monotonic_ms(), desk.snapshot)
    upkeep.tick()
    desk.clock.ms += 30_000
    upkeep.tick()
    upkeep.tick()
    breakers = [event.decision for event in await told(desk) if event.event_type == "breaker"]
    assert breakers == ["open", "half_open"]

from __future__ import annotations

from benchmarks.live_decisions import live_desk, warmed
from benchmarks.live_desk import SteppedClock
from models.request import Caller, RouteRequest
from router.permit import OPEN


async def test_live_state_left_out_decides_by_the_cards_alone_and_takes_nothing() -> None:
    clock = SteppedClock()
    desk = live_desk(6, clock)
    await warmed(desk)
    clock.ms += 1000
    request = RouteRequest(intent="billing", caller=Caller(agent_id="caller-0"), limit=10)
    n_leases, n_opened = len(desk.live.leases), len(desk.live.opened)
    without, _ = await desk.without_live.route(request, OPEN)
    assert {each.excluded for each in without.candidates} == {None}
    assert {each.features.health for each in without.candidates if each.features is not None} == {1.0}
    assert (len(desk.live.leases), len(desk.live.opened)) == (n_leases, n_opened)
    assert without.plan[0].timeout_ms == 15_000
    decision, _ = await desk.service.route(request, OPEN)
    assert "breaker" in {each.excluded for each in decision.candidates}
    assert decision.plan[0].timeout_ms < 15_000
    assert (len(desk.live.leases), len(desk.live.opened)) == (n_leases + 1, n_opened + 1)
    await desk.flush()

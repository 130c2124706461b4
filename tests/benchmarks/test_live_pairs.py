from __future__ import annotations

from random import Random

from benchmarks.live_desk import SteppedClock
from benchmarks.live_pairs import left_over, pairs, pairs_desk, some
from benchmarks.report import Report
from models.request import Caller, RouteRequest


async def test_nothing_is_held_after_the_pairs() -> None:
    report = Report("pairs", as_json=True)
    await pairs(report, 300)
    judged = [figure for figure in report.figures if figure["goals"]]
    assert len(judged) == 4
    assert all(figure["value"] == 0 for figure in judged)
    assert report.figures[0]["name"] == "pairs a second"


async def test_what_has_no_outcome_is_held_until_its_time_is_over() -> None:
    clock = SteppedClock()
    desk = pairs_desk(clock)
    requests = [RouteRequest(intent="intent-1", caller=Caller(agent_id="c")) for _ in range(20)]
    assert await some(desk, clock, requests, Random(1), missing=0.0) == 20
    assert len(desk.live.leases) == 0
    assert await some(desk, clock, requests, Random(1), missing=1.0) == 20
    assert len(desk.live.leases) == 20
    assert desk.live.quotas.n_open == 20
    left = await left_over(desk, clock)
    assert list(left.values()) == [0, 0, 0, 0]
    assert next(iter(left)).startswith("leases (20 ")

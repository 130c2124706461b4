from __future__ import annotations

from typing import Any

from models.decision import Reason
from models.outcome import OutcomeError
from tests.router.test_settlement import agent, desk_of, post, routed
from tests.service_builders import Desk

BREAKER = {"min_calls": 2, "open_ms": 1000, "jitter": 0.0, "half_open_interval_ms": 60_000}
NO_EJECTION = {"enabled": False}


async def fails_twice(desk: Desk, agent_id: str, **error: Any) -> None:
    """Two requests fail at an agent, and a second goes by."""
    for number in range(2):
        decision = await routed(desk, target_agent=agent_id, payload={"text": f"{agent_id}{number}"})
        await post(desk, decision, "failed", **error)
    desk.clock.ms += 1000


def planned(decision: Any) -> list[str]:
    return [step.target.agent_id for step in decision.plan]


async def test_a_probe_is_not_made_again_at_once_and_leads_to_the_backup() -> None:
    desk = desk_of(
        agent("a", backup_agent_id="b", timeout_ms=1000), agent("b", quality=0.2, timeout_ms=1000), breaker=BREAKER
    )
    assert planned(await routed(desk)) == ["a", "a", "b"]
    await fails_twice(desk, "a")
    assert planned(await routed(desk)) == ["a", "b"]
    assert planned(await routed(desk)) == ["b", "b"]


async def test_who_would_be_probed_is_no_backup() -> None:
    desk = desk_of(
        agent("a", backup_agent_id="b", timeout_ms=1000), agent("b", quality=0.2, timeout_ms=1000), breaker=BREAKER
    )
    await fails_twice(desk, "b")
    assert planned(await routed(desk)) == ["a", "a"]
    probe = await routed(desk, target_agent="b")
    assert planned(probe) == ["b"]
    await post(desk, probe)
    assert planned(await routed(desk)) == ["a", "a", "b"]


async def test_a_call_is_a_probe_too_where_only_a_dependency_recovers() -> None:
    desk = desk_of(
        agent("a", backup_agent_id="b", timeout_ms=1000, depends_on=["crm"]),
        agent("b", quality=0.3, timeout_ms=1000, depends_on=["crm"]),
        agent("c", quality=0.2, timeout_ms=1000, backup_agent_id="a"),
        breaker=NO_EJECTION,
        dependency={**BREAKER, "min_agents": 1},
        ejection=NO_EJECTION,
    )
    await fails_twice(desk, "a", error=OutcomeError(dependency="crm").model_dump(by_alias=True))
    assert planned(await routed(desk, target_agent="c")) == ["c", "c"]
    assert planned(await routed(desk)) == ["a"]
    assert planned(await routed(desk)) == ["c", "c"]


async def test_the_breakers_of_another_caller_make_nobody_probe() -> None:
    desk = desk_of(agent("a", timeout_ms=1000), breaker=BREAKER)
    await fails_twice(desk, "a")
    assert planned(await routed(desk, caller={"agent_id": "web"})) == ["a", "a"]
    assert planned(await routed(desk)) == ["a"]


async def test_a_last_resort_has_the_whole_plan() -> None:
    desk = desk_of(agent("a", timeout_ms=1000), breaker={**BREAKER, "open_ms": 60_000}, unavailable="last_resort")
    await fails_twice(desk, "a")
    decision = await routed(desk)
    assert (decision.reason, planned(decision)) == (Reason.DEGRADED, ["a", "a"])


async def test_a_probe_that_is_cancelled_lets_the_next_one_through() -> None:
    desk = desk_of(breaker=BREAKER)
    await fails_twice(desk, "a")
    probe = await routed(desk)
    assert planned(await routed(desk)) == []
    await post(desk, probe, "cancelled")
    assert planned(await routed(desk)) == ["a"]
    assert planned(await routed(desk)) == []


async def test_a_dry_run_takes_no_probe() -> None:
    desk = desk_of(breaker=BREAKER)
    await fails_twice(desk, "a")
    for _ in range(3):
        assert planned(await routed(desk, dry_run=True)) == ["a"]
    assert planned(await routed(desk)) == ["a"]
    assert planned(await routed(desk)) == []

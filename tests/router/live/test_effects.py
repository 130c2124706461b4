from __future__ import annotations

from tests.router.test_settlement import agent, desk_of, post, routed


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

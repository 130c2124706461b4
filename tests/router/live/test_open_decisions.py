from __future__ import annotations

from router.live.open_decisions import OpenDecision, OpenDecisions


def opened(decision_id: str, session_id: str | None = None) -> OpenDecision:
    return OpenDecision(decision_id, "t", "s", "key", "web", "", "default", "pay", None, None, session_id, ())


def test_the_oldest_fall_out_of_memory() -> None:
    decisions = OpenDecisions(2)
    for name in ("d1", "d2", "d3"):
        decisions.add(opened(name))
    assert [decisions.get(name) is not None for name in ("d1", "d2", "d3")] == [False, True, True]


def test_those_that_are_meant_are_forgotten() -> None:
    decisions = OpenDecisions()
    for name, session_id in (("d1", "s1"), ("d2", "s2"), ("d3", "s1"), ("d4", None)):
        decisions.add(opened(name, session_id))
    assert decisions.forget(lambda each: each.session_id == "s1") == 2
    assert [decisions.get(name) is not None for name in ("d1", "d2", "d3", "d4")] == [False, True, False, True]
    assert decisions.forget(lambda each: each.session_id == "s1") == 0

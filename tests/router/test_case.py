from __future__ import annotations

from models.candidate import Stage
from tests.builders import card, request, snapshot_of
from tests.service_builders import case_of


def test_what_remains_shrinks_with_the_last_look_at_the_clock() -> None:
    case = case_of(request("hello"), snapshot_of([]), remaining_ms=1000)
    assert case.remaining_ms == 1000
    case.checked_ms += 250
    assert case.remaining_ms == 750


def test_late_are_those_that_only_the_deadline_took_out() -> None:
    case = case_of(request("hello"), snapshot_of([card("slow"), card("dear"), card("slower")]))
    dear, slow, slower = case.snapshot.entries
    case.eligible.excluded = [(slow, Stage.DEADLINE), (dear, Stage.MAX_COST_LEVEL), (slower, Stage.DEADLINE)]
    assert [entry.card.agent_id for entry in case.late] == ["slow", "slower"]


def test_two_cases_share_nothing_that_changes() -> None:
    one, two = (case_of(request("hello"), snapshot_of([])) for _ in range(2))
    one.degraded.append("x")
    one.eligible.excluded.append((snapshot_of([card("a")]).entries[0], Stage.PAYLOAD))
    assert (two.degraded, two.eligible.excluded) == ([], [])

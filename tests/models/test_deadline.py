from __future__ import annotations

import pytest

from models.deadline import Deadline


@pytest.mark.parametrize(
    ("budgets", "instants", "at_ms"),
    [
        ((500.0,), (), 1500.0),
        ((), (1400.0,), 1400.0),
        ((500.0, 900.0), (1600.0, None), 1500.0),
        ((None, 900.0), (1600.0, 1200.0), 1200.0),
        ((500.0,), (0.0,), 0.0),
    ],
)
def test_the_earliest_of_budgets_and_instants_holds(
    budgets: tuple[float | None, ...], instants: tuple[float | None, ...], at_ms: float
) -> None:
    deadline = Deadline.earliest(1000.0, budgets_ms=budgets, instants_ms=instants, reserve_ms=50.0)
    assert deadline == Deadline(at_ms, 50.0)


def test_without_any_there_is_no_deadline() -> None:
    with pytest.raises(ValueError, match="min"):
        Deadline.earliest(1000.0, budgets_ms=(None,), instants_ms=(None,), reserve_ms=0.0)


def test_what_remains_is_deadline_less_now_less_200_ms() -> None:
    assert [Deadline(2900.0).remaining_ms(now) for now in (1000.0, 2700.0, 3000.0)] == [1700.0, 0.0, -300.0]
    assert Deadline(2900.0, reserve_ms=0.0).remaining_ms(1000.0) == 1900.0

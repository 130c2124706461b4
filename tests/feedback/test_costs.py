from __future__ import annotations

import json
from itertools import pairwise

import pytest

from feedback.costs import Costs
from feedback.drift import MAX_CALLERS


def told(*rounds: tuple[str, float, float, int], own: Costs | None = None) -> Costs:
    """(caller, cost, weight, times) each."""
    costs = own or Costs()
    for caller, cost_usd, weight, times in rounds:
        for _ in range(times):
            costs.learn_one(cost_usd, caller, weight)
    return costs


def mean(costs: Costs) -> float:
    assert costs.mean_usd is not None
    return costs.mean_usd


def test_before_the_third_cost_it_is_the_mean_and_then_the_median_of_what_was_told() -> None:
    costs = Costs()
    seen = []
    for cost_usd in (0.02, 900.0, 0.04):
        costs.learn_one(cost_usd, "ann", 1.0)
        seen.append(mean(costs))

    assert seen == pytest.approx([0.02, 450.01, 0.04])


@pytest.mark.parametrize("n", [3, 10, 100])
@pytest.mark.parametrize("wrong", [0.0, 1e6])
def test_one_cost_counts_within_ten_times_the_mean(n: int, wrong: float) -> None:
    costs = told(("ann", 0.01, float(n), n), ("ann", wrong, n + 1.0, 1))
    part = 1 / min(n + 1, 25)

    assert mean(costs) == pytest.approx(0.01 * (1 + part * (9.0 if wrong else -0.9)))


def test_costs_of_one_caller_follow_its_price_in_either_direction() -> None:
    costs = told(("ann", 0.01, 60.0, 60), ("ann", 0.5, 60.0, 100))
    assert mean(costs) == pytest.approx(0.5, rel=0.1)
    told(("ann", 0.0, 60.0, 400), own=costs)
    assert mean(costs) < 1e-6
    told(("ann", 0.01, 60.0, 200), own=costs)
    assert mean(costs) == pytest.approx(0.01, rel=0.05)


def test_a_caller_moves_the_cost_by_its_part_of_the_evidence_however_often_it_tells() -> None:
    honest = [(f"c{nth}", 0.01, 100.0, 30) for nth in range(9)]
    costs = told(*honest, ("eve", 1e6, 100.0, 1000))

    # a tenth of the evidence, at four times the median
    assert mean(costs) == pytest.approx(0.9 * 0.01 + 0.1 * 0.04)
    low = told(*honest, ("eve", 0.0, 100.0, 1000))
    assert mean(low) == pytest.approx(0.9 * 0.01 + 0.1 * 0.0025)


def test_who_told_first_does_not_keep_the_cost_once_others_know_the_agent() -> None:
    costs = told(("eve", 1e6, 20.0, 5), ("ann", 0.01, 30.0, 5))

    assert mean(costs) == pytest.approx((20 * 0.04 + 30 * 0.01) / 50)


def test_callers_that_can_have_no_more_evidence_still_tell_what_calls_cost() -> None:
    first = [("ann", 0.01, 20.0, 50), ("bob", 0.01, 20.0, 50)]
    later = [("ann", 0.05, 20.0, 200), ("bob", 0.05, 20.0, 200)]

    assert mean(told(*first, *later)) == pytest.approx(0.05, rel=0.01)


def test_of_many_callers_those_with_most_evidence_are_heard() -> None:
    costs = told(*[(f"c{nth}", 0.01, 2.0 + nth % 3, 1) for nth in range(200)], ("small", 5.0, 0.0, 50))

    assert len(costs.body()) == MAX_CALLERS
    assert "small" not in costs.body()
    assert {weight for weight, *_ in costs.body().values()} == {4.0}
    assert mean(costs) == pytest.approx(0.01)


def test_what_was_written_down_goes_on_to_the_last_bit() -> None:
    costs = told(("ann", 0.013, 7.0, 30), ("bob", 0.02, 3.0, 2))
    again = Costs.of(json.loads(json.dumps(costs.body())))

    assert (again.body(), again.mean_usd) == (costs.body(), costs.mean_usd)
    for each in (costs, again):
        told(("bob", 0.4, 4.0, 3), ("ann", 0.011, 8.0, 5), own=each)
    assert (again.body(), again.mean_usd) == (costs.body(), costs.mean_usd)


def test_a_forgotten_caller_has_no_name_and_its_costs_still_count() -> None:
    costs = told(("ann", 0.01, 10.0, 9), ("", 0.02, 10.0, 9), ("eve", 0.03, 20.0, 9))
    before = mean(costs)

    assert costs.forget("eve")
    assert not costs.forget("eve")
    assert set(costs.body()) == {"ann", ""}
    assert mean(costs) == pytest.approx(before)


def test_what_two_processes_were_told_is_weighed_by_their_evidence() -> None:
    one, other = told(("ann", 0.01, 10.0, 9)), told(("ann", 0.02, 30.0, 9), ("bob", 0.02, 40.0, 9))
    one.merge(other)

    assert mean(one) == pytest.approx((10 * 0.01 + 30 * 0.02 + 40 * 0.02) / 80)


def test_a_mean_never_jumps_by_more_than_its_bound() -> None:
    costs, seen = told(("ann", 0.01, 30.0, 30)), []
    for cost_usd in (1e6, 0.0, 1e9, 5.0, 0.01) * 10:
        costs.learn_one(cost_usd, "ann", 30.0)
        seen.append(mean(costs))

    assert all(0.96 <= later / earlier <= 1.37 for earlier, later in pairwise(seen))

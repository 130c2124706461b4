from __future__ import annotations

from math import inf

import numpy as np
import pytest

from feedback.drift import MAX_CALLERS, Drift, limit_on
from models.learning_policy import DriftPolicy

POLICY = DriftPolicy()


def alarms(rate: float, expected: float, n: int, seed: int, caller: str = "", limit: float = inf) -> list[int]:
    drift, rng, found = Drift(), np.random.default_rng(seed), []
    for nth, reward in enumerate((rng.random(n) < rate).astype(float).tolist()):
        if drift.learn_one(reward, expected, caller, limit, POLICY):
            drift.alarm(100.0, 100.0 * expected, POLICY)
            found.append(nth)
    return found


def test_an_agent_as_good_as_known_raises_no_alarm() -> None:
    # LEARNING.md: at most 2 in 10,000; some rates near 0 or 1 are the hardest
    assert [len(alarms(rate, rate, 20_000, seed=3)) for rate in (0.1, 0.5, 0.9)] == [0, 0, 0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_agent_half_as_good_raises_an_alarm_soon(seed: int) -> None:
    assert alarms(0.45, 0.9, 400, seed)[0] < 60


def test_an_agent_that_got_better_raises_none() -> None:
    assert alarms(0.95, 0.5, 5000, seed=1) == []


def test_cusum_is_pages() -> None:
    drift = Drift()
    drift.learn_one(0.0, 0.8, "", inf, POLICY)
    assert drift.cusum == pytest.approx(2.0 - 0.25)
    drift.learn_one(1.0, 0.8, "", inf, POLICY)
    assert drift.cusum == pytest.approx(1.75 - 0.5 - 0.25)
    drift.learn_one(1.0, 0.8, "", inf, POLICY)
    drift.learn_one(1.0, 0.8, "", inf, POLICY)
    assert drift.cusum == 0.0
    assert drift.parts == {}


def test_at_an_alarm_so_many_outcomes_are_kept_and_the_mean_follows_the_recent_one() -> None:
    drift = Drift(recent=0.4)

    assert drift.alarm(200.0, 160.0, POLICY) == pytest.approx((0.1, 0.05))
    assert drift.is_demoted
    assert (drift.inherited_n, drift.inherited_s) == pytest.approx((0.1, 0.05))


def test_at_an_alarm_the_mean_falls_to_a_tenth_at_most_and_never_rises() -> None:
    assert Drift(recent=0.0).alarm(10.0, 8.0, POLICY) == pytest.approx((1.0, 0.1))
    assert Drift(recent=0.9).alarm(10.0, 5.0, POLICY) == pytest.approx((1.0, 1.0))


def test_a_demoted_agent_is_cleared_after_outcomes_without_alarm() -> None:
    drift = Drift()
    drift.alarm(100.0, 50.0, POLICY)
    for _ in range(POLICY.clear_after - 1):
        drift.learn_one(1.0, 0.5, "", inf, POLICY)
    assert drift.is_demoted
    drift.learn_one(1.0, 0.5, "", inf, POLICY)
    assert not drift.is_demoted


def test_a_caller_alone_raises_no_alarm_where_others_told_most() -> None:
    limit = limit_on(0.1, 0.1, POLICY.threshold)

    assert alarms(0.0, 0.9, 5000, seed=1, caller="eve", limit=limit) == []
    assert alarms(0.0, 0.9, 5000, seed=1, caller="eve", limit=limit_on(0.5, 0.1, POLICY.threshold)) != []


def test_many_callers_together_raise_an_alarm() -> None:
    drift, limit = Drift(), limit_on(0.02, 0.1, POLICY.threshold)
    found = [drift.learn_one(0.0, 0.9, f"c{nth % 50}", limit, POLICY) for nth in range(50)]

    assert any(found)
    assert len(drift.parts) <= MAX_CALLERS


def test_parts_of_callers_add_up_to_the_sum() -> None:
    drift, rng = Drift(), np.random.default_rng(5)
    for nth in range(3000):
        drift.learn_one(float(rng.random() < 0.7), 0.8, f"c{nth % 40}", 5.0, POLICY)
        assert sum(drift.parts.values()) == pytest.approx(drift.cusum, abs=1e-9)

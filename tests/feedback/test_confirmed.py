from __future__ import annotations

import numpy as np
import pytest

from feedback.choices import Choices, Floats, Row
from feedback.confirmed import MAX_OF_CALLER, counted, gains
from feedback.offpolicy import Known, Log, Method, difference_of
from feedback.policy_gate import LEAST_CHANGES, gate

REFUND, PARCEL = 0, 1
WRONG = Row("wrong", PARCEL, (0, 1, 2), (1.0, 0.0, 0.0), (0.0, 0.75, 0.25), 0)
"""Read as a parcel's, while it was about a refund: the candidate leads to the agents 1 and 2."""


def right(name: str, agent: int, intent: int = REFUND) -> Row:
    return Row(name, intent, (agent,), (1.0,), (1.0,), 0)


def known_of(rows: list[Row], reward: list[float], declared: float = 0.5) -> Known:
    choices = Choices.of(rows)
    confirmed = np.array([row.decision_id.startswith("wrong") for row in rows])
    meant = np.full(len(rows), REFUND, dtype=np.int64)
    return gains(choices, confirmed, meant, np.full(len(choices.agent), declared), np.array(reward))


def test_a_confirmed_departure_is_worth_what_its_agents_bring_on_the_intent_that_was_meant() -> None:
    rows = [WRONG, right("a", 1), right("b", 1), right("c", 2), right("d", 1, intent=PARCEL), right("e", 2)]
    known = known_of(rows, [0.0, 1.0, 0.5, 0.2, 0.0, np.nan])
    assert known.gain.tolist() == pytest.approx([0.75 * 0.75 + 0.25 * 0.2])
    # the mean of agent 1 has a variance of 0.125 / 2, that of agent 2, with one outcome, the most there is
    assert known.error == pytest.approx((0.75**2 * 0.125 / 2 + 0.25**2 * 0.25) ** 0.5)


def test_without_outcomes_the_declared_quality_is_taken() -> None:
    known = known_of([WRONG, right("a", 2)], [0.0, 1.0], declared=0.6)
    assert known.gain.tolist() == pytest.approx([0.75 * 0.6 + 0.25])
    nothing = known_of([WRONG], [0.0], declared=0.6)
    assert nothing.gain.tolist() == pytest.approx([0.6])
    assert nothing.error == 0.0


def test_the_error_of_a_mean_is_shared_by_all_that_lead_there() -> None:
    agents = [right(f"r-{number}", agent) for number in range(8) for agent in (1, 2)]
    reward = [float(number % 2) for number in range(8) for _ in (1, 2)]
    one = known_of([WRONG, *agents], [0.0, *reward])
    many = known_of([WRONG._replace(decision_id=f"wrong-{n}") for n in range(10)] + agents, [0.0] * 10 + reward)
    assert many.error == pytest.approx(10 * one.error)


def test_of_each_caller_the_first_count() -> None:
    assert MAX_OF_CALLER == 20 < LEAST_CHANGES
    found = counted(["a"] * 30 + [None] * 5 + ["b"] * 10)
    assert found.tolist() == [True] * 20 + [False] * 15 + [True] * 10


def scene(n: int = 1000, seed: int = 1) -> tuple[Choices, Floats]:
    rng = np.random.default_rng(seed)
    return Choices.of(right(f"d-{number}", 1) for number in range(n)), (rng.random(n) < 0.7).astype(np.float64)


@pytest.mark.parametrize("method", list(Method))
def test_known_differences_make_one_mean_with_the_log(method: Method) -> None:
    choices, reward = scene()
    log = Log.of(choices, reward)
    assert difference_of(log, method).value == pytest.approx(0.0, abs=1e-12)
    gain = np.full(50, 0.7)
    found = difference_of(log, method, Known(gain, 0.0))
    assert found.value == pytest.approx(50 * 0.7 / 1050)
    # of a share p of 0.7 among nothing: 0.7 sqrt(p (1 - p) / n)
    share = 50 / 1050
    assert found.se == pytest.approx(0.7 * (share * (1 - share) / 1049) ** 0.5, rel=1e-6)
    assert difference_of(log, method, Known(gain, 21.0)).se == pytest.approx(np.hypot(found.se, 21.0 / 1050))


def test_intervals_of_known_differences_hold() -> None:
    rng, held = np.random.default_rng(5), 0
    for seed in range(200):
        n = int(rng.binomial(1000, 0.06))
        choices, reward = scene(1000 - n, seed)
        rate = float(rng.binomial(60, 0.7) / 60)
        error = n * (rate * (1 - rate) / 59) ** 0.5
        found = difference_of(Log.of(choices, reward), Method.SNDR, Known(np.full(n, rate), error))
        held += found.low95 <= 0.06 * 0.7 <= found.high95
    assert 184 <= held <= 199


def test_a_gate_passes_by_what_is_confirmed() -> None:
    choices, reward = scene()
    alone = gate(choices, reward, min_outcomes=1040, min_effective=1040.0)
    assert {each.code for each in alone.refusals} >= {"too_few_outcomes", "small_effective_size", "no_departures"}
    found = gate(choices, reward, min_outcomes=1040, min_effective=1040.0, known=Known(np.full(50, 0.7), 0.0))
    assert (found.passed, found.n_outcomes, found.effective_size) == (True, 1050, 1050.0)

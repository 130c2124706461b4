from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.decision import Reason
from router.explore import N_DRAWS, _utilities, draws_of, thompson, with_floor
from router.learned import Learned
from router.scorer import Blend, Contender, order, reason, score

N_SEEDS = 4000


def contender(name: str, quality: float, cost: float = 1.0, health: float = 1.0) -> Contender:
    return Contender(name, "default", "1.0.0", 0.9, quality, health, 1.0, cost)


def learned(*betas: tuple[float, float], floor: float = 0.02) -> Learned:
    return Learned("explore", tuple(a for a, _ in betas), tuple(b for _, b in betas), floor, 0.5, 7)


def means(of: Learned) -> list[Contender]:
    return [contender(f"a{n}", quality) for n, quality in enumerate(of.means)]


def test_the_choice_comes_as_often_as_its_propensity_says() -> None:
    of = learned((8, 2), (7, 3), (2, 8))
    chosen: Counter[str] = Counter()
    expected: dict[str, float] = {"a0": 0.0, "a1": 0.0, "a2": 0.0}
    for seed in range(N_SEEDS):
        ranked, choice = thompson(means(of), Blend(), of, seed)
        chosen[ranked[choice.index].contender.agent_id] += 1
        for scored, propensity in zip(ranked, choice.propensities, strict=True):
            expected[scored.contender.agent_id] += propensity
    for name, n in expected.items():
        # three standard deviations of a share of 4,000
        assert chosen[name] / N_SEEDS == pytest.approx(n / N_SEEDS, abs=0.024)
    assert chosen["a0"] > chosen["a1"] > chosen["a2"] > 0


@given(seed=st.integers(0, 2**63 - 1), floor=st.sampled_from([0.0, 0.02, 0.5]), n=st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_propensities_add_up_to_one_and_none_is_below_the_floor(seed: int, floor: float, n: int) -> None:
    of = learned(*[(1.0 + place, 9.0 - place) for place in range(n)], floor=floor)
    _, choice = thompson(means(of), Blend(), of, seed)
    assert sum(choice.propensities) == pytest.approx(1)
    assert min(choice.propensities) >= floor / n - 1e-12
    assert choice.propensity == choice.propensities[choice.index] > 0


def test_one_contender_wins_by_what_was_drawn_and_the_features_show_it() -> None:
    of = learned((8, 2), (8, 2), floor=0.0)
    ranked, choice = thompson(means(of), Blend(), of, seed=11)
    assert choice.index == 0
    drawn = draws_of(of.alpha, of.beta, of.temperature)
    assert drawn.shape == (N_DRAWS, 2)
    assert {scored.contender.quality for scored in ranked} <= {float(each) for each in drawn.ravel()}
    again = order(score([scored.contender for scored in ranked], Blend()))
    assert [scored.utility for scored in ranked] == pytest.approx([scored.utility for scored in again])
    assert [scored.merit for scored in ranked] == pytest.approx([scored.merit for scored in again])


@pytest.mark.parametrize("exponent", [1.0, 0.5, 2.0])
def test_utilities_of_draws_are_those_of_the_formula(exponent: float) -> None:
    blend = Blend(quality=exponent, similarity=1.3, cost_weight=0.3, latency_weight=0.2)
    contenders = [
        Contender("a", "default", "1.0.0", 0.9, 0.7, 0.8, 0.4, cost=2, latency_ms=100),
        Contender("b", "default", "1.0.0", 0.9, 0.004, 1.0, 1.0, cost=5, latency_ms=900),
    ]
    qualities = np.array([[0.3, 0.9], [0.001, 0.5], [1.0, 0.02]])
    found, _ = _utilities(score(contenders, blend), qualities, blend)
    for row, drawn in zip(found, qualities, strict=True):
        again = score([c._replace(quality=q) for c, q in zip(contenders, drawn.tolist(), strict=True)], blend)
        assert row.tolist() == pytest.approx([scored.utility for scored in again])


def test_a_choice_against_what_is_known_is_called_explored() -> None:
    of = learned((800, 200), (20, 80), floor=0.5)
    reasons = set()
    for seed in range(200):
        ranked, choice = thompson(means(of), Blend(), of, seed)
        why = reason(ranked, choice, Blend())
        assert (why is Reason.EXPLORED) == (ranked[choice.index].contender.agent_id == "a1")
        reasons.add(why)
    assert reasons == {Reason.EXPLORED, Reason.SELECTED}


def test_the_same_seed_gives_the_same_choice() -> None:
    of = learned((8, 2), (7, 3))
    assert thompson(means(of), Blend(), of, 5) == thompson(means(of), Blend(), of, 5)


def test_the_floor_reaches_every_contender_and_keeps_shares_among_near_equals() -> None:
    ranked = order(score([contender("a", 0.9), contender("b", 0.9), contender("c", 0.2)], Blend()))
    counts: Counter[int] = Counter()
    for seed in range(N_SEEDS):
        choice = with_floor(ranked, Blend(), 0.1, seed)
        assert choice.propensities == pytest.approx((0.45 + 0.1 / 3, 0.45 + 0.1 / 3, 0.1 / 3))
        assert choice.n_near == 2
        assert choice.is_explored == (choice.index == 2)
        counts[choice.index] += 1
    assert [counts[place] / N_SEEDS for place in range(3)] == pytest.approx(list(choice.propensities), abs=0.025)

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from feedback.choices import Choices, Floats, Ints, Row
from feedback.excess import Excess, excess
from feedback.outcome_model import Cells, cross_fitted

N = 2000


def choices_of(shares: Floats, target: Floats, rng: np.random.Generator, n: int = N) -> Choices:
    """n decisions of a policy (intents, agents) on uniform intents; the target has the same shape."""
    n_intents, n_agents = shares.shape
    intent = rng.integers(n_intents, size=n)
    agent = (rng.random((n, 1)) > shares[intent].cumsum(axis=1)).sum(axis=1).clip(0, n_agents - 1)
    return Choices.of(
        Row(f"{number:x}", int(intent[number]), range(n_agents), shares[i := intent[number]].tolist(),
            target[i].tolist(), int(agent[number]))
        for number in range(n)
    )  # fmt: skip


def of(choices: Choices, value: Floats) -> Excess:
    cells = Cells.of(choices)
    return excess(choices, value, cells, cross_fitted(choices, value, cells))


def cell_of(choices: Choices) -> tuple[Ints, Ints]:
    """(intent, agent) of what was chosen."""
    return choices.intent, choices.agent[choices.chosen]


def mass_of(choices: Choices) -> float:
    return float(np.maximum(choices.target - choices.logged, 0).sum()) / len(choices)


def test_shares_sum_to_the_mass_of_what_is_chosen_more_often() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    choices = choices_of(shares, np.array([[0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]), rng)
    found = of(choices, rng.random(N))
    assert found.shares.sum() == pytest.approx(mass_of(choices))
    more = choices.target[choices.chosen] > choices.logged[choices.chosen]
    assert (found.shares[~more] == 0).all()
    assert (found.shares[more] > 0).all()


def test_with_enough_outcomes_each_cell_is_told_by_its_own() -> None:
    rng = np.random.default_rng(1)
    choices = choices_of(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.0, 1.0], [1.0, 0.0]]), rng, 20_000)
    intent, agent = cell_of(choices)
    found = of(choices, (rng.random(20_000) < 0.5).astype(np.float64))
    for place in (0, 1):
        own = found.shares[(intent == place) & (agent == 1 - place)].sum()
        assert own == pytest.approx(0.5 * (intent == place).mean(), rel=0.01)
    assert found.doubt < 1e-4


def test_a_cell_without_outcomes_takes_the_others_and_makes_doubt() -> None:
    rng = np.random.default_rng(2)
    even = np.array([[0.5, 0.5], [0.5, 0.5]])
    rare = np.array([[0.5, 0.5], [1 - 1e-7, 1e-7]])
    target = np.array([[0.0, 1.0], [0.0, 1.0]])
    doubts = []
    for shares in (even, rare):
        choices = choices_of(shares, target, rng)
        intent, agent = cell_of(choices)
        found = of(choices, (rng.random(N) < 0.5).astype(np.float64))
        doubts.append(found.doubt)
        assert found.shares.sum() == pytest.approx(mass_of(choices))
    assert not ((intent == 1) & (agent == 1)).any()
    # half of the target's choices are of a cell whose deviation has a variance of at least 1/5 of an outcome's
    assert doubts[1] > 0.5**2 * 0.25 / 5 > 20 * doubts[0]


def test_a_single_outcome_in_a_hundred_does_not_count_for_all_its_weight() -> None:
    rng = np.random.default_rng(3)
    shares = np.array([[0.5, 0.5]] * 5 + [[0.995, 0.005]])
    choices = choices_of(shares, np.array([[0.0, 1.0]] * 6), rng)
    intent, agent = cell_of(choices)
    found = of(choices, (rng.random(N) < 0.5).astype(np.float64))
    few = (intent == 5) & (agent == 1)
    assert 1 <= few.sum() <= 5
    plain = 0.995 / 0.005 / N
    assert found.shares[few].max() < 0.5 * plain
    assert found.effective_size > 5 / (plain * 6)


def test_outcomes_of_a_time_of_exploration_count_for_more_than_by_their_weight() -> None:
    # first 20 %, then 0.5 %: the few late ones weigh 40 times as much each, and would be most of the mean
    rng = np.random.default_rng(4)
    early, late = (choices_of(np.array([[1 - p, p]]), np.array([[0.0, 1.0]]), rng, 1000) for p in (0.2, 0.005))
    both = Choices(
        np.concatenate((early.starts, early.starts[-1] + late.starts[1:])),
        np.concatenate((early.intent, late.intent)),
        np.concatenate((early.chosen, early.starts[-1] + late.chosen)),
        np.concatenate((early.fold, late.fold)),
        np.concatenate((early.agent, late.agent)),
        np.concatenate((early.logged, late.logged)),
        np.concatenate((early.target, late.target)),
    )
    found = of(both, (rng.random(2000) < 0.5).astype(np.float64))
    tried = both.agent[both.chosen] == 1
    weights = np.where(tried, 1 / both.logged[both.chosen] - 1, 0)
    kish = weights.sum() ** 2 / (weights @ weights)
    assert found.effective_size > 2 * kish
    # newest first is the same
    back = replace_order(both)
    assert of(back, np.ones(2000)).shares[::-1] == pytest.approx(of(both, np.ones(2000)).shares)


def replace_order(choices: Choices) -> Choices:
    """The decisions between two agents in reverse."""
    n = len(choices)
    options = (2 * np.arange(n)[::-1, None] + np.arange(2)).ravel()
    return replace(
        choices,
        intent=choices.intent[::-1],
        chosen=2 * np.arange(n) + (choices.chosen - choices.starts[:-1])[::-1],
        fold=choices.fold[::-1],
        agent=choices.agent[options],
        logged=choices.logged[options],
        target=choices.target[options],
    )


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_outcomes_that_are_all_the_same_leave_no_noise(value: float) -> None:
    rng = np.random.default_rng(5)
    choices = choices_of(np.array([[0.9, 0.1]]), np.array([[0.0, 1.0]]), rng, 500)
    found = of(choices, np.full(500, value))
    assert np.isfinite(found.shares).all()
    assert found.shares.sum() == pytest.approx(mass_of(choices))
    assert found.variance.max() < 0.01


def test_figures_do_not_depend_on_the_unit() -> None:
    rng = np.random.default_rng(6)
    choices = choices_of(np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.0, 1.0], [1.0, 0.0]]), rng)
    value = rng.random(N)
    one, micro = of(choices, value), of(choices, value * 1e-6)
    assert micro.shares == pytest.approx(one.shares)
    assert micro.doubt == pytest.approx(one.doubt * 1e-12)
    assert micro.variance == pytest.approx(one.variance * 1e-12)


def test_nothing_is_told_where_both_policies_choose_alike() -> None:
    rng = np.random.default_rng(7)
    shares = np.array([[0.8, 0.2]])
    found = of(choices_of(shares, shares, rng), rng.random(N))
    assert (found.shares == 0).all()
    assert (found.doubt, found.effective_size) == (0.0, N)

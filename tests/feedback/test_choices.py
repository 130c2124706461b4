from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from feedback.choices import N_FOLDS, Choices, ChoicesBuilder, Row, Support, fold_of


def row(decision_id: str = "d", **fields: Any) -> Row:
    usual = Row(decision_id, intent=0, agents=(0, 1), logged=(0.98, 0.02), target=(0.0, 1.0), chosen=1)
    return usual._replace(**fields)


def test_options_of_decisions_lie_end_to_end() -> None:
    choices = Choices.of(
        [row("a"), row("b", intent=3, agents=(5,), logged=(1.0,), target=(1.0,), chosen=0), row("c", chosen=0)]
    )
    assert len(choices) == 3
    assert choices.starts.tolist() == [0, 2, 3, 5]
    assert choices.chosen.tolist() == [1, 2, 3]
    assert choices.agent.tolist() == [0, 1, 5, 0, 1]
    assert choices.intent.tolist() == [0, 3, 0]
    assert choices.decision.tolist() == [0, 0, 1, 2, 2]
    assert choices.total(choices.target).tolist() == [1.0, 1.0, 1.0]


def test_some_of_the_decisions_keep_their_own_options() -> None:
    whole = Choices.of([row("a"), row("b", agents=(5,), logged=(1.0,), target=(1.0,), chosen=0), row("c", chosen=0)])
    kept = whole.where(np.array([False, True, True]))
    assert kept.starts.tolist() == [0, 1, 3]
    assert kept.agent.tolist() == [5, 0, 1]
    assert kept.chosen.tolist() == [0, 1]
    assert kept.agent[kept.chosen].tolist() == [5, 0]
    assert kept.logged.tolist() == [1.0, 0.98, 0.02]


def test_a_propensity_of_the_floor_by_the_number_of_options_counts_as_tried() -> None:
    # 2 options, eps 0.02: at least 0.01 each
    tried = row("a", logged=(0.99, 0.01))
    untried = row("b", logged=(0.995, 0.005))
    assert Choices.of([tried]).support() == Support(1.0, 1.0, 1.0)
    assert Choices.of([untried]).support() == Support(0.0, 0.0, 1.0)
    both = Choices.of([tried, untried]).support()
    assert (both.choices, both.changes) == pytest.approx((0.5, 0.99 / (0.99 + 0.995)))
    assert Choices.of([tried, untried]).support(floor=0.01)[:2] == (1.0, 1.0)


def test_support_of_changes_looks_only_at_what_the_target_does_more_often() -> None:
    same = [row(str(number), logged=(1.0, 0.0), target=(1.0, 0.0), chosen=0) for number in range(99)]
    changed = row("x", logged=(1.0, 0.0), target=(0.0, 1.0), chosen=0)
    assert Choices.of([*same, changed]).support() == Support(0.99, 0.0, 0.0)
    assert Choices.of(same).support() == Support(1.0, 1.0, None)


def test_the_effective_size_of_changes_is_that_of_their_own_weights() -> None:
    same = [row(str(number), logged=(1.0, 0.0), target=(1.0, 0.0), chosen=0) for number in range(1000)]
    # more of the second option: of two that were logged the weights are .45 / .5 and .9 / .1
    changed = [row("x", logged=(0.5, 0.5), target=(0.05, 0.95)), row("y", logged=(0.9, 0.1), target=(0.0, 1.0))]
    away = row("z", logged=(0.5, 0.5), target=(0.0, 1.0), chosen=0)
    assert Choices.of([*same, *changed, away]).support().effective_changes == pytest.approx(
        (0.9 + 9.0) ** 2 / (0.9**2 + 9.0**2)
    )


def test_a_target_that_chooses_nobody_needs_no_support() -> None:
    assert Choices.of([row(target=(0.0, 0.0))]).support() == Support(1.0, 1.0, None)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"agents": ()}, "0 agents"),
        ({"logged": (1.0,)}, "2 agents, 1 logged and 2 target"),
        ({"target": (1.0,)}, "2 agents, 2 logged and 1 target"),
        ({"logged": (1.0, 0.0)}, "option 1 of 2 was chosen without a propensity"),
        ({"chosen": 2}, "option 2 of 2"),
    ],
)
def test_a_row_that_cannot_be_is_refused(fields: dict[str, Any], wrong: str) -> None:
    builder = ChoicesBuilder()
    with pytest.raises(ValueError, match=wrong):
        builder.add(row(**fields))
    assert builder.n_options == 0


def test_folds_go_by_the_id_alone_and_are_of_about_one_size() -> None:
    folds = [fold_of(f"decision-{number}") for number in range(5000)]
    assert folds == [fold_of(f"decision-{number}") for number in range(5000)]
    sizes = np.bincount(folds, minlength=N_FOLDS)
    assert sizes.min() > 0.85 * 5000 / N_FOLDS

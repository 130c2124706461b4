from __future__ import annotations

from dataclasses import replace

import numpy as np

from feedback.choices import Choices, Floats, Row
from feedback.outcome_model import Cells, Model, cross_fitted


def choices_of(chosen: list[tuple[int, int]]) -> Choices:
    """Decisions between two agents by (intent, chosen)."""
    return Choices.of(
        Row(f"d{number}", intent, (0, 1), (0.5, 0.5), (0.5, 0.5), agent)
        for number, (intent, agent) in enumerate(chosen)
    )


def fitted(choices: Choices, value: Floats) -> Model:
    return cross_fitted(choices, value, Cells.of(choices))


def test_a_prediction_never_knows_the_outcome_that_it_predicts() -> None:
    choices = choices_of([(0, 0)] * 50)
    value = np.zeros(50)
    before = fitted(choices, value).cells
    value[7] = 1000.0
    after = fitted(choices, value).cells
    same_fold = np.repeat(choices.fold == choices.fold[7], 2)
    assert (after[same_fold] == before[same_fold]).all()
    assert (after[~same_fold] > before[~same_fold]).all()


def test_predictions_are_the_table_of_means_by_hand() -> None:
    # one held out, four of the other fold: three of agent 0 on intent 0, one of agent 1 on intent 1
    choices = replace(
        choices_of([(0, 0), (0, 0), (0, 0), (1, 1), (0, 0)]), fold=np.array([0, 0, 0, 0, 1], dtype=np.int64)
    )
    value = np.array([1.0, 1.0, 0.0, 1.0, 0.5])
    # cells (0, 0) and (1, 1) with means 2/3 and 1, of which three outcomes and one count a little less
    counts, means, mu0 = np.array([30 / 13, 10 / 11]), np.array([2 / 3, 1.0]), 0.0
    mu0 = counts @ means / counts.sum()
    mu, of_agent = np.zeros(2), np.zeros(2)
    for _ in range(3):
        mu = mu0 + counts * (means - mu0 - of_agent) / (5 + counts)
        of_agent = counts * (means - mu) / (10 + counts)
    told = fitted(choices, value)
    assert np.allclose(told.levels[8:], mu[0] + of_agent)
    assert np.allclose(told.cells[8:], [(10 * (mu[0] + of_agent[0]) + 2) / 13, mu[0] + of_agent[1]])


def test_an_intent_is_not_worth_what_the_agent_is_that_it_mostly_goes_to() -> None:
    # on both intents one agent succeeds and the other fails; the first intent goes to the good one 50 times as often
    chosen = [(0, 0)] * 1000 + [(0, 1)] * 20 + [(1, 0)] * 20 + [(1, 1)] * 20
    value = np.array([0.9] * 1000 + [0.1] * 20 + [0.9] * 20 + [0.1] * 20)
    levels = fitted(choices_of(chosen), value).levels
    on_first, on_second = levels[:2], levels[-2:]
    assert np.allclose(on_first, on_second, atol=0.08)


def test_with_many_outcomes_predictions_are_the_means_of_intent_and_agent() -> None:
    rng = np.random.default_rng(0)
    truth: Floats = np.array([[0.2, 0.9], [0.8, 0.3]])
    chosen = [(int(intent), int(agent)) for intent, agent in rng.integers(2, size=(8000, 2))]
    value = np.array([float(rng.random() < truth[intent, agent]) for intent, agent in chosen])
    told = fitted(choices_of(chosen), value).cells
    intents = np.array([intent for intent, _ in chosen])
    for intent in (0, 1):
        for agent in (0, 1):
            assert abs(told[agent::2][intents == intent].mean() - truth[intent, agent]) < 0.03


def test_an_agent_that_was_never_chosen_on_an_intent_is_judged_by_the_levels_above() -> None:
    # agent 1 fails on intent 1; of intent 0 only agent 0 is known
    chosen = [(0, 0)] * 200 + [(1, 0)] * 200 + [(1, 1)] * 200
    value = np.array([0.9] * 200 + [0.9] * 200 + [0.1] * 200)
    told = fitted(choices_of(chosen), value).cells
    on_intent_0 = told[:400]
    assert (on_intent_0[1::2] < on_intent_0[0::2]).all()


def test_two_outcomes_are_enough_to_run() -> None:
    assert np.isfinite(fitted(choices_of([(0, 0), (3, 1)]), np.array([1.0, 0.0]))).all()
    assert fitted(choices_of([(0, 0)]), np.array([1.0])).cells.tolist() == [0.0, 0.0]

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feedback.choices import Choices, Floats, Row
from feedback.outcome_model import cross_fitted


def choices_of(chosen: list[tuple[int, int]]) -> Choices:
    """Decisions between two agents by (intent, chosen)."""
    return Choices.of(
        Row(f"d{number}", intent, (0, 1), (0.5, 0.5), (0.5, 0.5), agent)
        for number, (intent, agent) in enumerate(chosen)
    )


def test_a_prediction_never_knows_the_outcome_that_it_predicts() -> None:
    choices = choices_of([(0, 0)] * 50)
    value = np.zeros(50)
    before = cross_fitted(choices, value)
    value[7] = 1000.0
    after = cross_fitted(choices, value)
    same_fold = np.repeat(choices.fold == choices.fold[7], 2)
    assert (after[same_fold] == before[same_fold]).all()
    assert (after[~same_fold] > before[~same_fold]).all()


def test_predictions_are_the_table_of_means_by_hand() -> None:
    # one held out, four of the other fold: three of agent 0 on intent 0, one of agent 1 on intent 1
    choices = replace(
        choices_of([(0, 0), (0, 0), (0, 0), (1, 1), (0, 0)]), fold=np.array([0, 0, 0, 0, 1], dtype=np.int64)
    )
    value = np.array([1.0, 1.0, 0.0, 1.0, 0.5])
    mean = 0.75
    mu = {0: (5 * mean + 2) / 8, 1: (5 * mean + 1) / 6}
    residual = {0: (2 - 3 * mu[0]) / 13, 1: (1 - 1 * mu[1]) / 11}
    told = cross_fitted(choices, value)[8:]
    assert np.allclose(told, [(10 * (mu[0] + residual[0]) + 2) / 13, (10 * (mu[0] + residual[1])) / 10])


def test_with_many_outcomes_predictions_are_the_means_of_intent_and_agent() -> None:
    rng = np.random.default_rng(0)
    truth: Floats = np.array([[0.2, 0.9], [0.8, 0.3]])
    chosen = [(int(intent), int(agent)) for intent, agent in rng.integers(2, size=(8000, 2))]
    value = np.array([float(rng.random() < truth[intent, agent]) for intent, agent in chosen])
    told = cross_fitted(choices_of(chosen), value)
    intents = np.array([intent for intent, _ in chosen])
    for intent in (0, 1):
        for agent in (0, 1):
            assert abs(told[agent::2][intents == intent].mean() - truth[intent, agent]) < 0.03


def test_an_agent_that_was_never_chosen_on_an_intent_is_judged_by_the_levels_above() -> None:
    # agent 1 fails on intent 1; of intent 0 only agent 0 is known
    chosen = [(0, 0)] * 200 + [(1, 0)] * 200 + [(1, 1)] * 200
    value = np.array([0.9] * 200 + [0.9] * 200 + [0.1] * 200)
    told = cross_fitted(choices_of(chosen), value)
    on_intent_0 = told[:400]
    assert (on_intent_0[1::2] < on_intent_0[0::2]).all()


def test_two_outcomes_are_enough_to_run() -> None:
    assert np.isfinite(cross_fitted(choices_of([(0, 0), (3, 1)]), np.array([1.0, 0.0]))).all()
    assert cross_fitted(choices_of([(0, 0)]), np.array([1.0])).tolist() == [0.0, 0.0]

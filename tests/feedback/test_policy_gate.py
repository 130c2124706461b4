from __future__ import annotations

import json

import numpy as np
import pytest

from feedback.choices import Choices, ChoicesBuilder, Floats, Row
from feedback.policy_gate import Gate, gate


def world(
    n: int, *, better: float = 0.3, logged: tuple[float, float] = (0.5, 0.5), target: tuple[float, float] = (0.0, 1.0)
) -> tuple[Choices, Floats]:
    """n decisions between two agents, of which the second succeeds by `better` more often."""
    rng = np.random.default_rng(n)
    builder = ChoicesBuilder()
    reward = np.empty(n)
    for number in range(n):
        chosen = int(rng.random() < logged[1])
        reward[number] = float(rng.random() < 0.5 + better * chosen)
        builder.add(Row(f"d{number}", number % 3, (0, 1), logged, target, chosen))
    return builder.build(), reward


def codes(told: Gate) -> set[str]:
    return {refusal.code for refusal in told.refusals}


def test_a_clearly_better_candidate_passes_and_may_skip_the_canary() -> None:
    told = gate(*world(4000))
    assert (told.passed, told.skips_canary, told.refusals) == (True, True, ())
    assert told.sndr is not None
    assert told.sndr.low95 < 0.15 < told.sndr.high95
    assert told.n_outcomes == 4000


def test_one_that_is_better_by_little_passes_but_does_not_skip_the_canary() -> None:
    told = gate(*world(4000, better=0.055))
    assert told.sndr is not None
    assert told.sndr.low99 < 0 < told.sndr.low95
    assert (told.passed, told.skips_canary) == (True, False)


def test_too_few_outcomes_are_named() -> None:
    told = gate(*world(2999))
    assert codes(told) == {"too_few_outcomes"}
    assert not told.passed
    assert "2999" in told.refusals[0].text
    assert "3000" in told.refusals[0].text
    assert gate(*world(2999), min_outcomes=2000).passed


def test_decisions_without_an_outcome_do_not_count() -> None:
    choices, reward = world(4000)
    reward[::2] = np.nan
    assert codes(gate(choices, reward)) == {"too_few_outcomes"}


def test_no_outcome_at_all_is_said() -> None:
    choices, reward = world(50)
    told = gate(choices, np.full_like(reward, np.nan))
    assert (codes(told), told.sndr, told.n_outcomes) == ({"too_few_outcomes"}, None, 0)


def test_a_small_effective_size_is_named_with_the_switch() -> None:
    told = gate(*world(3000, logged=(0.99, 0.01)))
    assert told.effective_size < 50
    assert "small_effective_size" in codes(told)
    text = next(refusal.text for refusal in told.refusals if refusal.code == "small_effective_size")
    assert "learning.mode: explore" in text


def test_choices_that_were_never_tried_are_named_with_the_switch() -> None:
    told = gate(*world(3000, logged=(0.995, 0.005)))
    assert {"untried_choices", "untried_changes"} <= codes(told)
    assert all("learning.mode: explore" in refusal.text for refusal in told.refusals if "untried" in refusal.code)


def test_a_log_without_exploration_refuses_even_a_candidate_that_changes_little() -> None:
    # 4 % of the decisions change, and nobody knows what would have come of them
    builder = ChoicesBuilder()
    for number in range(4000):
        target = (0.0, 1.0) if number % 25 == 0 else (1.0, 0.0)
        builder.add(Row(f"d{number}", 0, (0, 1), (1.0, 0.0), target, 0))
    reward = (np.arange(4000) % 4 > 0).astype(float)
    told = gate(builder.build(), reward)
    assert told.support.choices == pytest.approx(0.96)
    assert told.support.changes == 0.0
    assert "untried_changes" in codes(told)


def test_few_outcomes_of_what_changes_are_named_however_many_there_are_of_the_rest() -> None:
    # 1 % of the decisions change; they were explored with 5 %, which makes some two outcomes
    rng = np.random.default_rng(0)
    builder = ChoicesBuilder()
    for number in range(4000):
        target = (0.0, 1.0) if number % 100 == 0 else (0.95, 0.05)
        builder.add(Row(f"d{number}", 0, (0, 1), (0.95, 0.05), target, int(rng.random() < 0.05)))
    told = gate(builder.build(), (rng.random(4000) < 0.5).astype(float))
    assert told.effective_size > 500
    assert told.support.effective_changes is not None
    assert told.support.effective_changes < 10
    assert "few_changes_tried" in codes(told)


def test_a_candidate_of_which_nothing_was_logged_has_no_estimate() -> None:
    choices, reward = world(4000, logged=(1.0, 0.0))
    told = gate(choices, reward)
    assert (told.sndr, told.effective_size, told.passed) == (None, 0.0, False)
    assert {"small_effective_size", "untried_choices", "untried_changes"} <= codes(told)


@pytest.mark.parametrize("better", [0.0, -0.2])
def test_a_candidate_that_is_not_better_is_refused(better: float) -> None:
    told = gate(*world(4000, better=better))
    assert "not_better" in codes(told)
    assert (told.passed, told.skips_canary) == (False, False)


def test_between_equal_policies_there_is_nothing_to_compare() -> None:
    told = gate(*world(4000, target=(0.5, 0.5)))
    assert not told.passed
    [refusal] = told.refusals
    assert refusal.code == "no_departures"
    assert refusal.text == (
        "the candidate decides like what is in force, on all 4000 logged decisions with an outcome: "
        "there is nothing to compare"
    )
    few = gate(*world(400, target=(0.5, 0.5)))
    assert codes(few) == {"too_few_outcomes", "no_departures"}
    assert "not_better" in codes(gate(*world(4000, target=(0.5 + 1e-6, 0.5 - 1e-6))))


def test_estimators_that_disagree_in_sign_refuse() -> None:
    # the target takes the second agent where things go badly anyway; SNIPS sees only that, SNDR knows the intents
    rng = np.random.default_rng(3)
    builder, rewards = ChoicesBuilder(), []
    for number in range(6000):
        hard = rng.random() < 0.5
        logged = (0.5, 0.5) if hard else (0.9, 0.1)
        target = (0.0, 1.0) if hard else (0.9, 0.1)
        chosen = int(rng.random() < (0.8 if hard else 0.1))
        rewards.append(float(rng.random() < (0.1 if hard else 0.9) + 0.05 * chosen))
        builder.add(Row(f"d{number}", int(hard), (0, 1), logged, target, chosen))
    told = gate(builder.build(), np.array(rewards))
    assert told.sndr is not None
    assert told.snips is not None
    assert told.sndr.value > 0 > told.snips.value
    assert "estimators_disagree" in codes(told)


def test_evidence_is_json() -> None:
    told = json.loads(json.dumps(gate(*world(3000, better=0.0)).evidence()))
    assert told["passed"] is False
    assert told["n_outcomes"] == 3000
    assert told["support"] == {"choices": 1.0, "changes": 1.0, "effective_changes": pytest.approx(1500, rel=0.1)}
    assert {"code", "text"} == set(told["refusals"][0])

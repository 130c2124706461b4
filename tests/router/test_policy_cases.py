from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.events import DecisionRow
from router.logged_decision import Logged, read_record
from router.policy_cases import MAX_EXAMPLES, PolicyCases
from router.target_policy import Chances
from tests.router.policy_log import contender, decision_row, outcome_row, sealed

A, B = contender("a", cost=1.0), contender("b", cost=4.0)


def one(
    number: int = 0,
    *,
    choice: str | None = None,
    intent: str = "refund",
    status: str | None = "succeeded",
    charged: str = "agent",
    **told: Any,
) -> Logged:
    """A record for the first of two agents, and what came of it."""
    request: dict[str, Any] = {"utterance": "x" * 500, "intent": intent}
    if choice is not None:
        request["caller_choice"] = {"agent_id": choice}
    row: DecisionRow = decision_row(
        f"d{number}",
        intent,
        A,
        request=request,
        inputs={
            "seed": 1,
            "blend": [1.0, 1.0, 1.0, 1.0, 0.1, 0.0, 0.02],
            "contenders": [sealed(A), sealed(B)],
            "propensities": [0.75, 0.25],
        },
    )
    outcomes = () if status is None else (outcome_row(row.decision_id, status, **told)._replace(charged=charged),)
    worth = {"agent": 1.0 if status == "succeeded" else 0.0}
    return read_record(row, outcomes, lambda _, charge, __: worth.get(charge.party.value))


SAME, OTHER, NOBODY = Chances((0.75, 0.25), 0), Chances((0.0, 1.0), 1), Chances((0.0, 0.0), None)


def test_decisions_become_arrays() -> None:
    cases = PolicyCases(of_callers=False)
    cases.add(one(0, latency_ms=120.0, cost_usd=0.5), SAME)
    cases.add(one(1, status=None), OTHER)
    cases.add(one(2, status="failed"), NOBODY)
    cases.add(one(3, status="failed", charged="caller", latency_ms=5.0), OTHER)
    arrays = cases.arrays()
    assert (len(cases), cases.n_options, cases.n_nobody) == (4, 8, 1)
    assert arrays.choices.logged.tolist() == [0.75, 0.25] * 4
    assert arrays.choices.target.tolist() == [0.75, 0.25, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    assert arrays.choices.chosen.tolist() == [0, 2, 4, 6]
    np.testing.assert_array_equal(arrays.reward, [1.0, np.nan, 0.0, np.nan])
    # what was not the agent's says nothing of it
    np.testing.assert_array_equal(arrays.latency_ms, [120.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(arrays.cost_usd, [0.5, np.nan, np.nan, np.nan])
    # by the dearest: 1/4 and 1
    np.testing.assert_allclose(arrays.logged_cost, [0.75 * 0.25 + 0.25] * 4)
    np.testing.assert_allclose(arrays.target_cost, [0.4375, 1.0, 0.0, 1.0])


def test_agents_that_cost_nothing_have_no_share_of_cost() -> None:
    cases = PolicyCases(of_callers=False)
    told = one()
    cases.add(told._replace(contenders=tuple(each._replace(cost=0.0) for each in told.contenders)), SAME)
    assert cases.arrays().logged_cost.tolist() == [0.0]


def test_decisions_that_flip_are_counted_and_the_first_few_shown() -> None:
    cases = PolicyCases(of_callers=False)
    for number in range(15):
        cases.add(one(number), OTHER)
        cases.add(one(100 + number), SAME)
    cases.add(one(200), NOBODY)
    assert (cases.n_flipped, len(cases.examples), MAX_EXAMPLES) == (16, 10, 10)
    first = cases.examples[0]
    assert (first["decision_id"], first["was"], first["would_be"], first["reward"]) == ("d0", "a", "b", 1.0)
    assert (first["new_propensity_of_was"], len(first["utterance"])) == (0.0, 120)


def test_what_the_target_cannot_be_asked_about_is_counted_apart() -> None:
    cases = PolicyCases(of_callers=False)
    cases.add(one(), None)
    assert (len(cases), cases.n_unknown, cases.n_flipped) == (0, 1, 0)
    assert cases.offered == {("default", "refund", "a"), ("default", "refund", "b")}


def test_callers_choices_have_the_frequencies_of_their_intent_as_propensities() -> None:
    cases = PolicyCases(of_callers=True)
    for number in range(8):
        cases.add(one(number, choice="b" if number < 6 else "a"), SAME)
    cases.add(one(8, choice="a", intent="track"), SAME)
    arrays = cases.arrays()
    assert arrays.choices.logged.tolist() == [0.25, 0.75] * 8 + [1.0, 0.0]
    # what flips is what the router would have given to another than the caller did
    assert cases.n_flipped == 6
    assert cases.examples[0]["was"] == "b"
    assert cases.examples[0]["would_be"] == "a"


def test_an_agent_that_only_callers_choose_is_an_option_of_theirs() -> None:
    cases = PolicyCases(of_callers=True)
    cases.add(one(0, choice="own"), OTHER)
    cases.add(one(1, choice="b"), OTHER)
    arrays = cases.arrays()
    choices = arrays.choices
    assert choices.starts.tolist() == [0, 3, 6]
    assert choices.chosen.tolist() == [2, 4]
    # also of a decision for which they chose another
    assert choices.logged.tolist() == [0.0, 0.5, 0.5, 0.0, 0.5, 0.5]
    assert choices.target.tolist() == [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    # what its calls cost by those of the others is not known
    np.testing.assert_array_equal(arrays.logged_cost, [np.nan, 1.0])
    assert arrays.target_cost.tolist() == [1.0, 1.0]


def test_frequencies_add_up_to_one() -> None:
    rng = np.random.default_rng(0)
    cases = PolicyCases(of_callers=True)
    for number in range(300):
        cases.add(
            one(number, choice=str(rng.choice(["a", "b", "own"])), intent=str(rng.choice(["refund", "track"]))), SAME
        )
    choices = cases.arrays().choices
    assert choices.total(choices.logged) == pytest.approx(np.ones(300))
    assert (choices.logged[choices.chosen] > 0).all()

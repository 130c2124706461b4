from __future__ import annotations

import json
from typing import Any

import pytest

from feedback.attribution import Charge, Party
from models.outcome import Outcome, OutcomeStatus
from router.logged_decision import Logged, OlderFormatError, read_record
from router.scorer import Blend
from tests.router.policy_log import contender, decision_row, outcome_row, sealed

A, B = contender("a", quality=0.6, cost=1.0), contender("b", quality=0.9, cost=5.0, latency_ms=300.0, share_weight=40.0)
INPUTS: dict[str, Any] = {
    "seed": 2**63,
    "blend": [1.0, 1.0, 1.0, 1.0, 0.1, 0.0, 0.02],
    "learned": {"mode": "explore", "floor": 0.02, "temperature": 0.5, "version": 7, "alpha": [6, 9.5], "beta": [4, 1]},
    "contenders": [sealed(A), sealed(B)],
    "propensities": [0.01, 0.99],
    "similarity": 0.9,
}


def worth(outcome: Outcome, charged: Charge, slice_ms: float) -> float | None:
    """A reward in which all that it is given can be seen."""
    if charged.party is not Party.AGENT:
        return None
    return (outcome.quality or 0.0) + (0.0 if charged.failed else 0.25) + slice_ms / 10_000


def read(*outcomes: Any, request: dict[str, Any] | None = None, chosen: Any = B, **inputs: Any) -> Logged:
    row = decision_row("d", "refund", chosen, request=request, inputs={**INPUTS, **inputs})
    return read_record(row, outcomes, worth)


def test_what_was_sealed_comes_back_exactly() -> None:
    told = read()
    assert told.contenders == (A, B)
    assert told.propensities == (0.01, 0.99)
    assert told.chosen == 1
    assert told.blend == Blend()
    assert told.seed == 2**63
    assert told.learned is not None
    assert told.learned.alpha == (6.0, 9.5)
    assert told.learned.mode == "explore"
    assert (told.is_wish, told.permissions, told.policy) == (False, None, None)


def test_the_entry_has_the_options_best_first() -> None:
    entry = read(request={"utterance": "money back", "preference": "cheapest"}).entry
    assert [option.agent for option in entry.options] == [("default", "b", "1.0.0"), ("default", "a", "1.0.0")]
    assert (entry.chosen, entry.propensity) == (0, 0.99)
    assert entry.options[0].cost == 5.0
    assert entry.options[0].latency_ms == 300.0
    assert (entry.utterance, entry.preference, entry.language) == ("money back", "cheapest", "en")
    assert (entry.intent, entry.intents) == ("refund", (("refund", 0.9),))
    assert (entry.mode, entry.weights, entry.caller, entry.namespace) == ("explore", 7, "shop", "default")
    assert entry.reward is None


def test_a_namespace_may_have_slashes() -> None:
    far = contender("a", namespace="prod/eu/shop", version="2.0.0-rc.1+build")
    told = read(chosen=far, contenders=[sealed(far)], propensities=[1.0], learned=None)
    assert told.contenders[0].namespace == "prod/eu/shop"
    assert told.entry.options[0].agent == ("prod/eu/shop", "a", "2.0.0-rc.1+build")
    assert (told.learned, told.entry.mode, told.entry.weights) == (None, "", 7)


def test_outcomes_get_their_reward_from_party_end_and_slice() -> None:
    told = read(
        outcome_row("d", "succeeded", quality=0.5, at_ms=9),
        outcome_row("d", "failed", attempt=2)._replace(attempt=2),
    )
    first = told.entry.outcomes[0]
    assert (first.attempt, first.charged, first.at_ms) == (1, "agent", 9)
    assert first.agent == ("default", "b", "1.0.0")
    assert first.reward == pytest.approx(0.5 + 0.25 + 0.2)
    assert told.entry.reward == first.reward
    assert first.outcome.status is OutcomeStatus.SUCCEEDED
    # the plan has one step: another attempt is none of this decision's
    assert len(told.entry.outcomes) == 1


def test_a_failure_that_the_agent_is_charged_with_is_one() -> None:
    assert read(outcome_row("d", "failed")).entry.reward == pytest.approx(0.2)
    assert read(outcome_row("d", "timed_out")._replace(charged="caller")).entry.reward is None


def test_a_callers_own_choice_gets_the_outcome() -> None:
    own = read(outcome_row("d", "succeeded"), request={"intent": "refund", "caller_choice": {"agent_id": "a"}})
    assert own.entry.caller_choice == ("default", "a", "1.0.0")
    assert own.entry.outcomes[0].agent == ("default", "a", "1.0.0")
    # how long the caller waits is not known
    assert own.entry.reward == pytest.approx(0.25)
    choice = {"agent_id": "x", "namespace": "far", "version": "3.0.0"}
    assert read(request={"intent": "i", "caller_choice": choice}).entry.caller_choice == ("far", "x", "3.0.0")
    assert read(request={"intent": "i", "caller_choice": {"agent_id": "x"}}).entry.caller_choice == ("default", "x", "")


def test_wishes_are_told_apart_from_choices() -> None:
    assert read(request={"intent": "refund", "target_agent": "b"}).is_wish
    assert not read(request={"intent": "refund", "target_agent": "a"}).is_wish
    row = decision_row("d", "refund", B, inputs=INPUTS, reason="sticky_session")
    assert read_record(row, (), worth).is_wish


def test_permissions_preferences_and_the_policy_come_back() -> None:
    told = read(
        grants={"permissions": ["a:b"]},
        reading={"preference": "best", "confidence": 0.9},
        digests={"policy": "abc"},
    )
    assert (told.permissions, told.said, told.asked, told.policy) == (frozenset({"a:b"}), "best", None, "abc")
    assert told.entry.preference == "best"


@pytest.mark.parametrize("missing", ["contenders", "propensities"])
def test_records_of_before_are_told(missing: str) -> None:
    row = decision_row("d", "refund", B, inputs={name: value for name, value in INPUTS.items() if name != missing})
    with pytest.raises(OlderFormatError):
        read_record(row, (), worth)


@pytest.mark.parametrize(
    "inputs",
    [
        {"propensities": [1.0]},
        {"propensities": ["x", 1.0]},
        {"contenders": [sealed(A)], "propensities": [1.0]},
        {"contenders": [["a", 1.0]], "propensities": [1.0]},
        {"contenders": 7},
        {"blend": "x"},
        {"learned": {"mode": "explore"}},
        {"learned": {**INPUTS["learned"], "alpha": [1.0]}},
        {"seed": None},
    ],
)
def test_what_this_release_does_not_write_is_refused(inputs: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        read(**inputs)


def test_text_that_is_no_record_is_refused() -> None:
    row = decision_row("d", "refund", B, inputs=INPUTS)
    for broken in (row._replace(inputs="{"), row._replace(answer="{}"), row._replace(request="[]")):
        with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
            read_record(broken, (), worth)
    outcome = outcome_row("d", "succeeded")._replace(body=json.dumps({"status": "?"}))
    with pytest.raises(ValueError, match="validation error"):
        read_record(row, (outcome,), worth)

from __future__ import annotations

from typing import Any

import pytest

from feedback.attribution import Charge, Party
from feedback.reward import reward
from models.learning_policy import RewardPolicy
from models.outcome import Outcome, OutcomeStatus

AGENT = Charge(Party.AGENT, failed=False)


def worth(status: str, policy: RewardPolicy | None = None, **fields: Any) -> float | None:
    outcome = Outcome(decision_id="d", status=OutcomeStatus(status), **fields)
    return reward(outcome, AGENT, 1000.0, policy or RewardPolicy())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("succeeded", 1.0),
        ("low_confidence", 0.5),
        ("schema_mismatch", 0.1),
        ("failed", 0.0),
        ("timed_out", 0.0),
        ("unreachable", 0.0),
        ("rejected", None),
        ("cancelled", None),
    ],
)
def test_a_status_is_worth_what_the_policy_says(status: str, expected: float | None) -> None:
    assert worth(status) == expected


@pytest.mark.parametrize("party", [party for party in Party if party is not Party.AGENT])
def test_what_is_charged_to_others_does_not_count(party: Party) -> None:
    outcome = Outcome(decision_id="d", status=OutcomeStatus.FAILED)

    assert reward(outcome, Charge(party, failed=True), 1000.0, RewardPolicy()) is None
    assert reward(outcome, Charge(Party.AGENT, failed=True), 1000.0, RewardPolicy()) == 0.0


def test_a_given_quality_counts_by_its_weight() -> None:
    assert worth("succeeded", quality=0.3) == 0.3
    assert worth("succeeded", RewardPolicy(quality_weight=0.25), quality=0.0) == 0.75
    assert worth("low_confidence", RewardPolicy(quality_weight=0.5), quality=1.0) == 0.75


def test_the_quality_of_an_answer_that_never_came_does_not_count() -> None:
    assert worth("failed", quality=1.0) == 0.0
    assert worth("schema_mismatch", quality=1.0) == 0.1


@pytest.mark.parametrize(
    ("latency_ms", "expected"), [(None, 1.0), (500.0, 1.0), (750.0, 0.8), (1000.0, 0.6), (9000.0, 0.6)]
)
def test_a_slow_success_loses_in_proportion(latency_ms: float | None, expected: float) -> None:
    assert worth("succeeded", RewardPolicy(slow_penalty=0.4), latency_ms=latency_ms) == pytest.approx(expected)


def test_a_penalty_does_not_make_a_reward_negative() -> None:
    assert worth("succeeded", RewardPolicy(slow_penalty=1.0), latency_ms=1000.0, quality=0.2) == 0.0


def test_a_slow_failure_is_no_worse_than_a_quick_one() -> None:
    assert worth("schema_mismatch", RewardPolicy(slow_penalty=1.0), latency_ms=1000.0) == 0.1

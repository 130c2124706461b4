from __future__ import annotations

from typing import Any

import pytest

from feedback.failure import stage_of
from models.outcome import Outcome, OutcomeError, OutcomeStatus


def outcome(status: str, **fields: Any) -> Outcome:
    return Outcome(decision_id="d", status=OutcomeStatus(status), **fields)


@pytest.mark.parametrize(
    ("told", "charged", "stage"),
    [
        (outcome("failed"), "agent", "agent"),
        (outcome("unreachable"), "agent", "agent"),
        (outcome("low_confidence"), "agent", "agent"),
        (outcome("timed_out"), "router", "deadline"),
        (outcome("schema_mismatch"), "agent", "schema"),
        (outcome("failed"), "request", "request"),
        (outcome("timed_out"), "dependency", "dependency"),
        (outcome("failed", error=OutcomeError(dependency="db")), "agent", "dependency"),
        (outcome("succeeded", correct_intent="other"), "agent", "reading"),
        (outcome("rejected", correct_intent="other"), "caller", "reading"),
        (outcome("succeeded", correct_intent="order"), "agent", None),
        (outcome("succeeded"), "agent", None),
        (outcome("rejected"), "caller", None),
        (outcome("cancelled"), "caller", None),
    ],
)
def test_an_outcome_says_what_failed(told: Outcome, charged: str, stage: str | None) -> None:
    assert stage_of(told, charged, "order") == stage

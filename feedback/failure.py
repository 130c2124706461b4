"""Failure: one thing that went wrong, as failure clusters look at it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from feedback.attribution import FAILURES, Party
from models.outcome import Outcome, OutcomeStatus


class FailureStage(StrEnum):
    """What failed."""

    READING = "reading"
    PERMISSION = "permission"
    ELIGIBILITY = "eligibility"
    DEADLINE = "deadline"
    DEPENDENCY = "dependency"
    AGENT = "agent"
    SCHEMA = "schema"
    REQUEST = "request"


class Failure(NamedTuple):
    """An attempt that failed, or a decision that named no agent.

    Attributes:
        at_ms: when it was told (epoch).
        status: of the outcome; the decision's action where there was no attempt.
        utterance: None where the request had none, or it is not kept; may be masked.
        intent: the one that was routed by; None where nothing was read.
        attempt: the step of the plan, from 1; 0 where there was none. So `agent` and `version` are "" there.
        charged: to whom (`feedback.attribution.Party`); "" where there was no attempt.
        error: class of the error, or the decision's reason.
        meant: the intent that was meant, as the caller says, where it is another.
        slice_ms: the time that the plan gave; None where there was no attempt.
        usual_ms: the agent's suggested timeout when the plan was made.
        latency_ms: how long the call took; None where that was not told.
        near_read: largest cosine of the utterance and a text of the intent that was read, -1..1; None where it is not
            known. So is `near_meant`, for the intent that was meant.
    """

    decision_id: str
    trace_id: str
    at_ms: int
    namespace: str
    stage: FailureStage
    status: str
    utterance: str | None = None
    intent: str | None = None
    attempt: int = 0
    agent: str = ""
    version: str = ""
    charged: str = ""
    error: str | None = None
    fingerprint: str | None = None
    dependency: str | None = None
    meant: str | None = None
    slice_ms: float | None = None
    usual_ms: float | None = None
    latency_ms: float | None = None
    near_read: float | None = None
    near_meant: float | None = None


class Traffic(NamedTuple):
    """First attempts at an agent's intent that have an outcome.

    Attributes:
        n_calls: all of them.
        n_failed: those that failed, or of which the agent was not sure, and that were charged to it.
        p90_ms: time within which 90 % of the newest successes came; None where no success told its time.
    """

    n_calls: int
    n_failed: int
    p90_ms: float | None = None


def stage_of(outcome: Outcome, charged: str, intent: str | None) -> FailureStage | None:
    """What failed in an attempt; None where nothing did.

    A correction that names another intent speaks of the reading, whatever the status; `low_confidence` is an answer of
    which the agent is not sure, and looked at here although it counts as a success elsewhere.

    >>> late = Outcome(decision_id="d", status=OutcomeStatus.TIMED_OUT)
    >>> stage_of(late, "agent", "refund").value
    'deadline'
    >>> stage_of(late.model_copy(update={"correct_intent": "returns"}), "agent", "refund").value
    'reading'
    >>> stage_of(Outcome(decision_id="d", status=OutcomeStatus.SUCCEEDED), "agent", "refund") is None
    True
    """
    if outcome.correct_intent is not None and outcome.correct_intent != intent:
        return FailureStage.READING
    if outcome.status not in FAILURES and outcome.status is not OutcomeStatus.LOW_CONFIDENCE:
        return None
    if charged == Party.REQUEST:
        return FailureStage.REQUEST
    if charged == Party.DEPENDENCY or (outcome.error is not None and outcome.error.dependency is not None):
        return FailureStage.DEPENDENCY
    if outcome.status is OutcomeStatus.TIMED_OUT:
        return FailureStage.DEADLINE
    return FailureStage.SCHEMA if outcome.status is OutcomeStatus.SCHEMA_MISMATCH else FailureStage.AGENT

"""Outcome: what came of one attempt of a decision's plan."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from models.answer import Answer
from models.contract import Contract, Identifier, IntentName, Label

Milliseconds = Annotated[int, Field(ge=0, le=86_400_000)]


class OutcomeStatus(StrEnum):
    """How an attempt ended (SPEC R7)."""

    SUCCEEDED = "succeeded"
    LOW_CONFIDENCE = "low_confidence"
    SCHEMA_MISMATCH = "schema_mismatch"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


class OutcomeError(Contract):
    """What went wrong, as far as the caller can tell.

    Attributes:
        class_: kind of error, such as the name of an exception; `class` in JSON.
        retryable: whether the agent said that trying again may help.
        fingerprint: the same for errors with the same cause.
        dependency: the shared dependency of the agent that failed, if it is known to be that one.
        retry_after_ms: the agent asked not to be called for so long.
    """

    model_config = ConfigDict(populate_by_name=True)

    class_: Annotated[Label | None, Field(alias="class")] = None
    retryable: bool | None = None
    fingerprint: Identifier | None = None
    dependency: Label | None = None
    retry_after_ms: Milliseconds | None = None


class Outcome(Contract):
    """What came of one attempt; the same attempt again, under another key or none, amends the earlier outcome.

    Attributes:
        attempt: the step of the plan, from 1.
        latency_ms: how long the call took.
        quality: how good the answer was, 0..1, as the caller or a judge says.
        correct_intent: the intent that was meant, if another than the one routed by.
        awaits_input: the agent asked back: the session's bare answer belongs to it.
        idempotency_key: the same key with the same content is the same outcome, however often it comes.
    """

    decision_id: Identifier
    attempt: Annotated[int, Field(ge=1, le=100)] = 1
    status: Annotated[OutcomeStatus, Field(strict=False)]
    latency_ms: Annotated[float, Field(ge=0, le=86_400_000)] | None = None
    tokens: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    cost_usd: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    quality: Annotated[float, Field(ge=0, le=1)] | None = None
    correct_intent: IntentName | None = None
    error: OutcomeError | None = None
    awaits_input: bool = False
    idempotency_key: Identifier | None = None


class Effect(StrEnum):
    """What an outcome did."""

    ACCEPTED = "accepted"
    AMENDED = "amended"
    DUPLICATE = "duplicate"
    LATE = "late"


NOBODY = "nobody"
"""Who is charged with the outcome of a call to an agent that the router could not have named to its caller."""


class Receipt(Answer):
    """An outcome that is stored.

    Attributes:
        effect: `accepted`; `amended`, it replaced an earlier one; `duplicate`, it changed nothing; `late`, it counts,
            but its lease was over.
        charged_to: who it was charged to: agent, dependency, request, caller or router; nobody where the caller called
            an agent of its own choice that the router could not have named to it.
        learned: whether the router learned from it what the agent is worth.
    """

    decision_id: str
    attempt: int
    effect: Effect
    charged_to: str
    learned: bool

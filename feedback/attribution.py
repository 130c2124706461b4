"""Attribution: who an attempt's end is charged to, before it touches any breaker, health or weight."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from models.outcome import Outcome, OutcomeStatus

FULL_SLICE = 0.9
"""A call that was given up before this part of its slice was over was not given its time."""

FAILURES = frozenset(
    {
        OutcomeStatus.FAILED,
        OutcomeStatus.TIMED_OUT,
        OutcomeStatus.UNREACHABLE,
        OutcomeStatus.SCHEMA_MISMATCH,
    }
)
"""Ends that speak against whoever they are charged to."""


class Party(StrEnum):
    """Who an end is charged to."""

    AGENT = "agent"
    DEPENDENCY = "dependency"
    REQUEST = "request"
    CALLER = "caller"
    ROUTER = "router"


class Charge(NamedTuple):
    """An end and who it is charged to.

    Attributes:
        failed: whether it speaks against that party; an end without failure is the agent's merit.
    """

    party: Party
    failed: bool


class Call(NamedTuple):
    """What is known of an attempt.

    Attributes:
        slice_ms: the time that the plan gave it.
        timeout_ms: the time that the agent should have been given (its suggested timeout).
        depends_on: shared dependencies on the agent's card.
        is_poison: whether the same request failed on other agents too.
    """

    slice_ms: float
    timeout_ms: float
    depends_on: Collection[str] = ()
    is_poison: bool = False


def charge(outcome: Outcome, call: Call) -> Charge:
    """Who an outcome is charged to.

    In this order: what the caller took back or got wrong is the caller's; a request that fails everywhere is the
    request's; a dependency that is named is the dependency's; a time-out after less time than there should have been
    is the caller's (who gave up early) or the router's (whose slice was short); all else is the agent's.

    >>> late = Outcome(decision_id="d", status=OutcomeStatus.TIMED_OUT, latency_ms=2000)
    >>> charge(late, Call(slice_ms=2000, timeout_ms=2000))
    Charge(party=<Party.AGENT: 'agent'>, failed=True)
    >>> charge(late, Call(slice_ms=9000, timeout_ms=9000)).party.value
    'caller'
    >>> charge(late, Call(slice_ms=2000, timeout_ms=9000)).party.value
    'router'
    """
    if outcome.status in (OutcomeStatus.CANCELLED, OutcomeStatus.REJECTED):
        return Charge(Party.CALLER, True)
    if outcome.status not in FAILURES:
        return Charge(Party.AGENT, False)
    if call.is_poison:
        return Charge(Party.REQUEST, True)
    if outcome.error is not None and outcome.error.dependency in call.depends_on:
        return Charge(Party.DEPENDENCY, True)
    if outcome.status is OutcomeStatus.TIMED_OUT:
        if outcome.latency_ms is not None and outcome.latency_ms < FULL_SLICE * call.slice_ms:
            return Charge(Party.CALLER, True)
        if call.slice_ms < FULL_SLICE * call.timeout_ms:
            return Charge(Party.ROUTER, True)
    return Charge(Party.AGENT, True)

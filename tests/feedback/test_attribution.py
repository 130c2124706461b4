from __future__ import annotations

from typing import Any

import pytest

from feedback.attribution import Call, Charge, Party, charge
from models.outcome import Outcome, OutcomeError, OutcomeStatus

FULL = Call(slice_ms=2000, timeout_ms=2000, depends_on=("payments",))


def outcome(status: str, **fields: Any) -> Outcome:
    return Outcome(decision_id="d", status=OutcomeStatus(status), **fields)


@pytest.mark.parametrize("status", ["succeeded", "low_confidence"])
def test_an_answer_is_the_agents_merit(status: str) -> None:
    assert charge(outcome(status), FULL) == Charge(Party.AGENT, failed=False)


@pytest.mark.parametrize("status", ["failed", "unreachable", "timed_out", "schema_mismatch"])
def test_a_failure_is_the_agents(status: str) -> None:
    assert charge(outcome(status), FULL) == Charge(Party.AGENT, failed=True)


@pytest.mark.parametrize("status", ["rejected", "cancelled"])
@pytest.mark.parametrize("is_poison", [True, False])
def test_what_the_caller_took_back_or_got_wrong_is_the_callers(status: str, is_poison: bool) -> None:
    assert charge(outcome(status), FULL._replace(is_poison=is_poison)) == Charge(Party.CALLER, failed=True)


def test_what_fails_everywhere_is_the_requests() -> None:
    assert charge(outcome("failed"), FULL._replace(is_poison=True)) == Charge(Party.REQUEST, failed=True)
    assert charge(outcome("succeeded"), FULL._replace(is_poison=True)) == Charge(Party.AGENT, failed=False)


def test_a_named_dependency_of_the_agent_is_charged() -> None:
    named = outcome("failed", error=OutcomeError(dependency="payments"))
    assert charge(named, FULL) == Charge(Party.DEPENDENCY, failed=True)


def test_a_dependency_that_the_agent_does_not_have_is_not() -> None:
    named = outcome("failed", error=OutcomeError(dependency="weather"))
    assert charge(named, FULL) == Charge(Party.AGENT, failed=True)


@pytest.mark.parametrize(("latency_ms", "party"), [(1799.0, Party.CALLER), (1800.0, Party.AGENT), (None, Party.AGENT)])
def test_who_gives_up_early_is_charged_itself(latency_ms: float | None, party: Party) -> None:
    assert charge(outcome("timed_out", latency_ms=latency_ms), FULL).party is party


@pytest.mark.parametrize(("slice_ms", "party"), [(1799.0, Party.ROUTER), (1800.0, Party.AGENT)])
def test_a_slice_too_short_is_the_routers(slice_ms: float, party: Party) -> None:
    assert charge(outcome("timed_out", latency_ms=slice_ms), FULL._replace(slice_ms=slice_ms)).party is party

from __future__ import annotations

from typing import Any

import pytest

from feedback.failure import Failure, FailureStage, Traffic
from feedback.proposed_fix import FixKind, ProposedFix, TrafficByIntent, proposed_fix


def failures(n: int, stage: FailureStage, **fields: Any) -> list[Failure]:
    given: dict[str, Any] = {
        "intent": "order",
        "attempt": 1,
        "agent": "order_bot",
        "version": "1.0.0",
        "charged": "agent",
    }
    return [Failure(f"d{i}", f"t{i}", i, "default", stage, "failed", **(given | fields)) for i in range(n)]


def fixed(members: list[Failure], traffic: TrafficByIntent | None = None) -> ProposedFix:
    return proposed_fix(members, ("parcel locker",), traffic or {})


def calls(agent: str, intent: str, n_calls: int, n_failed: int, p90_ms: float | None = None) -> TrafficByIntent:
    return {("default", agent, intent): Traffic(n_calls, n_failed, p90_ms)}


def corrected(near_meant: float | None, near_read: float | None) -> list[Failure]:
    return failures(8, FailureStage.READING, meant="pickup", near_meant=near_meant, near_read=near_read)


def test_corrections_that_no_example_covers_want_an_example() -> None:
    fix = fixed(corrected(0.2, 0.3))

    assert (fix.kind, fix.intent, fix.other_intent) == (FixKind.MISSING_EXAMPLE, "pickup", "order")
    assert fix.text == "Give 'pickup' examples of \"parcel locker\"."
    assert fix.reason.startswith("8 corrections say 'pickup' where 'order' was read; no example of 'pickup' is like it")


def test_corrections_whose_intent_has_such_texts_speak_of_a_shadowed_card() -> None:
    fix = fixed(corrected(0.7, 0.8))

    assert (fix.kind, fix.intent, fix.other_intent) == (FixKind.SHADOWED_CARD, "pickup", "order")
    assert "(cosine 0.70)" in fix.reason


def test_corrections_of_unknown_nearness_want_an_example() -> None:
    assert fixed(corrected(None, None)).kind is FixKind.MISSING_EXAMPLE


def test_an_agent_that_fails_at_all_its_intents_is_sick() -> None:
    members = [*failures(5, FailureStage.AGENT), *failures(5, FailureStage.AGENT, intent="cancel")]
    traffic = {
        **calls("order_bot", "order", 20, 5),
        **calls("order_bot", "cancel", 20, 5),
        **calls("desk", "order", 50, 1),
    }
    fix = fixed(members, traffic)

    assert (fix.kind, fix.agent) == (FixKind.SICK_AGENT, "order_bot")
    assert fix.reason == "it fails at 2 intent(s), 25% of its calls; its peers fail 2%"


def test_an_agent_whose_peers_fail_as_much_is_not_called_sick() -> None:
    fix = fixed(
        failures(5, FailureStage.AGENT), {**calls("order_bot", "order", 20, 5), **calls("desk", "order", 20, 4)}
    )

    assert fix.kind is FixKind.UNCLEAR
    assert fix.reason == "'order_bot' fails 25% of its calls, its peers 20% at the same intents"


def test_an_agent_that_fails_at_one_of_its_intents_has_a_weak_capability() -> None:
    fix = fixed(
        failures(9, FailureStage.AGENT), {**calls("order_bot", "order", 20, 9), **calls("order_bot", "cancel", 20, 0)}
    )

    assert (fix.kind, fix.agent, fix.intent) == (FixKind.WEAK_CAPABILITY, "order_bot", "order")


def test_a_dependency_is_named() -> None:
    members = failures(6, FailureStage.DEPENDENCY, dependency="payments-db", charged="dependency")
    fix = fixed([*members[:3], *(each._replace(agent="gift_bot") for each in members[3:])])

    assert (fix.kind, fix.dependency) == (FixKind.DEPENDENCY, "payments-db")
    assert fix.reason.endswith("at 2 agents")


@pytest.mark.parametrize(
    ("fields", "traffic", "reason"),
    [
        ({"charged": "router", "slice_ms": 600, "usual_ms": 1800}, {}, "slices of 600 ms where 1800 ms are usual"),
        ({"slice_ms": 600}, calls("order_bot", "order", 9, 3, 1500.0), "slices of 600 ms where 1500 ms are usual"),
        ({"charged": "caller", "slice_ms": 2000, "latency_ms": 700}, {}, "calls were given up after 700 ms of 2000 ms"),
    ],
)
def test_slices_that_are_too_short_are_a_tight_deadline(
    fields: dict[str, Any], traffic: TrafficByIntent, reason: str
) -> None:
    fix = fixed(failures(7, FailureStage.DEADLINE, **fields), traffic)

    assert (fix.kind, fix.agent, fix.reason) == (FixKind.TIGHT_DEADLINE, "order_bot", reason)


def test_an_agent_that_had_its_time_is_sick_when_it_is_late() -> None:
    fix = fixed(failures(7, FailureStage.DEADLINE, slice_ms=2000, usual_ms=2000))

    assert (fix.kind, fix.agent) == (FixKind.SICK_AGENT, "order_bot")


def test_output_off_the_schema_names_the_agent() -> None:
    fix = fixed(failures(7, FailureStage.SCHEMA))

    assert (fix.kind, fix.agent) == (FixKind.BAD_OUTPUT, "order_bot")


def test_requests_that_fail_everywhere_are_poison() -> None:
    assert fixed(failures(7, FailureStage.REQUEST, charged="request")).kind is FixKind.POISON_REQUEST


@pytest.mark.parametrize(
    ("stage", "error", "kind"),
    [
        (FailureStage.PERMISSION, "not_permitted", FixKind.PERMISSION),
        (FailureStage.ELIGIBILITY, "no_capable_agent", FixKind.UNCOVERED_TOPIC),
        (FailureStage.ELIGIBILITY, "at_capacity", FixKind.NO_ROOM),
        (FailureStage.DEADLINE, "deadline", FixKind.TIGHT_DEADLINE),
    ],
)
def test_decisions_that_named_nobody_say_what_was_missing(stage: FailureStage, error: str, kind: FixKind) -> None:
    members = failures(6, stage, error=error, attempt=0, agent="", charged="")

    assert fixed(members).kind is kind

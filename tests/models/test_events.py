from __future__ import annotations

from models.events import EventType

TYPES = "request read route invoke tool_call retry fallback breaker state validation error response"


def test_the_kinds_of_events_are_those_of_the_audit() -> None:
    assert [kind.value for kind in EventType] == TYPES.split()

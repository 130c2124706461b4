"""Rows and cards that the tests of the store and the journal share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.card import AgentCard, Capability
from models.events import DecisionRow, EventRow, OutcomeRow, RepeatRow, SpanRow, UsageRow
from router.spans import Step, span_row


@dataclass
class FakeClock:
    """A clock that stands still until it is set."""

    ms: float = 1_700_000_000_000.0

    def now_ms(self) -> float:
        return self.ms

    def monotonic_ms(self) -> float:
        return self.ms


ROOT = Path(__file__).parents[3]
"""Where child processes start, so that they find the packages."""


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def card(agent_id: str = "orders", version: str = "1.0.0", **fields: Any) -> AgentCard:
    capability = Capability(
        intent="order_status",
        examples=["where is my order", "订单在哪里"],
        input_schema={"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}},
    )
    return AgentCard(agent_id=agent_id, version=version, capabilities=[capability], **fields)


def event(trace_id: str = "t1", span_id: str = "s1", happened_at: int = 1000, payload: str = "{}") -> EventRow:
    return EventRow(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=None,
        node_id="router",
        event_type="route",
        decision="invoke",
        payload=payload,
        cost_tokens=0,
        latency_ms=1.5,
        happened_at=happened_at,
        caller="",
    )


def span(n_events: int, trace_id: str = "t1", span_id: str = "s1", happened_at: int = 1000) -> SpanRow:
    """Events that count from 0 in their payload."""
    steps: list[Step] = [("route", "invoke", {"n": n}, n, n / 2) for n in range(n_events)]
    return span_row(trace_id, span_id, None, "router", steps, happened_at, "")


def decision(decision_id: str = "d1", trace_id: str = "t1", answer: str = "{}") -> DecisionRow:
    return DecisionRow(
        decision_id=decision_id,
        trace_id=trace_id,
        caller="",
        namespace="default",
        action="invoke",
        reason="selected",
        intent=None,
        agent_id="orders",
        request="{}",
        answer=answer,
        inputs="{}",
        happened_at=1000,
    )


def outcome(decision_id: str = "d1", attempt: int = 1, body: str = "{}", caller: str = "web") -> OutcomeRow:
    return OutcomeRow(decision_id, attempt, None, caller, body, "agent", 1000)


def repeat(key: str = "k1", caller: str = "web", decision_id: str = "d1", created_at: int = 1000) -> RepeatRow:
    return RepeatRow(caller, key, "0" * 64, decision_id, created_at)


def used(hour: int = 1, agent_id: str = "orders", n_calls: int = 1, tokens: int = 0, **fields: Any) -> UsageRow:
    row = UsageRow(hour, "web", "shop", "default", agent_id, 0, n_calls, 0, tokens, 0.0, 0, 0.0)
    return row._replace(**fields)

"""Spans: the events of a decision, which are stored as one row and come back one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from models.events import SPAN, EventRow, SpanRow
from router.wire import dumps

Step = tuple[str, str | None, dict[str, Any], int, float]
"""What is an event's own within its span: event_type, decision, payload, cost_tokens, latency_ms."""


def span_row(
    trace_id: str,
    span_id: str,
    parent_span_id: str | None,
    node_id: str,
    steps: Sequence[Step],
    at_ms: int,
    caller: str,
) -> SpanRow:
    """The row of a span's events, given in their order; all else is what they share."""
    told = dumps(steps).decode()
    shared = EventRow(trace_id, span_id, parent_span_id, node_id, SPAN, None, told, 0, 0.0, at_ms, caller)
    return SpanRow(len(steps), shared)


def events_of(row: EventRow) -> list[EventRow]:
    """The events that a row stands for, in their order: those of a span, or the one that it is.

    >>> steps = [("read", "sure", {}, 0, 0.0), ("route", "invoke", {"n": 1}, 0, 0.5)]
    >>> span = span_row("t", "s", None, "router", steps, 1000, "")
    >>> [(event.event_type, event.decision, event.payload, event.latency_ms) for event in events_of(span.row)]
    [('read', 'sure', '{}', 0.0), ('route', 'invoke', '{"n":1}', 0.5)]
    """
    if row.event_type != SPAN:
        return [row]
    before, behind = row[:4], (row.happened_at, row.caller)
    return [
        EventRow(*before, kind, decision, dumps(payload).decode(), cost_tokens, latency_ms, *behind)
        for kind, decision, payload, cost_tokens, latency_ms in orjson.loads(row.payload)
    ]


def numbered(rows: Iterable[tuple[int, EventRow]]) -> Iterator[tuple[int, EventRow]]:
    """(sequence, event) of rows as they are stored: that of a span has the number of its last event."""
    for last, row in rows:
        events = events_of(row)
        yield from enumerate(events, start=last - len(events) + 1)

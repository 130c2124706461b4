"""What belongs to a subject, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, or_, select

from models.events import DecisionRow, EventRow, OutcomeRow
from models.queue import TicketRow
from models.review import ReviewState, StoredReview
from models.subject import Subject, SubjectRecord
from router.spans import events_of
from router.stores.tables import decisions, events, outcomes, reviews, tickets
from router.stores.ticket_queries import TICKET, row_of

MOST_EVENTS = 1000
"""Of one decision at most so many rows of events are told; more come of nothing that we do."""


def of_subject(subject: Subject) -> ColumnElement[bool]:
    """Decisions of a subject, each part through an index of its own."""
    named = or_(
        decisions.c.session_id == subject.name,
        decisions.c.asker == subject.name,
        decisions.c.caller == subject.name,
    )
    return named if subject.key is None else and_(named, decisions.c.caller == subject.key)


def ids_query(subject: Subject, after: str, limit: int) -> Select[Any]:
    """Ids of a subject's decisions behind one, in their order."""
    query = select(decisions.c.decision_id).where(of_subject(subject), decisions.c.decision_id > after)
    return query.order_by(decisions.c.decision_id).limit(limit)


def span_of(answer: str) -> str | None:
    """The span of a recorded answer."""
    return _text(orjson.loads(answer).get("span_id"))


def ticket_of(answer: str) -> str | None:
    """The ticket that a recorded answer gave."""
    return _text((orjson.loads(answer).get("queue") or {}).get("ticket"))


def task_of(request: str) -> str | None:
    """The task that a recorded request named."""
    return _text(orjson.loads(request).get("task_id"))


def records_of(connection: Connection, ids: Sequence[str]) -> list[SubjectRecord]:
    """Decisions with all that hangs on them, in the order of their ids."""
    found = select(*(decisions.c[name] for name in DecisionRow._fields)).where(decisions.c.decision_id.in_(ids))
    rows = [DecisionRow._make(row) for row in connection.execute(found.order_by(decisions.c.decision_id))]
    return [_record(connection, row) for row in rows]


def _record(connection: Connection, row: DecisionRow) -> SubjectRecord:
    told = select(*(outcomes.c[name] for name in OutcomeRow._fields)).where(outcomes.c.decision_id == row.decision_id)
    corrected = select(*(reviews.c[name] for name in StoredReview._fields[:-1])).where(
        reviews.c.decision_id == row.decision_id
    )
    happened = (
        select(*(events.c[name] for name in EventRow._fields))
        .where(events.c.trace_id == row.trace_id, events.c.span_id == span_of(row.answer))
        .order_by(events.c.sequence)
        .limit(MOST_EVENTS)
    )
    queued = select(*TICKET, tickets.c.request).where(tickets.c.ticket == (ticket_of(row.answer) or ""))
    return SubjectRecord(
        row,
        [OutcomeRow._make(each) for each in connection.execute(told.order_by(outcomes.c.sequence))],
        [_review(each) for each in connection.execute(corrected.order_by(reviews.c.review_id))],
        [event for each in connection.execute(happened) for event in events_of(EventRow._make(each))],
        [_ticket(each) for each in connection.execute(queued)],
    )


def _review(row: Row[Any]) -> StoredReview:
    review = StoredReview._make((*row, 0))
    return review._replace(state=ReviewState(review.state))


def _ticket(row: Any) -> tuple[TicketRow, str]:
    return row_of(row[:-1]), row[-1]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None

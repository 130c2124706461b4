"""What the tickets of the degrade queue are asked for in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Row, Select, and_, func, literal_column, or_, select

from models.queue import ENDED_STATES, OPEN_STATES, Claim, TicketFilter, TicketRow, TicketState
from router.stores.tables import tickets

WAITING, CLAIMED = str(TicketState.WAITING), str(TicketState.CLAIMED)
OPEN = tuple(map(str, OPEN_STATES))
ENDED = tuple(map(str, ENDED_STATES))
TICKET = tuple(tickets.c[name] for name in TicketRow._fields)
"""The columns of a `TicketRow`."""

FIRST_COME = (tickets.c.created_at, literal_column("tickets.rowid", Integer))
"""Tickets of the same millisecond in the order in which they were stored; the index holds both."""


def page_query(wanted: TicketFilter, after: str, limit: int) -> Select[Any]:
    """A page of tickets by id: through the index by state where one is asked for."""
    query = select(*TICKET).where(tickets.c.ticket > after, *_of(wanted))
    if wanted.state is not None:
        query = query.where(tickets.c.state == str(wanted.state))
    return query.order_by(tickets.c.ticket).limit(limit)


def counts_query(wanted: TicketFilter) -> Select[Any]:
    """(state, number, instant of the oldest) of the open tickets."""
    return (
        select(tickets.c.state, func.count(), func.min(tickets.c.created_at))
        .where(tickets.c.state.in_(OPEN), *_of(wanted))
        .group_by(tickets.c.state)
    )


def oldest_query(claim: Claim, now_ms: int) -> Select[Any]:
    """(ticket, characters of its request) of those that a claim may take, in their order."""
    query = select(tickets.c.ticket, func.length(tickets.c.request)).where(
        tickets.c.state == WAITING, tickets.c.namespace == claim.namespace, tickets.c.expires_at > now_ms
    )
    if claim.intents is not None:
        query = query.where(tickets.c.intent.in_(claim.intents))
    return query.order_by(*FIRST_COME).limit(claim.limit)


def ended_query(before_ms: int, limit: int) -> Select[Any]:
    """Tickets that ended before an instant."""
    return select(tickets.c.ticket).where(tickets.c.state.in_(ENDED), tickets.c.settled_at < before_ms).limit(limit)


def n_open_query(namespace: str) -> Select[Any]:
    """How many are open in a namespace."""
    return select(func.count()).where(tickets.c.state.in_(OPEN), tickets.c.namespace == namespace)


def _of(wanted: TicketFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.namespaces is not None:
        conditions.append(tickets.c.namespace.in_(sorted(wanted.namespaces)))
    if wanted.intent is not None:
        conditions.append(tickets.c.intent == wanted.intent)
    return conditions


def is_due(now_ms: int) -> ColumnElement[bool]:
    """As `TicketRow.is_due`: the ticket, or the claim on it, has run out."""
    return or_(
        and_(tickets.c.state == WAITING, tickets.c.expires_at <= now_ms),
        and_(tickets.c.state == CLAIMED, tickets.c.claimed_until <= now_ms),
    )


def one(connection: Connection, ticket: str) -> TicketRow | None:
    """One ticket; None where there is none."""
    row = connection.execute(select(*TICKET).where(tickets.c.ticket == ticket)).first()
    return None if row is None else row_of(row)


def row_of(row: Row[Any] | Sequence[Any]) -> TicketRow:
    """The values of `TICKET` as a row."""
    made = TicketRow._make(row)
    return made._replace(state=TicketState(made.state))

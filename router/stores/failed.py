"""SqlFailed: pages of outcomes and of decisions that named no agent, the newest first, for failure clusters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, select

from router.stores.database import Database
from router.stores.opened import looked_at
from router.stores.tables import decisions, outcomes

_NAMED_NOBODY = ("fallback", "deny")
_OWN_CHOICE = '"caller_choice":{'


class LoggedBody(NamedTuple):
    """The newest outcome of an attempt, with what its decision's record tells at a glance.

    Attributes:
        sequence: larger for later ones.
        body: the outcome's JSON text.
        received_at: epoch, milliseconds.
        agent_id: that the decision named; the first attempt's.
        is_shadow: whether the caller called an agent of its own choice instead, whatever it was.
    """

    sequence: int
    decision_id: str
    attempt: int
    body: str
    charged: str
    received_at: int
    namespace: str
    intent: str | None
    agent_id: str | None
    is_shadow: bool


class LoggedDecision(NamedTuple):
    """The record of a decision, as far as a failure needs it; JSON texts as in `DecisionRow`."""

    decision_id: str
    trace_id: str
    namespace: str
    action: str
    reason: str
    intent: str | None
    request: str
    answer: str
    inputs: str
    happened_at: int


class SqlFailed:
    """Reads what a store holds of failures; writes nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def outcomes(self, since_ms: int, before: int | None, limit: int) -> Sequence[LoggedBody]:
        """The newest outcome of each attempt, of received_at >= since_ms and sequence < before; None means any."""
        query = outcomes_query(since_ms, before, limit)
        return await self._database.read(
            lambda connection: [LoggedBody._make(row) for row in connection.execute(query)]
        )

    async def decisions(self, decision_ids: Sequence[str]) -> Sequence[LoggedDecision]:
        """The records of these decisions, as far as they are kept."""
        return await self._decisions(_decision_columns().where(decisions.c.decision_id.in_(decision_ids)))

    async def named_nobody(self, since_ms: int, before: tuple[int, str] | None, limit: int) -> Sequence[LoggedDecision]:
        """Decisions of happened_at >= since_ms that end in a fallback or a denial.

        Args:
            since_ms: epoch.
            before: (happened_at, decision_id) of the last one seen; None begins with the newest.
            limit: at most so many.
        """
        return await self._decisions(nobody_query(since_ms, before, limit))

    async def count_nobody(self, since_ms: int) -> int:
        """How many of those there are."""
        query = select(func.count()).select_from(decisions).where(*_named_nobody(since_ms))
        return await self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    async def _decisions(self, query: Select[Any]) -> Sequence[LoggedDecision]:
        return await self._database.read(
            lambda connection: [LoggedDecision._make(row) for row in connection.execute(query)]
        )


@asynccontextmanager
async def open_failed(url: str) -> AsyncIterator[SqlFailed]:
    """Open the store that `url` names to look into it; a service may be writing to it.

    Raises:
        StoreError: there is none, or it is of another schema.
    """
    async with looked_at(url) as database:
        yield SqlFailed(database)


def outcomes_query(since_ms: int, before: int | None, limit: int) -> Select[Any]:
    """A page of outcomes along the primary key, backwards, without amended ones (by the index of decisions)."""
    later = outcomes.alias("later")
    is_amended = (
        select(later.c.sequence)
        .where(
            later.c.decision_id == outcomes.c.decision_id,
            later.c.attempt == outcomes.c.attempt,
            later.c.sequence > outcomes.c.sequence,
        )
        .exists()
    )
    own = (outcomes.c[name] for name in ("sequence", "decision_id", "attempt", "body", "charged", "received_at"))
    is_shadow = decisions.c.request.contains(_OWN_CHOICE, autoescape=True)
    # the index by time would have all that it finds sorted
    unindexed: ColumnElement[int] = outcomes.c.received_at + 0
    query = (
        select(*own, decisions.c.namespace, decisions.c.intent, decisions.c.agent_id, is_shadow)
        .join(decisions, decisions.c.decision_id == outcomes.c.decision_id)
        .where(unindexed >= since_ms, ~is_amended)
        .order_by(outcomes.c.sequence.desc())
        .limit(limit)
    )
    return query if before is None else query.where(outcomes.c.sequence < before)


def nobody_query(since_ms: int, before: tuple[int, str] | None, limit: int) -> Select[Any]:
    """A page of decisions that named no agent, along the index by time, backwards."""
    query = (
        _decision_columns()
        .where(*_named_nobody(since_ms))
        .order_by(decisions.c.happened_at.desc(), decisions.c.decision_id.desc())
        .limit(limit)
    )
    if before is None:
        return query
    at_ms, decision_id = before
    is_older = decisions.c.happened_at < at_ms
    return query.where(is_older | ((decisions.c.happened_at == at_ms) & (decisions.c.decision_id < decision_id)))


def _named_nobody(since_ms: int) -> tuple[ColumnElement[bool], ...]:
    return decisions.c.happened_at >= since_ms, decisions.c.action.in_(_NAMED_NOBODY)


def _decision_columns() -> Select[Any]:
    return select(*(decisions.c[name] for name in LoggedDecision._fields))

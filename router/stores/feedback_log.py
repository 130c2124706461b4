"""SqlFeedbackLog: decisions with their outcomes, read page by page; nothing is written, made or migrated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, or_, select

from models.card import AgentCard
from models.events import DecisionRow, OutcomeRow
from router.clock import SystemClock
from router.stores.cards import SqlCards
from router.stores.database import Database
from router.stores.opened import looked_at
from router.stores.tables import decisions, generations, outcomes

_DECISION = tuple(decisions.c[name] for name in DecisionRow._fields)
_OUTCOME = tuple(outcomes.c[name] for name in OutcomeRow._fields)

_MOST_POLICIES = 200


class LogQuery(NamedTuple):
    """Which decisions are read.

    Attributes:
        from_ms: those that were made then (epoch) or later.
        to_ms: only those before; None means all.
        namespace: only those of this one; None means of all.
        newest_first: False begins with the oldest.
    """

    from_ms: int = 0
    to_ms: int | None = None
    namespace: str | None = None
    newest_first: bool = False


class RecordedDecision(NamedTuple):
    """A decision with the outcomes of its attempts, of each attempt the newest one, by attempt."""

    decision: DecisionRow
    outcomes: tuple[OutcomeRow, ...]


class SqlFeedbackLog:
    """Reads what was decided, and what came of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, query: LogQuery, after: tuple[int, str] | None, limit: int) -> Sequence[RecordedDecision]:
        """At most `limit` decisions that named an agent, by time and id; fewer than that are the last ones.

        Args:
            query: which.
            after: (happened_at, decision_id) of the last one of the page before; None begins.
            limit: at least 1.
        """
        return await self._database.read(lambda connection: _page(connection, query, after, limit))

    async def policies(self) -> dict[str, bytes]:
        """JSON texts of the policies that were in force, the last ones, by their digests."""
        query = (
            select(generations.c.digest, generations.c.body)
            .where(generations.c.kind == "policy")
            .order_by(generations.c.used_at.desc())
            .limit(_MOST_POLICIES)
        )
        return await self._database.read(
            lambda connection: {digest: bytes(body) for digest, body in connection.execute(query)}
        )

    async def cards(self) -> list[AgentCard]:
        """The cards as they were registered last."""
        return [stored.card for stored in await SqlCards(self._database, SystemClock()).load_cards()]


@asynccontextmanager
async def open_log(url: str) -> AsyncIterator[SqlFeedbackLog]:
    """The log in the store that a URL names; a service may be writing to it.

    Raises:
        StoreError: there is no such store, or it is not of this release's schema.
    """
    async with looked_at(url) as database:
        yield SqlFeedbackLog(database)


def page_query(query: LogQuery, after: tuple[int, str] | None, limit: int) -> Select[Any]:
    """Decisions along the index by time; those of one instant by their ids."""
    at, ident = decisions.c.happened_at, decisions.c.decision_id
    wanted: list[ColumnElement[bool]] = [decisions.c.agent_id.is_not(None), at >= query.from_ms]
    if query.to_ms is not None:
        wanted.append(at < query.to_ms)
    if query.namespace is not None:
        wanted.append(decisions.c.namespace == query.namespace)
    if after is not None:
        at_ms, last = after
        if query.newest_first:
            wanted += [at <= at_ms, or_(at < at_ms, ident < last)]
        else:
            wanted += [at >= at_ms, or_(at > at_ms, ident > last)]
    order = (at.desc(), ident.desc()) if query.newest_first else (at, ident)
    return select(*_DECISION).where(and_(*wanted)).order_by(*order).limit(limit)


def outcomes_of_query(decision_ids: Sequence[str]) -> Select[Any]:
    """Outcomes of some decisions in the order in which they were appended, through their index."""
    return select(*_OUTCOME).where(outcomes.c.decision_id.in_(decision_ids)).order_by(outcomes.c.sequence)


def _page(connection: Connection, query: LogQuery, after: tuple[int, str] | None, limit: int) -> list[RecordedDecision]:
    found = [DecisionRow._make(row) for row in connection.execute(page_query(query, after, limit))]
    newest: dict[str, dict[int, OutcomeRow]] = {row.decision_id: {} for row in found}
    for row in connection.execute(outcomes_of_query(list(newest))) if found else ():
        outcome = OutcomeRow._make(row)
        newest[outcome.decision_id][outcome.attempt] = outcome
    return [RecordedDecision(row, tuple(each for _, each in sorted(newest[row.decision_id].items()))) for row in found]

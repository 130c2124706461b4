"""SqlRecords: decisions, events, goal hashes, outcomes, repeats and usage, appended in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Table,
    bindparam,
    delete,
    func,
    literal_column,
    select,
)

from models.events import (
    DecisionRow,
    EventRow,
    GoalRow,
    LearnerRow,
    OutcomeRow,
    RepeatRow,
    ReviewRow,
    Row,
    ShadowRow,
    SpanRow,
    UsageQuery,
    UsageRow,
    WeightRow,
)
from router.spans import numbered
from router.stores import weights as evidence
from router.stores.database import Database, insert_or_keep
from router.stores.reviews import put_reviews
from router.stores.seals import Draft, append_seals, drafts_of
from router.stores.tables import (
    decisions,
    events,
    goals,
    learner,
    outcomes,
    repeats,
    shadows,
    usage,
    weights,
)
from router.stores.usage import add_statement, merged, usage_query

_EVENT = (events.c.sequence, *(events.c[name] for name in EventRow._fields))
_LAST_GIVEN = literal_column("coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)", Integer)
"""SQLite's own note of the greatest number that any event ever had."""

_KEPT = (
    (DecisionRow, decisions),
    (GoalRow, goals),
    (OutcomeRow, outcomes),
    (RepeatRow, repeats),
    (ShadowRow, shadows),
)
"""Kinds of rows that are written one by one, each into its table."""

_SEALED_AT_ONCE = 32
"""Of so many records the digests are made on the event loop."""

_LOOK_AHEAD = 4
"""How many pages' worth of events behind the cursor are searched before the index by time is."""


class SqlRecords:
    """A `RecordStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._inserts: dict[Table, str] = {}

    async def append(self, rows: Sequence[Row]) -> None:
        """Append rows of all kinds, in one transaction, events and outcomes in the order given; durable on return.

        A decision id, a goal or a repeat seen before keeps its first row; usage is added to what there is. Each
        decision is sealed (`router.seals`).

        Raises:
            ValueError: where a row is such that the database can never hold it; none is stored then.
        """
        if not rows:
            return
        decided = [row for row in rows if isinstance(row, DecisionRow)]
        # beside the event loop where there are many: the records are read once from end to end
        many = len(decided) > _SEALED_AT_ONCE
        drafts = await asyncio.to_thread(drafts_of, decided) if many else drafts_of(decided)
        await self._database.write(lambda connection: self._append(connection, rows, decided, drafts))

    def _append(
        self, connection: Connection, rows: Sequence[Row], decided: Sequence[DecisionRow], drafts: Sequence[Draft]
    ) -> None:
        if decided:
            n_stored = self._insert(connection, decisions, DecisionRow._fields, decided)
            append_seals(connection, decided, drafts, n_stored)
        for kind, table in _KEPT:
            self._insert(connection, table, kind._fields, [row for row in rows if isinstance(row, kind)])
        self._insert(connection, usage, UsageRow._fields, merged(row for row in rows if isinstance(row, UsageRow)))
        self._insert(
            connection, weights, WeightRow._fields, evidence.summed(row for row in rows if isinstance(row, WeightRow))
        )
        self._insert(
            connection, learner, LearnerRow._fields, evidence.newest(row for row in rows if isinstance(row, LearnerRow))
        )
        put_reviews(connection, (row for row in rows if isinstance(row, ReviewRow)))
        # one statement for both kinds, so that events keep their order
        told = (
            row if isinstance(row, SpanRow) else SpanRow(1, row) for row in rows if isinstance(row, EventRow | SpanRow)
        )
        self._insert(connection, events, EventRow._fields, [(row.n_events, *row.row) for row in told])

    def _insert(
        self, connection: Connection, table: Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> int:
        """How many rows were written; those whose key was there already were not."""
        if not rows:
            return 0
        if table not in self._inserts:
            self._inserts[table] = _insert(connection, table, names)
        # the rows are the driver's tuples already: no dictionary is made of each
        return connection.exec_driver_sql(self._inserts[table], list(rows)).rowcount

    async def decision(self, decision_id: str) -> DecisionRow | None:
        """The record of one decision."""
        query = select(*(decisions.c[name] for name in DecisionRow._fields)).where(
            decisions.c.decision_id == decision_id
        )

        def work(connection: Connection) -> DecisionRow | None:
            row = connection.execute(query).first()
            return None if row is None else DecisionRow._make(row)

        return await self._database.read(work)

    async def trace(self, trace_id: str, limit: int) -> Sequence[tuple[int, EventRow]]:
        """(sequence, event) of a trace, oldest first."""
        return await self._database.read(lambda connection: _events(connection, trace_query(trace_id, limit), 0, limit))

    async def events(self, from_ms: int, to_ms: int, after: int, limit: int) -> Sequence[tuple[int, EventRow]]:
        """(sequence, event) with from_ms <= happened_at < to_ms and sequence > after, by sequence."""

        return await self._database.read(lambda connection: _page(connection, from_ms, to_ms, after, limit))

    async def outcomes_of(self, decision_id: str) -> Sequence[OutcomeRow]:
        """The outcomes of a decision, in the order in which they were appended."""
        query = outcomes_query(decision_id)
        return await self._database.read(
            lambda connection: [OutcomeRow._make(row) for row in connection.execute(query)]
        )

    async def known_callers(self, limit: int) -> Sequence[str]:
        """At most `limit` of the callers that ever posted an outcome, by name."""
        query = callers_query(limit)
        return await self._database.read(lambda connection: list(connection.execute(query).scalars()))

    async def repeat(self, caller: str, idempotency_key: str) -> RepeatRow | None:
        """What the caller's key stands for."""
        query = select(*(repeats.c[name] for name in RepeatRow._fields)).where(
            repeats.c.caller == caller, repeats.c.idempotency_key == idempotency_key
        )

        def work(connection: Connection) -> RepeatRow | None:
            row = connection.execute(query).first()
            return None if row is None else RepeatRow._make(row)

        return await self._database.read(work)

    async def forget_repeats(self, before_ms: int) -> int:
        """Forget the keys with created_at < before_ms; how many those were."""
        old = delete(repeats).where(repeats.c.created_at < before_ms)
        return await self._database.write(lambda connection: connection.execute(old).rowcount)

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        """Sums by hour and group; what is not told apart is 0 or "" in the rows."""
        sums = usage_query(query)
        return await self._database.read(lambda connection: [UsageRow._make(row) for row in connection.execute(sums)])

    async def goal(self, namespace: str, task_id: str) -> str | None:
        """The goal hash first seen under the task."""
        query = select(goals.c.goal_hash).where(goals.c.namespace == namespace, goals.c.task_id == task_id)
        return await self._database.read(lambda connection: connection.execute(query).scalar_one_or_none())


def outcomes_query(decision_id: str) -> Select[Any]:
    """Outcomes of a decision, through its index."""
    columns = (outcomes.c[name] for name in OutcomeRow._fields)
    return select(*columns).where(outcomes.c.decision_id == decision_id).order_by(outcomes.c.sequence)


def callers_query(limit: int) -> Select[Any]:
    """Callers of outcomes: from each the index leads to the next, past all outcomes of the one."""
    least = select(func.min(outcomes.c.caller).label("caller")).cte("callers", recursive=True)
    following = select(func.min(outcomes.c.caller)).where(outcomes.c.caller > least.c.caller).scalar_subquery()
    callers = least.union_all(select(following).where(least.c.caller.is_not(None)))
    return select(callers.c.caller).where(callers.c.caller.is_not(None)).limit(limit)


def trace_query(trace_id: str, limit: int) -> Select[Any]:
    """Events of a trace, through its index."""
    return select(*_EVENT).where(events.c.trace_id == trace_id).order_by(events.c.sequence).limit(limit)


def window_query(from_ms: int, to_ms: int, after: int, limit: int) -> Select[Any]:
    """Events among the next few pages after `after`, along the primary key."""
    unindexed: ColumnElement[int] = events.c.happened_at + 0
    is_within = (unindexed >= from_ms) & (unindexed < to_ms)
    is_near = events.c.sequence.between(after + 1, after + _LOOK_AHEAD * limit)
    return select(*_EVENT).where(is_near, is_within).order_by(events.c.sequence).limit(limit)


def first_query(from_ms: int, to_ms: int, after: int) -> Select[Any]:
    """The least sequence of a time, through the index by time alone, without sorting."""
    unindexed: ColumnElement[int] = events.c.sequence + 0
    return select(func.min(unindexed)).where(
        events.c.happened_at >= from_ms, events.c.happened_at < to_ms, unindexed > after
    )


def range_query(from_ms: int, to_ms: int, after: int, limit: int) -> Select[Any]:
    """Events of a time, through the index by time alone; only those of the page are then fetched."""
    unindexed: ColumnElement[int] = events.c.sequence + 0
    page = (
        select(events.c.sequence)
        .where(events.c.happened_at >= from_ms, events.c.happened_at < to_ms, unindexed > after)
        .order_by(unindexed)
        .limit(limit)
    )
    return select(*_EVENT).where(events.c.sequence.in_(page)).order_by(events.c.sequence)


def _page(connection: Connection, from_ms: int, to_ms: int, after: int, limit: int) -> list[tuple[int, EventRow]]:
    # times mostly rise with the sequence: a page is nearly always found in one piece behind the cursor, or behind the
    # first event of the time, while sorting all that the index by time holds would take longer than the page is worth
    newest = connection.execute(select(func.max(events.c.sequence))).scalar_one() or 0
    near = _events(connection, window_query(from_ms, to_ms, after, limit), after, limit)
    if len(near) == limit or after + _LOOK_AHEAD * limit >= newest:
        return near
    first = connection.execute(first_query(from_ms, to_ms, after)).scalar_one()
    if first is None:
        return []
    near = _events(connection, window_query(from_ms, to_ms, first - 1, limit), after, limit)
    if len(near) == limit or first - 1 + _LOOK_AHEAD * limit >= newest:
        return near
    return _events(connection, range_query(from_ms, to_ms, after, limit), after, limit)


def _events(connection: Connection, query: Select[Any], after: int, limit: int) -> list[tuple[int, EventRow]]:
    """The events of rows, of which the first may lie before the page and the last behind it."""
    rows = ((row[0], EventRow._make(row[1:])) for row in connection.execute(query))
    return list(islice((each for each in numbered(rows) if each[0] > after), limit))


def _insert(connection: Connection, table: Table, names: Sequence[str]) -> str:
    if table is usage:
        return add_statement(connection)
    if table is weights:
        return evidence.add_statement(connection)
    if table is learner:
        return evidence.replace_statement(connection)
    insert = insert_or_keep(connection, table)
    if table is events:
        # the number of a row is that of its last event
        insert = insert.values(
            sequence=_LAST_GIVEN + bindparam("n_events"), **{name: bindparam(name) for name in names}
        )
        return str(insert.compile(dialect=connection.dialect))
    return str(insert.compile(dialect=connection.dialect, column_keys=list(names)))

"""SqlSubjects: all tables, seen from a caller or a session: what there is of it, and its erasure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Table, and_, delete, func, select, update

from models.events import UsageRow, WeightRow
from models.subject import ERASED_CALLER, Erased, Subject, SubjectRecord, SubjectSums
from router.stores.database import Database
from router.stores.seals import note_erased
from router.stores.subject_queries import ids_query, of_subject, records_of, span_of, task_of, ticket_of
from router.stores.tables import (
    decisions,
    events,
    goals,
    keys,
    outcomes,
    repeats,
    reviews,
    seals,
    shadows,
    tickets,
    usage,
    weight_snapshots,
    weights,
)
from router.stores.usage import add_statement

_SWEEP = 20_000
"""Events that are looked through in one write for a name that has no index there."""


class SqlSubjects:
    """A `SubjectStore`.

    Args:
        database: holds the tables.
        tickets_gone: called when tickets were deleted.
    """

    def __init__(self, database: Database, tickets_gone: Callable[[], None]) -> None:
        self._database = database
        self._tickets_gone = tickets_gone

    async def records(self, subject: Subject, after: str, limit: int) -> Sequence[SubjectRecord]:
        """The subject's decisions with an id greater than `after`, in the order of their ids."""
        query = ids_query(subject, after, limit)
        return await self._database.read(
            lambda connection: records_of(connection, list(connection.execute(query).scalars()))
        )

    async def sums(self, subject: Subject, limit: int) -> SubjectSums:
        """What is kept under its name beside the records."""
        used = select(*(usage.c[name] for name in UsageRow._fields)).where(usage.c.caller == subject.name)
        known = select(*(weights.c[name] for name in WeightRow._fields)).where(weights.c.caller == subject.name)

        def work(connection: Connection) -> SubjectSums:
            return SubjectSums(
                [UsageRow._make(row) for row in connection.execute(used.order_by(usage.c.hour).limit(limit))],
                [WeightRow._make(row) for row in connection.execute(known.limit(limit))],
            )

        return await self._database.read(work)

    async def erase_records(self, subject: Subject, at_ms: int, limit: int) -> Erased:
        """Erase at most `limit` decisions with all that hangs on them; their seals stay, noted as erased."""
        erased = await self._database.write(lambda connection: _erase_records(connection, subject, at_ms, limit))
        if erased.tickets:
            self._tickets_gone()
        return erased

    async def erase_name(self, subject: Subject) -> Erased:
        """Erase what else stands under its name; sums stay, without it."""
        erased = await self._database.write(lambda connection: _erase_name(connection, subject.name))
        if erased.tickets:
            self._tickets_gone()
        while await self._database.write(partial(_unname_seals, name=subject.name)):
            pass
        if not await self._database.read(lambda connection: _is_key(connection, subject.name)):
            return erased
        after = 0
        while True:
            n, last = await self._database.write(partial(_sweep, name=subject.name, after=after))
            erased = erased.plus(Erased(events=n))
            if last is None:
                return erased
            after = last

    async def rewrite_snapshot(self, version: int, body: bytes) -> None:
        """Put another body in the place of that of a snapshot of the weights."""
        change = update(weight_snapshots).where(weight_snapshots.c.version == version).values(body=body)
        await self._database.write(lambda connection: connection.execute(change))

    async def give_back(self) -> None:
        """Let nothing of what was erased lie about in the files: the log of writes is written back and emptied."""
        # as far as no reader holds it
        await self._database.bare("PRAGMA wal_checkpoint(TRUNCATE)")


def _erase_records(connection: Connection, subject: Subject, at_ms: int, limit: int) -> Erased:
    columns = (decisions.c[name] for name in ("decision_id", "trace_id", "caller", "namespace", "request", "answer"))
    rows = connection.execute(select(*columns).where(of_subject(subject)).limit(limit)).all()
    if not rows:
        return Erased()
    ids = [row.decision_id for row in rows]
    spans = {span for row in rows if (span := span_of(row.answer))}
    named = {ticket for row in rows if (ticket := ticket_of(row.answer))}
    tasks = {(row.namespace, task) for row in rows if (task := task_of(row.request))}
    for namespace, task in tasks:
        connection.execute(delete(goals).where(goals.c.namespace == namespace, goals.c.task_id == task))
    traces = {row.trace_id for row in rows}
    erased = Erased(
        decisions=len(ids),
        outcomes=_gone(connection, outcomes, outcomes.c.decision_id.in_(ids)),
        reviews=_gone(connection, reviews, reviews.c.decision_id.in_(ids)),
        events=_gone(connection, events, and_(events.c.trace_id.in_(traces), events.c.span_id.in_(spans))),
        tickets=_gone(connection, tickets, tickets.c.ticket.in_(named)),
        others=_gone(connection, shadows, shadows.c.decision_id.in_(ids))
        + _gone(
            connection,
            repeats,
            and_(repeats.c.caller.in_({row.caller for row in rows}), repeats.c.decision_id.in_(ids)),
        ),
    )
    connection.execute(note_erased(ids, at_ms, subject.name))
    telling = [trace for trace in traces if subject.name in trace]
    # others' events of the same trace stay, under no name
    connection.execute(update(events).where(events.c.trace_id.in_(telling)).values(trace_id=ERASED_CALLER))
    _gone(connection, decisions, decisions.c.decision_id.in_(ids))
    return erased


def _erase_name(connection: Connection, name: str) -> Erased:
    connection.execute(update(reviews).where(reviews.c.decided_by == name).values(decided_by=ERASED_CALLER))
    connection.execute(update(tickets).where(tickets.c.claimed_by == name).values(claimed_by=ERASED_CALLER))
    return Erased(
        outcomes=_gone(connection, outcomes, outcomes.c.caller == name),
        reviews=_gone(connection, reviews, reviews.c.caller == name),
        tickets=_gone(connection, tickets, tickets.c.caller == name),
        others=_gone(connection, repeats, repeats.c.caller == name),
        usage=_fold_usage(connection, name),
        # the learner has moved what there was to others' before
        evidence=_gone(connection, weights, and_(weights.c.caller == name, weights.c.n == 0, weights.c.s == 0)),
    )


def _unname_seals(connection: Connection, name: str) -> bool:
    """Take the name off some seals that kept it as that of a key; whether there may be more."""
    named = select(seals.c.sequence).where(seals.c.caller == name).limit(_SWEEP)
    change = update(seals).where(seals.c.sequence.in_(named)).values(caller=None)
    return connection.execute(change).rowcount == _SWEEP


def _fold_usage(connection: Connection, name: str) -> int:
    if name == ERASED_CALLER:
        return 0  # these sums are nobody's
    columns = (usage.c[each] for each in UsageRow._fields)
    rows = [UsageRow._make(row) for row in connection.execute(select(*columns).where(usage.c.caller == name))]
    if rows:
        anonymous = [tuple(row._replace(caller=ERASED_CALLER)) for row in rows]
        connection.exec_driver_sql(add_statement(connection), anonymous)
    return _gone(connection, usage, usage.c.caller == name)


def _is_key(connection: Connection, name: str) -> bool:
    return connection.execute(select(keys.c.key_id).where(keys.c.name == name).limit(1)).first() is not None


def _sweep(connection: Connection, name: str, after: int) -> tuple[int, int | None]:
    """Erase events of a caller among the next ones; how many, and where to go on (None at the end)."""
    page = select(events.c.sequence).where(events.c.sequence > after).order_by(events.c.sequence).limit(_SWEEP)
    last = connection.execute(select(func.max(page.subquery().c.sequence))).scalar_one()
    if last is None:
        return 0, None
    near = events.c.sequence.between(after + 1, last)
    return _gone(connection, events, and_(near, events.c.caller == name)), int(last)


def _gone(connection: Connection, table: Table, where: Any) -> int:
    return connection.execute(delete(table).where(where)).rowcount

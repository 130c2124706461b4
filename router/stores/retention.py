"""SqlRetention: what has reached its age is dropped, in small steps, and the room it took is given back."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, func, or_, select, update

from models.review import ReviewState
from router.stores.database import Database, insert_or_keep
from router.stores.seals import note_erased
from router.stores.tables import decisions, events, meta, outcomes, reviews, shadows, tickets
from router.stores.ticket_queries import ENDED

_KEY = "redaction_key"
N_KEY_BYTES = 32
_EMPTY = "{}"
_INCREMENTAL = 2
_ACCEPTED = str(ReviewState.ACCEPTED)
_KNOWN_KEY = select(meta.c.value).where(meta.c.name == _KEY)


class SqlRetention:
    """A `RetentionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def redaction_key(self) -> bytes:
        """The key of the digests of this store, made at the first call."""
        found = await self._database.read(lambda connection: connection.execute(_KNOWN_KEY).scalar_one_or_none())
        return await self._new_key() if found is None else bytes.fromhex(found)

    async def _new_key(self) -> bytes:
        """A key where there is none yet; that of another process, where it was faster."""

        def work(connection: Connection) -> bytes:
            made = {"name": _KEY, "value": os.urandom(N_KEY_BYTES).hex()}
            connection.execute(insert_or_keep(connection, meta), made)
            return bytes.fromhex(connection.execute(_KNOWN_KEY).scalar_one())

        return await self._database.write(work)

    async def drop_decisions(self, before_ms: int, at_ms: int, limit: int) -> int:
        """Drop at most `limit` decisions made before an instant; their seals stay, noted as erased."""
        query = older_query(decisions, decisions.c.decision_id, decisions.c.happened_at, before_ms, limit)

        def work(connection: Connection) -> int:
            ids = connection.execute(query).scalars().all()
            connection.execute(note_erased(ids, at_ms))
            for table in (shadows, decisions):
                connection.execute(delete(table).where(table.c.decision_id.in_(ids)))
            return len(ids)

        return await self._database.write(work)

    async def drop_outcomes(self, before_ms: int, limit: int) -> int:
        """Drop at most `limit` outcomes that came before an instant."""
        return await self._drop(outcomes, outcomes.c.sequence, outcomes.c.received_at, before_ms, limit)

    async def drop_events(self, before_ms: int, limit: int) -> int:
        """Drop at most `limit` rows of events that happened before an instant."""
        return await self._drop(events, events.c.sequence, events.c.happened_at, before_ms, limit)

    async def drop_reviews(self, before_ms: int, accepted_before_ms: int, limit: int) -> int:
        """Drop at most `limit` corrections that came before an instant, accepted ones before one of their own."""
        is_due = or_(
            (reviews.c.state != _ACCEPTED) & (reviews.c.created_at < before_ms),
            (reviews.c.state == _ACCEPTED) & (reviews.c.created_at < accepted_before_ms),
        )
        due = select(reviews.c.review_id).where(is_due).limit(limit)
        return await self._delete(reviews, reviews.c.review_id.in_(due))

    async def compact_tickets(self, limit: int) -> int:
        """Empty the requests of at most `limit` tickets that came to their end."""
        full = select(tickets.c.ticket).where(tickets.c.state.in_(ENDED), tickets.c.request != _EMPTY).limit(limit)
        change = update(tickets).where(tickets.c.ticket.in_(full)).values(request=_EMPTY)
        return await self._database.write(lambda connection: connection.execute(change).rowcount)

    async def oldest_decision(self) -> int | None:
        """When the oldest decision was made that is kept (epoch, milliseconds); None where there is none."""
        query = select(func.min(decisions.c.happened_at))
        return await self._database.read(lambda connection: connection.execute(query).scalar_one())

    async def give_back(self, n_pages: int) -> int:
        """Give at most so many free pages back to the file system; how many pages are still free then.

        0 where the file was not made so that it can: then `VACUUM` does it, once, with the service stopped.
        """

        def free(connection: Connection) -> int:
            can = connection.dialect.name == "sqlite" and _pragma(connection, "auto_vacuum") == _INCREMENTAL
            return _pragma(connection, "freelist_count") if can else 0

        if not await self._database.read(free):
            return 0
        await self._database.bare(f"PRAGMA incremental_vacuum({int(n_pages)})")
        return await self._database.read(free)

    async def _drop(
        self, table: Table, key: ColumnElement[Any], at: ColumnElement[int], before_ms: int, limit: int
    ) -> int:
        return await self._delete(table, key.in_(older_query(table, key, at, before_ms, limit)))

    async def _delete(self, table: Table, where: ColumnElement[bool]) -> int:
        gone = delete(table).where(where)
        return await self._database.write(lambda connection: connection.execute(gone).rowcount)


def older_query(
    table: Table, key: ColumnElement[Any], at: ColumnElement[int], before_ms: int, limit: int
) -> Select[Any]:
    """Keys of the oldest rows of a table from before an instant, through its index by time."""
    return select(key).select_from(table).where(at < before_ms).order_by(at).limit(limit)


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0)

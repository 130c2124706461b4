"""SqlSeals: the chain of seals, written with the records in one transaction, and read again to verify them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sqlalchemy import Connection, Integer, Select, Update, bindparam, func, insert, literal_column, select, update

from models.events import DecisionRow
from router.seals import GENESIS, N_SALT_BYTES, Seal, chained, record_digest
from router.stores.database import Database
from router.stores.tables import decisions, seals

_SEAL = tuple(seals.c[name] for name in Seal._fields)
_RECORD = tuple(decisions.c[name] for name in DecisionRow._fields)
_NEWEST = "SELECT chain FROM seals ORDER BY sequence DESC LIMIT 1"
_CHUNK = 500
"""Ids in one query; databases bound the number of parameters."""

Draft = tuple[str, str]
"""Salt and digest of a record."""


def drafts_of(rows: Sequence[DecisionRow]) -> list[Draft]:
    """Fresh salts and the digests of records under them; the slow part of sealing, which needs no database.

    Raises:
        ValueError: a record can never be stored.
    """
    salts = os.urandom(N_SALT_BYTES * len(rows)).hex()
    step = 2 * N_SALT_BYTES
    cut = [salts[start : start + step] for start in range(0, len(salts), step)]
    return [(salt, record_digest(salt, row)) for salt, row in zip(cut, rows, strict=True)]


def append_seals(connection: Connection, rows: Sequence[DecisionRow], drafts: Sequence[Draft], n_stored: int) -> None:
    """Seal records that have just been written in the same transaction.

    Args:
        connection: in the transaction.
        rows: the records, in order.
        drafts: of each.
        n_stored: how many of them were stored; the others had been seen before, and their first record has its seal.
    """
    if n_stored < len(rows):
        rows, drafts = _unsealed(connection, rows, drafts)
    if not rows:
        return
    chain = connection.exec_driver_sql(_NEWEST).scalar() or GENESIS
    made = []
    for row, (salt, digest) in zip(rows, drafts, strict=True):
        chain = chained(chain, row.decision_id, digest)
        made.append((row.decision_id, salt, digest, chain, row.happened_at))
    connection.exec_driver_sql(_insert(connection), made)


def _insert(connection: Connection) -> str:
    names = ("decision_id", "salt", "digest", "chain", "happened_at")
    statement = insert(seals).values({name: bindparam(name) for name in names})
    return str(statement.compile(dialect=connection.dialect, column_keys=list(names)))


def _unsealed(
    connection: Connection, rows: Sequence[DecisionRow], drafts: Sequence[Draft]
) -> tuple[list[DecisionRow], list[Draft]]:
    """Those that have no seal yet and are in the store as they are here, each once."""
    ids = list(dict.fromkeys(row.decision_id for row in rows))
    stored: dict[str, DecisionRow] = {}
    for start in range(0, len(ids), _CHUNK):
        is_open = decisions.c.decision_id.in_(ids[start : start + _CHUNK]) & seals.c.sequence.is_(None)
        query = select(*_RECORD).outerjoin(seals, seals.c.decision_id == decisions.c.decision_id).where(is_open)
        stored.update((row.decision_id, DecisionRow._make(row)) for row in connection.execute(query))
    found: dict[str, tuple[DecisionRow, Draft]] = {}
    for row, draft in zip(rows, drafts, strict=True):
        if stored.get(row.decision_id) == row:
            found.setdefault(row.decision_id, (row, draft))
    return [row for row, _ in found.values()], [draft for _, draft in found.values()]


def note_erased(ids: Sequence[str], at_ms: int, name: str = "") -> Update:
    """The statement that notes records as erased, to be executed while they are still there.

    Args:
        ids: of their decisions.
        at_ms: when (epoch, milliseconds).
        name: is not to be kept, be it that of a key.
    """
    asked = select(decisions.c.caller).where(decisions.c.decision_id == seals.c.decision_id).scalar_subquery()
    kept = func.nullif(func.nullif(asked, ""), name)
    return update(seals).where(seals.c.decision_id.in_(ids)).values(salt=None, erased_at=at_ms, caller=kept)


class SqlSeals:
    """Reads seals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def seal(self, decision_id: str) -> tuple[Seal | None, str]:
        """The seal of a decision, None where it has none, and the chain before it."""

        def work(connection: Connection) -> tuple[Seal | None, str]:
            row = connection.execute(select(*_SEAL).where(seals.c.decision_id == decision_id)).first()
            if row is None:
                return None, GENESIS
            seal = Seal._make(row)
            return seal, _chain_at(connection, seal.sequence - 1)

        return await self._database.read(work)

    async def chain_at(self, sequence: int) -> str:
        """The chain after the last seal up to a place."""
        return await self._database.read(lambda connection: _chain_at(connection, sequence))

    async def page(self, after: int, limit: int) -> Sequence[tuple[Seal, DecisionRow | None]]:
        """At most `limit` seals behind a place in the chain, with their records; None where there is none."""
        query = page_query(after, limit)
        n = len(_SEAL)

        def work(connection: Connection) -> list[tuple[Seal, DecisionRow | None]]:
            rows = (tuple(row) for row in connection.execute(query))
            return [(Seal._make(row[:n]), None if row[n] is None else DecisionRow._make(row[n:])) for row in rows]

        return await self._database.read(work)

    async def first_at(self) -> int | None:
        """When the first decision was made that has a seal (epoch, milliseconds); None where none has."""
        query = select(seals.c.happened_at).order_by(seals.c.sequence).limit(1)
        return await self._database.read(lambda connection: connection.execute(query).scalar_one_or_none())

    async def unsealed(self, after: str, limit: int) -> Sequence[DecisionRow]:
        """At most `limit` records that have no seal, by decision id, behind one; "" begins."""
        query = unsealed_query(after, limit)
        return await self._database.read(
            lambda connection: [DecisionRow._make(row) for row in connection.execute(query)]
        )

    async def count(self) -> tuple[int, int]:
        """How many seals there are, and how many were ever made: fewer means that the newest were taken away."""
        ever = literal_column("coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'seals'), 0)", Integer)

        def work(connection: Connection) -> tuple[int, int]:
            n, last = connection.execute(select(func.count(), ever).select_from(seals)).one()
            return int(n), int(last)

        return await self._database.read(work)


def _chain_at(connection: Connection, sequence: int) -> str:
    before = select(seals.c.chain).where(seals.c.sequence <= sequence).order_by(seals.c.sequence.desc()).limit(1)
    return connection.execute(before).scalar() or GENESIS


def unsealed_query(after: str, limit: int) -> Select[tuple[object, ...]]:
    """Records along their key, without those whose ids stand in the index of the seals."""
    is_sealed = select(seals.c.decision_id).where(seals.c.decision_id == decisions.c.decision_id).exists()
    return (
        select(*_RECORD)
        .where(decisions.c.decision_id > after, ~is_sealed)
        .order_by(decisions.c.decision_id)
        .limit(limit)
    )


def page_query(after: int, limit: int) -> Select[tuple[object, ...]]:
    """Seals along the primary key, each with its record through the key of that."""
    return (
        select(*_SEAL, *_RECORD)
        .outerjoin(decisions, decisions.c.decision_id == seals.c.decision_id)
        .where(seals.c.sequence > after)
        .order_by(seals.c.sequence)
        .limit(limit)
    )

"""SqlWeights: evidence, what else is learned, and snapshots of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from models.events import LearnerRow, WeightRow
from models.ports import StoredSnapshot
from router.stores.database import Database, insert_or_keep
from router.stores.tables import learner, weight_snapshots, weights

_KEY = WeightRow._fields[:5]
_STATE_KEY = LearnerRow._fields[:3]


class SqlWeights:
    """A `WeightStore`; differences come through the records, in the order in which they were learned."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> tuple[Sequence[WeightRow], Sequence[LearnerRow]]:
        """All evidence, and all else that is learned, by their keys."""
        evidence = select(*(weights.c[name] for name in WeightRow._fields)).order_by(*(weights.c[n] for n in _KEY))
        states = select(*(learner.c[name] for name in LearnerRow._fields)).order_by(
            *(learner.c[name] for name in _STATE_KEY)
        )

        def work(connection: Connection) -> tuple[list[WeightRow], list[LearnerRow]]:
            return (
                [WeightRow._make(row) for row in connection.execute(evidence)],
                [LearnerRow._make(row) for row in connection.execute(states)],
            )

        return await self._database.read(work)

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Keep a snapshot; one of the same version stays as it was."""
        row = snapshot._asdict()
        await self._database.write(
            lambda connection: connection.execute(insert_or_keep(connection, weight_snapshots), row)
        )

    async def drop_snapshots(self, versions: Sequence[int]) -> None:
        """Forget the snapshots of these versions."""
        if versions:
            gone = delete(weight_snapshots).where(weight_snapshots.c.version.in_(versions))
            await self._database.write(lambda connection: connection.execute(gone))

    async def snapshots(self) -> Sequence[StoredSnapshot]:
        """Those that are kept, newest first, without their bodies."""
        columns = (weight_snapshots.c.version, weight_snapshots.c.reason, weight_snapshots.c.created_at)
        query = select(*columns).order_by(weight_snapshots.c.version.desc())
        return await self._database.read(
            lambda connection: [StoredSnapshot(row[0], row[1], b"", row[2]) for row in connection.execute(query)]
        )

    async def snapshot(self, version: int | None, before: int, passing_over: str = "") -> StoredSnapshot | None:
        """The snapshot of a version; None means the newest of an earlier version than `before`.

        The latter without those that were taken for the reason `passing_over`.
        """
        table = weight_snapshots.c
        wanted: ColumnElement[bool] = (table.version < before) & (table.reason != passing_over)
        if version is not None:
            wanted = table.version == version
        columns = (table[name] for name in StoredSnapshot._fields)
        query = select(*columns).where(wanted).order_by(table.version.desc()).limit(1)

        def work(connection: Connection) -> StoredSnapshot | None:
            row = connection.execute(query).first()
            return None if row is None else StoredSnapshot._make(row)

        return await self._database.read(work)


def summed(rows: Iterable[WeightRow]) -> list[WeightRow]:
    """The rows with those of one key added up, keys in the order of their first row; what adds nothing is left out.

    >>> row = WeightRow("default", "orders", "1.0.0", "refund", "web", 5, 3)
    >>> [each[5:] for each in summed([row, row, row._replace(intent="cancel", n=1, s=-1)])]
    [(10, 6), (1, -1)]
    """
    sums: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in rows:
        n, s = sums.get(row[:5], (0, 0))
        sums[row[:5]] = (n + row.n, s + row.s)
    return [WeightRow._make((*key, n, s)) for key, (n, s) in sums.items() if n or s]


def newest(rows: Iterable[LearnerRow]) -> list[LearnerRow]:
    """The last row of each key."""
    return list({row[:3]: row for row in rows}.values())


def add_statement(connection: Connection) -> str:
    """INSERT of a `WeightRow` that adds to the row with its key, for the driver."""
    upsert = _insert(connection, weights)
    adding = {name: weights.c[name] + upsert.excluded[name] for name in ("n", "s")}
    statement = upsert.on_conflict_do_update(index_elements=list(_KEY), set_=adding)
    return str(statement.compile(dialect=connection.dialect, column_keys=list(WeightRow._fields)))


def replace_statement(connection: Connection) -> str:
    """INSERT of a `LearnerRow` that replaces the row with its key, for the driver."""
    upsert = _insert(connection, learner)
    new = {name: upsert.excluded[name] for name in ("body", "updated_at")}
    statement = upsert.on_conflict_do_update(index_elements=list(_STATE_KEY), set_=new)
    return str(statement.compile(dialect=connection.dialect, column_keys=list(LearnerRow._fields)))


def _insert(connection: Connection, table: Any) -> Any:
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)

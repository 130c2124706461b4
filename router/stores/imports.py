"""SqlImports: what was learned from files of past outcomes, each file once."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from models.events import LearnerRow, WeightRow
from router.stores import weights as evidence
from router.stores.database import Database
from router.stores.tables import meta

_PREFIX = "imported:"


class SqlImports:
    """An `ImportStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def has(self, sha256: str) -> bool:
        """Whether a file with this content was imported."""
        return await self._database.read(lambda connection: _has(connection, sha256))

    async def put(self, sha256: str, rows: Sequence[WeightRow | LearnerRow], at_ms: int) -> bool:
        """Add what a file taught, all in one transaction; False, and nothing is done, where it was imported before."""

        def work(connection: Connection) -> bool:
            if _has(connection, sha256):
                return False
            connection.execute(insert(meta), {"name": f"{_PREFIX}{sha256}", "value": str(at_ms)})
            added = evidence.summed(row for row in rows if isinstance(row, WeightRow))
            states = evidence.newest(row for row in rows if isinstance(row, LearnerRow))
            # the rows are the driver's tuples already
            if added:
                connection.exec_driver_sql(evidence.add_statement(connection), [tuple(row) for row in added])
            if states:
                connection.exec_driver_sql(evidence.replace_statement(connection), [tuple(row) for row in states])
            return True

        return await self._database.write(work)


def _has(connection: Connection, sha256: str) -> bool:
    query = select(meta.c.name).where(meta.c.name == f"{_PREFIX}{sha256}")
    return connection.execute(query).first() is not None

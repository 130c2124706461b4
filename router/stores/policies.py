"""SqlPolicies: the policies set over the API, all of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, func, insert, select

from router.stores.database import Database
from router.stores.tables import policies

_NEWEST_FIRST = select(policies.c.generation, policies.c.body).order_by(policies.c.generation.desc())


class SqlPolicies:
    """A `PolicyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_policy(self) -> tuple[int, str] | None:
        """(generation, JSON text) of the newest policy; None where none was ever stored."""
        return await self._first(_NEWEST_FIRST)

    async def policy_of(self, generation: int) -> str | None:
        """The JSON text of the policy of that generation; None where there is none."""
        found = await self._first(_NEWEST_FIRST.where(policies.c.generation == generation))
        return None if found is None else found[1]

    async def policy_before(self, generation: int) -> tuple[int, str] | None:
        """(generation, JSON text) of the newest policy of an earlier generation; None where there is none."""
        return await self._first(_NEWEST_FIRST.where(policies.c.generation < generation))

    async def _first(self, query: Select[Any]) -> tuple[int, str] | None:
        def work(connection: Connection) -> tuple[int, str] | None:
            row = connection.execute(query.limit(1)).first()
            return None if row is None else (row[0], row[1])

        return await self._database.read(work)

    async def save_policy(self, text: str, at_ms: int) -> int:
        """Store a policy's JSON text; its generation, which rises by one each time."""

        def work(connection: Connection) -> int:
            newest = connection.execute(select(func.max(policies.c.generation))).scalar_one()
            generation = int(newest or 0) + 1
            connection.execute(insert(policies), {"generation": generation, "body": text, "created_at": at_ms})
            return generation

        return await self._database.write(work)

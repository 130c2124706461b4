"""SqlHeartbeats: when each version of an agent was last heard of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from models.ports import StoredHeartbeat
from router.stores.database import Database
from router.stores.tables import heartbeats

_KEY = ("namespace", "agent_id", "version")


class SqlHeartbeats:
    """A `HeartbeatStore`. It has as many rows as there were versions of agents that sent a heartbeat."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, rows: Sequence[StoredHeartbeat]) -> None:
        """Keep of each (namespace, agent_id, version) the latest one; durable on return."""
        values = [row._asdict() for row in rows]
        if values:
            await self._database.write(lambda connection: connection.execute(_insert_or_renew(connection), values))

    async def load(self) -> Sequence[StoredHeartbeat]:
        """All that are kept, by namespace, id and version."""
        columns = (heartbeats.c[name] for name in StoredHeartbeat._fields)
        query = select(*columns).order_by(*(heartbeats.c[name] for name in _KEY))
        return await self._database.read(
            lambda connection: [StoredHeartbeat._make(row) for row in connection.execute(query)]
        )


def _insert_or_renew(connection: Connection) -> Any:
    insert: Any = (
        postgresql.insert(heartbeats) if connection.dialect.name == "postgresql" else sqlite.insert(heartbeats)
    )
    new = insert.excluded
    return insert.on_conflict_do_update(
        index_elements=list(_KEY),
        set_={"digest": new.digest, "happened_at": new.happened_at},
        where=new.happened_at >= heartbeats.c.happened_at,
    )

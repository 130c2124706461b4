"""SqlKeys: the callers' keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping, insert, select, update

from models.errors import ConflictError, StoreError
from models.key import Key
from router.stores.database import Database
from router.stores.tables import keys


class SqlKeys:
    """A `KeyStore`; a key is revoked, never deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_keys(self) -> Sequence[Key]:
        """All keys, revoked ones included, oldest first.

        Raises:
            StoreError: where one cannot be read. Leaving it out could make it seem that no keys were ever made, and
                open the door.
        """

        def work(connection: Connection) -> Sequence[RowMapping]:
            return connection.execute(select(keys).order_by(keys.c.created_at, keys.c.key_id)).mappings().all()

        return [_key(row) for row in await self._database.read(work)]

    async def add_key(self, key: Key) -> None:
        """Store a new key.

        Raises:
            ConflictError: where its name is taken by a key that is not revoked.
        """
        row = key.model_dump() | {
            "permissions": _text(key.permissions),
            "namespaces": _text(key.namespaces),
            "callers": _text(key.callers),
        }

        def work(connection: Connection) -> bool:
            is_free = connection.execute(_valid(key.name)).first() is None
            if is_free:
                connection.execute(insert(keys), row)
            return is_free

        if not await self._database.write(work):
            raise ConflictError(f"a key named {key.name!r} exists: revoke it first, or choose another name")

    async def revoke_key(self, name: str, at_ms: int) -> bool:
        """Revoke the key of that name; False where there is no valid one."""
        change = update(keys).where(keys.c.name == name, keys.c.revoked_at.is_(None)).values(revoked_at=at_ms)
        return await self._database.write(lambda connection: connection.execute(change).rowcount > 0)


def _valid(name: str) -> Any:
    return select(keys.c.key_id).where(keys.c.name == name, keys.c.revoked_at.is_(None))


def _text(values: Iterable[str] | None) -> str | None:
    return None if values is None else json.dumps(sorted(values))


def _key(row: RowMapping) -> Key:
    try:
        sets = {
            name: None if row[name] is None else frozenset(json.loads(row[name]))
            for name in ("permissions", "namespaces", "callers")
        }
        return Key(**(dict(row) | sets))
    except (ValidationError, ValueError, TypeError) as error:
        raise StoreError(f"the stored key {row['name']!r} cannot be read: {error}") from error

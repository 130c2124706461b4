"""SqlGenerations: what decisions were made by, under the digest of its content: cards, policies, classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, select, update

from router.stores.database import Database, insert_or_keep
from router.stores.tables import generations

_CHUNK = 500
"""Digests in one query; databases bound the number of parameters."""


class Generation(NamedTuple):
    """Something that decisions name.

    Attributes:
        kind: "card"; "cards", which is a list of those; "policy"; "classifier".
        digest: of the content, hex.
        body: the content.
    """

    kind: str
    digest: str
    body: bytes


class SqlGenerations:
    """An archive; a body once there never changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, made: Sequence[Generation], used: Sequence[tuple[str, str]], at_ms: int) -> None:
        """Store those that are not there yet, and note of some (kind, digest) that they are in use; durable on return.

        Args:
            made: what is kept; those already there stay.
            used: what is in force, whether just made or not.
            at_ms: epoch.
        """
        rows = [{**one._asdict(), "created_at": at_ms, "used_at": at_ms} for one in made]
        names = [{"a_kind": kind, "a_digest": digest, "at_ms": at_ms} for kind, digest in used]
        touch = (
            update(generations)
            .where(generations.c.kind == bindparam("a_kind"), generations.c.digest == bindparam("a_digest"))
            .where(generations.c.used_at < bindparam("at_ms"))
            .values(used_at=bindparam("at_ms"))
        )

        def work(connection: Connection) -> None:
            if rows:
                connection.execute(insert_or_keep(connection, generations), rows)
            if names:
                connection.execute(touch, names)

        if rows or names:
            await self._database.write(work)

    async def load(self, kind: str, digests: Sequence[str]) -> Mapping[str, bytes]:
        """The bodies of those of a kind that are there, by digest."""
        wanted = list(dict.fromkeys(digests))

        def work(connection: Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for start in range(0, len(wanted), _CHUNK):
                query = select(generations.c.digest, generations.c.body).where(
                    generations.c.kind == kind, generations.c.digest.in_(wanted[start : start + _CHUNK])
                )
                # a value that somebody else has put there may be of any type
                found.update(
                    (digest, body if isinstance(body, bytes) else str(body).encode())
                    for digest, body in connection.execute(query)
                )
            return found

        return await self._database.read(work)

    async def has(self, kind: str, digest: str) -> bool:
        """Whether it is there."""
        query = select(generations.c.digest).where(generations.c.kind == kind, generations.c.digest == digest)
        return await self._database.read(lambda connection: connection.execute(query).first() is not None)

    async def forget(self, before_ms: int) -> int:
        """Delete those last in use before an instant (epoch); how many they were."""
        old = delete(generations).where(generations.c.used_at < before_ms)
        return await self._database.write(lambda connection: connection.execute(old).rowcount)

"""SqlVectors: the vectors of card texts, by encoder and digest of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from models.ports import Embedded
from router.stores import tables
from router.stores.database import Database, insert_or_keep

_CHUNK = 1000
"""Digests in one query; databases bound the number of parameters."""


class SqlVectors:
    """A `VectorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_vectors(self, encoder_id: str, digests: Sequence[str]) -> Mapping[str, Embedded]:
        """The stored vectors among `digests` (digest of the text → vector)."""
        wanted = list(dict.fromkeys(digests))
        found: dict[str, Embedded] = {}
        for start in range(0, len(wanted), _CHUNK):
            found.update(await self._load(encoder_id, wanted[start : start + _CHUNK]))
        return found

    async def _load(self, encoder_id: str, digests: list[str]) -> dict[str, Embedded]:
        query = select(tables.vectors.c.digest, tables.vectors.c.vector, tables.vectors.c.unknown_share).where(
            tables.vectors.c.encoder_id == encoder_id, tables.vectors.c.digest.in_(digests)
        )

        def work(connection: Connection) -> dict[str, Embedded]:
            return {row[0]: Embedded(vector=row[1], unknown_share=row[2]) for row in connection.execute(query)}

        return await self._database.read(work)

    async def save_vectors(self, encoder_id: str, vectors: Mapping[str, Embedded]) -> None:
        """Add vectors; those already there stay."""
        rows = [
            {
                "encoder_id": encoder_id,
                "digest": digest,
                "vector": embedded.vector,
                "unknown_share": embedded.unknown_share,
            }
            for digest, embedded in vectors.items()
        ]
        if rows:
            await self._database.write(
                lambda connection: connection.execute(insert_or_keep(connection, tables.vectors), rows)
            )

"""What parts of a store do otherwise where it is only looked at: what they would add to it is for one look alone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sqlalchemy import select

from models.ports import Embedded
from router.stores.retention import KEY_NAME, N_KEY_BYTES, SqlRetention
from router.stores.tables import meta
from router.stores.vectors import SqlVectors


class LookedAtVectors(SqlVectors):
    """Vectors that were made meanwhile are not added; whoever made them has them."""

    async def save_vectors(self, encoder_id: str, vectors: Mapping[str, Embedded]) -> None:
        """Nothing is added."""


class LookedAtRetention(SqlRetention):
    """Where the store has no redaction key yet, nothing in it is compared with what one digests."""

    async def redaction_key(self) -> bytes:
        """The store's key, else one of the moment."""
        query = select(meta.c.value).where(meta.c.name == KEY_NAME)
        found = await self._database.read(lambda connection: connection.execute(query).scalar_one_or_none())
        return os.urandom(N_KEY_BYTES) if found is None else bytes.fromhex(found)

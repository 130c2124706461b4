"""What parts of a store do otherwise where it is only looked at: what they would add to it is for one look alone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from models.ports import Embedded
from router.stores.retention import N_KEY_BYTES, SqlRetention
from router.stores.vectors import SqlVectors


class LookedAtVectors(SqlVectors):
    """Vectors that were made meanwhile are not added; whoever made them has them."""

    async def save_vectors(self, encoder_id: str, vectors: Mapping[str, Embedded]) -> None:
        """Nothing is added."""


class LookedAtRetention(SqlRetention):
    """Where the store has no redaction key yet, nothing in it is compared with what one digests."""

    async def _new_key(self) -> bytes:
        return os.urandom(N_KEY_BYTES)

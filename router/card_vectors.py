"""CardVectors: the vectors of card texts, embedded once and kept in memory and in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from intent.embed_pool import EmbedPool
from models.ports import Embedded, VectorStore


class CardVectors:
    """Looks up vectors in memory, then in the store, and embeds what neither has."""

    def __init__(self, pool: EmbedPool, store: VectorStore) -> None:
        self._pool = pool
        self._store = store
        self._known: dict[str, Embedded] = {}

    @property
    def encoder_id(self) -> str:
        """The encoder of all vectors handed out here; the store keeps each encoder's apart."""
        return self._pool.embedder.encoder_id

    @property
    def dim(self) -> int:
        """Values in a vector."""
        return self._pool.embedder.dim

    @property
    def languages(self) -> frozenset[str] | None:
        """Languages that the encoder was made for; None means all of which it knows the tokens."""
        return self._pool.embedder.languages

    async def of(self, texts: Sequence[str]) -> Mapping[str, Embedded]:
        """Text → vector for all of `texts`; vectors of other texts are forgotten here, not in the store."""
        # another call may swap what is known while this one waits
        known = self._known
        digests = {text: sha256(text.encode()).hexdigest() for text in texts if text not in known}
        stored = await self._store.load_vectors(self.encoder_id, list(digests.values())) if digests else {}
        missing = [text for text, digest in digests.items() if digest not in stored]
        made = await self._pool.embed_all(missing)
        if made:
            await self._store.save_vectors(self.encoder_id, {digests[text]: made[text] for text in made})
        fresh = {text: made[text] if text in made else stored[digest] for text, digest in digests.items()}
        vectors = {text: fresh[text] if text in fresh else known[text] for text in texts}
        self._known = vectors
        return vectors

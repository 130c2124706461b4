"""A running router for benchmarks: in this process, on a store of its own that is thrown away."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from models.ports import Embedded, Embedder
from models.settings import Settings
from router.app import calm_collector
from router.running import Parts, running

_READY_S = 300


class CachedEmbedder:
    """An encoder that only looks vectors up: what is left of a decision when the encoder costs nothing.

    Args:
        encoder_id: of the encoder that made the vectors.
        dim: values in a vector.
        vectors: text → vector, for every text that will be asked for.
    """

    def __init__(self, encoder_id: str, dim: int, vectors: Mapping[str, Embedded]) -> None:
        self._encoder_id = encoder_id
        self._dim = dim
        self._vectors = vectors

    @classmethod
    def of(cls, encoder: Embedder, texts: Sequence[str]) -> CachedEmbedder:
        """With the vectors that `encoder` gives these texts."""
        return cls(encoder.encoder_id, encoder.dim, {text: encoder.embed(text) for text in texts})

    @property
    def encoder_id(self) -> str:
        """That of the encoder that made the vectors."""
        return self._encoder_id

    @property
    def dim(self) -> int:
        """Values in a vector."""
        return self._dim

    def embed(self, text: str) -> Embedded:
        """Look one text up."""
        return self._vectors[text]


@asynccontextmanager
async def router_in_process(cards: Sequence[Path], embedder: Embedder | None = None) -> AsyncIterator[Parts]:
    """All parts with SQLite store and journal as they are served, ready, the garbage collector calmed.

    Args:
        cards: card files; none serves the bundled example set.
        embedder: the encoder; None takes the bundled one.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        settings = Settings(cards=tuple(cards), store=f"sqlite:///{folder}/bench.db", watch=False)
        async with running(settings, embedder=embedder) as parts:
            async with asyncio.timeout(_READY_S):
                await parts["readiness"].ready.wait()
            calm_collector()
            yield parts

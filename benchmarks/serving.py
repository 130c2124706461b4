"""A running router for benchmarks: in this process, on a store of its own that is thrown away."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from models.ports import Embedded, Embedder
from models.settings import Settings
from router.app import calm_collector
from router.running import Parts, running

_READY_S = 300


class CachedEmbedder:
    """An encoder that looks known texts up: what is left of a decision when the encoder costs nothing.

    Attributes:
        n_encoded: texts that had to be encoded, because they were not in the table.
    """

    def __init__(self, encoder: Embedder, texts: Iterable[str]) -> None:
        self._encoder = encoder
        self._vectors = {text: encoder.embed(text) for text in dict.fromkeys(texts)}
        self.n_encoded = 0

    @property
    def encoder_id(self) -> str:
        """That of the encoder that made the vectors."""
        return self._encoder.encoder_id

    @property
    def dim(self) -> int:
        """Values in a vector."""
        return self._encoder.dim

    @property
    def languages(self) -> frozenset[str] | None:
        """Those of the encoder that made the vectors."""
        return self._encoder.languages

    def embed(self, text: str) -> Embedded:
        """Look one text up."""
        found = self._vectors.get(text)
        if found is None:
            self.n_encoded += 1
            found = self._vectors[text] = self._encoder.embed(text)
        return found


@asynccontextmanager
async def router_in_process(
    cards: Sequence[Path], embedder: Embedder | None = None, **more: Any
) -> AsyncIterator[Parts]:
    """All parts with SQLite store and journal as they are served, ready, the garbage collector calmed.

    Args:
        cards: card files; none serves the bundled example set.
        embedder: the encoder; None takes the bundled one.
        more: other settings.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        settings = Settings(cards=tuple(cards), store=f"sqlite:///{folder}/bench.db", watch=False, **more)
        async with running(settings, embedder=embedder) as parts:
            async with asyncio.timeout(_READY_S):
                await parts["readiness"].ready.wait()
            calm_collector()
            yield parts

"""EmbedPool: the encoder behind worker threads, with a bound on the queue and on the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from models.errors import OverloadedError
from models.ports import Embedded, Embedder

T = TypeVar("T")
_BULK_SLICE = 32


class EmbedPool:
    """Texts go singly to a small thread pool: on a CPU batching costs more in padding than it saves.

    Attributes:
        embedder: the encoder.
        n_waiting: utterances handed in and not yet answered.
    """

    def __init__(self, embedder: Embedder, *, n_threads: int = 2, max_waiting: int = 1024) -> None:
        self.embedder = embedder
        self.n_waiting = 0
        self._max_waiting = max_waiting
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="embed")
        self._bulk = ThreadPoolExecutor(1, thread_name_prefix="embed-cards")

    def __enter__(self) -> Self:
        """Nothing to open; the threads start with the first text."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Let running texts end, drop the rest."""
        self._threads.shutdown(cancel_futures=True)
        self._bulk.shutdown(cancel_futures=True)

    async def embed(self, text: str, *, wait_ms: float) -> Embedded:
        """Encode an utterance.

        Raises:
            OverloadedError: too many texts wait already.
            TimeoutError: it took longer than `wait_ms`.
        """
        return await self._run(self.embedder.embed, text, wait_ms)

    async def embed_and(self, text: str, further: Callable[[Embedded], T], *, wait_ms: float) -> tuple[Embedded, T]:
        """Encode an utterance and go on with its vector in the same thread, beside the event loop.

        Raises:
            OverloadedError: too many texts wait already.
            TimeoutError: it took longer than `wait_ms`.
        """

        def work(text: str) -> tuple[Embedded, T]:
            embedded = self.embedder.embed(text)
            return embedded, further(embedded)

        return await self._run(work, text, wait_ms)

    async def _run(self, work: Callable[[str], T], text: str, wait_ms: float) -> T:
        if self.n_waiting >= self._max_waiting:
            raise OverloadedError(f"{self.n_waiting} texts wait for the encoder", retry_after_ms=1000)
        self.n_waiting += 1
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, work, text)
            async with asyncio.timeout(wait_ms / 1000):
                return await future
        finally:
            self.n_waiting -= 1

    async def embed_all(self, texts: Sequence[str]) -> Mapping[str, Embedded]:
        """Encode card texts, on a thread of their own so that utterances do not queue behind them."""
        loop = asyncio.get_running_loop()
        vectors: dict[str, Embedded] = {}
        for start in range(0, len(texts), _BULK_SLICE):
            chunk = texts[start : start + _BULK_SLICE]
            vectors.update(await loop.run_in_executor(self._bulk, self._embed_slice, chunk))
        return vectors

    def _embed_slice(self, texts: Sequence[str]) -> dict[str, Embedded]:
        return {text: self.embedder.embed(text) for text in texts}

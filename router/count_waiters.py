"""CountWaiters: who waits until a rising count has come to a number."""

from __future__ import annotations

import asyncio
from collections import deque


class CountWaiters:
    """As many as wait at once are remembered, and those who gave up until the next one comes.

    The numbers that are waited for must not fall from one call to the next.
    """

    def __init__(self) -> None:
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def wait(self, until: int, timeout_ms: float) -> None:
        """Wait until `reach` was called with `until` or more. Raises TimeoutError after `timeout_ms`."""
        waiter = asyncio.get_running_loop().create_future()
        # the oldest give up first
        while self._waiters and self._waiters[0][1].done():
            self._waiters.popleft()
        self._waiters.append((until, waiter))
        async with asyncio.timeout(timeout_ms / 1000):
            await waiter

    def reach(self, count: int) -> None:
        """The count has come to `count`."""
        while self._waiters and self._waiters[0][0] <= count:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

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

    def __len__(self) -> int:
        """How many wait, or have given up since the last one came."""
        return len(self._waiters)

    def add(self, until: int) -> asyncio.Future[None]:
        """What is done once `reach` was called with `until` or more; cancelling it gives up."""
        # the oldest give up first
        while self._waiters and self._waiters[0][1].done():
            self._waiters.popleft()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((until, waiter))
        return waiter

    def reach(self, count: int) -> int:
        """The count has come to `count`; how many no longer wait because of that."""
        n_woken = 0
        while self._waiters and self._waiters[0][0] <= count:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                n_woken += 1
        return n_woken

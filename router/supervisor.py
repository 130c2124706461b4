"""Supervisor: keeps background work running, and says so where it cannot."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from router.readiness import Readiness

log = logging.getLogger(__name__)

FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
"""The longest wait; work that ran longer than this was well, so its next wait is the first one again."""


class Supervisor:
    """Runs coroutines until it is closed; one that raises is logged, shown in the readiness, and started again."""

    def __init__(
        self,
        readiness: Readiness,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._readiness = readiness
        self._sleep = sleep
        self._now_s = now_s
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Nothing runs yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Cancel all that still runs and wait for its end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work()` in the background; when it returns, it is done."""
        task = asyncio.create_task(self._keep(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            started_s = self._now_s()
            try:
                return await work()
            except Exception as error:  # the supervisor is where what nobody expected has to end
                if self._now_s() - started_s > MAX_WAIT_S:
                    wait_s = FIRST_WAIT_S
                log.exception("%s stopped; it starts again in %.1f s", name, wait_s)
                self._readiness.report(name, f"{type(error).__name__}: {error}")
            await self._sleep(wait_s)
            wait_s = min(wait_s * 2, MAX_WAIT_S)
            # most work never returns: what runs again is no longer amiss
            self._readiness.clear(name)

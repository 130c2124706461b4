"""Waiting for what happens outside the event loop, such as a change of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_LOOK_S = 0.01
_NUDGE_S = 0.3


async def eventually(
    claim: Callable[[], bool], *, nudge: Callable[[], object] | None = None, within_s: float = 20.0
) -> None:
    """Return once `claim()` holds. Raises TimeoutError if it does not within the time.

    Args:
        claim: what should come true.
        nudge: done at once and again now and then, since nobody tells when a watch has begun.
        within_s: for how long to wait at most.
    """
    loop = asyncio.get_running_loop()
    next_nudge_s = loop.time()
    async with asyncio.timeout(within_s):
        while not claim():
            if nudge is not None and loop.time() >= next_nudge_s:
                nudge()
                next_nudge_s = loop.time() + _NUDGE_S
            await asyncio.sleep(_LOOK_S)

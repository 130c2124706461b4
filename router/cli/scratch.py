"""Scratch: a router on a store of its own that is thrown away, for commands that need no server."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from router.cli.settings import settings_of

if TYPE_CHECKING:
    from router.readiness import Readiness
    from router.running import Parts

_START_S = 600
_LOOK_S = 0.2


@asynccontextmanager
async def scratch(cards: Sequence[Path] | None, policy: Path | None) -> AsyncIterator[Parts]:
    """All parts, running and ready.

    Raises:
        RouterError: cards, policy or encoder cannot be used.
    """
    from router.running import running

    with tempfile.TemporaryDirectory(prefix="agency-router-") as folder:
        settings = settings_of(cards=tuple(cards or ()), store=f"sqlite:///{folder}/scratch.db", watch=False)
        # None is said here: a policy that the environment names is the service's
        async with running(settings.model_copy(update={"policy": policy})) as parts:
            await _started(parts["readiness"])
            yield parts


async def _started(readiness: Readiness) -> None:
    """Wait for the first snapshot; the supervisor would try for ever, a command says what is wrong."""
    from models.errors import RouterError

    until = time.monotonic() + _START_S
    while not readiness.ready.is_set():
        if "cards" in readiness.problems:
            raise RouterError(f"the cards cannot be loaded: {readiness.problems['cards']}")
        if time.monotonic() > until:
            raise RouterError(f"the cards are not loaded after {_START_S} s")
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await readiness.ready.wait()

"""Scratch: a router on a store of its own that is thrown away, for commands that need no server."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.running import Parts


_START_S = 600


@asynccontextmanager
async def scratch(cards: Sequence[Path] | None, policy: Path | None) -> AsyncIterator[Parts]:
    """All parts, running and ready.

    Raises:
        RouterError: cards, policy or encoder cannot be used.
    """
    from models.settings import Settings
    from router.running import running

    with tempfile.TemporaryDirectory(prefix="agency-router-") as folder:
        settings = Settings(
            cards=tuple(cards or ()), policy=policy, store=f"sqlite:///{folder}/scratch.db", watch=False
        )
        async with running(settings) as parts:
            async with asyncio.timeout(_START_S):
                await parts["readiness"].ready.wait()
            yield parts

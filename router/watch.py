"""Watch: card and policy files take effect when they change; what is wrong with them leaves the old ones in force."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from watchfiles import awatch

from models.errors import RouterError
from router.card_files import read_card_files
from router.policy_file import read_policy
from router.readiness import Readiness
from router.registry import Registry

log = logging.getLogger(__name__)


async def watch_cards(paths: Sequence[Path], registry: Registry, readiness: Readiness) -> None:
    """Swap in the cards of `paths` as a whole whenever one of the files changes; runs until cancelled."""

    async def reload() -> None:
        files = await asyncio.to_thread(read_card_files, paths)
        for warning in files.warnings:
            log.warning("%s", warning)
        await registry.replace_files(files.cards)

    await _watch("cards", paths, reload, readiness)


async def watch_policy(path: Path, registry: Registry, readiness: Readiness) -> None:
    """Put the policy of a file in force whenever the file changes; runs until cancelled."""

    async def reload() -> None:
        await registry.set_policy(await asyncio.to_thread(read_policy, path))

    await _watch("policy", [path], reload, readiness)


async def _watch(part: str, paths: Sequence[Path], reload: Callable[[], Awaitable[None]], readiness: Readiness) -> None:
    # Editors replace files, which ends a watch on the file itself: watch the folder it lies in.
    files = {path.absolute() for path in paths if not path.is_dir()}
    folders = {path.absolute() for path in paths if path.is_dir()}
    watched = folders | {path.parent for path in files}

    def concerns(_change: object, name: str) -> bool:
        path = Path(name)
        # Mounted configuration changes by a link named "..data" that points elsewhere.
        return path in files or path.name == "..data" or any(folder in path.parents for folder in folders)

    await readiness.ready.wait()
    async for _ in awatch(*watched, watch_filter=concerns, recursive=bool(folders)):
        try:
            await reload()
        except RouterError as error:
            log.error("changed %s were not taken, the old ones stay in force: %s", part, error)
            readiness.report(part, str(error))
        else:
            log.info("changed %s are in force", part)
            readiness.clear(part)

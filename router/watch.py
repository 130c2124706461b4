"""Watch: card and policy files take effect when they change; what is wrong with them leaves the old ones in force."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

from watchfiles import awatch

from models.errors import RouterError
from router.card_files import read_card_files
from router.policy_file import read_policy
from router.readiness import Readiness
from router.registry import Registry

log = logging.getLogger(__name__)

_SUFFIXES = (".yaml", ".yml", ".json")
"""Of the files that `read_card_files` takes from a folder."""


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


def concerns(path: Path, files: Collection[Path], folders: Collection[Path]) -> bool:
    """Whether a change at `path` may change one of `files`, or which cards lie in `folders`; all are absolute."""
    # Mounted configuration changes by a link named "..data" that points elsewhere.
    if path in files or path.name == "..data":
        return True
    # The store may lie in the folder, and taking cards in writes to it. What is no file may have been a folder.
    may_hold_cards = path.suffix.lower() in _SUFFIXES or not path.is_file()
    return may_hold_cards and any(folder in path.parents for folder in folders)


async def _watch(part: str, paths: Sequence[Path], reload: Callable[[], Awaitable[None]], readiness: Readiness) -> None:
    # Editors replace files, which ends a watch on the file itself: watch the folder it lies in.
    named = [path for path in paths if not path.is_dir()]
    files = {path.absolute() for path in named} | {path.resolve() for path in named}
    folders = {path.absolute() for path in paths if path.is_dir()}
    watched = folders | {path.parent for path in files}

    def is_of_interest(_change: object, name: str) -> bool:
        return concerns(Path(name), files, folders)

    async for _ in awatch(*watched, watch_filter=is_of_interest, recursive=bool(folders)):
        # What changes while the first cards are being embedded counts too.
        await readiness.ready.wait()
        try:
            await reload()
        except RouterError as error:
            log.error("changed %s were not taken, the old ones stay in force: %s", part, error)
            readiness.report(part, str(error))
        else:
            log.info("changed %s are in force", part)
            readiness.clear(part)

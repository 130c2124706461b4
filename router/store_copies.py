"""Backups that a service can go on from: a copy of the store, and beside it the models that its promotions name."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from models.ports import Clock
from router.promotion_files import holds_model, keep, models_beside, models_folder
from router.stores import backup as copies


class CopiedModels(NamedTuple):
    """Models that went with a store.

    Attributes:
        folder: that holds them: beside the copy, and named like it.
        digests: those that are in it.
        missing: those that the store names and that were nowhere to be found: what they read is read by classifiers
            fitted to the cards until they are promoted again.
    """

    folder: Path
    digests: tuple[str, ...]
    missing: tuple[str, ...]


async def back_up(url: str, out: Path, *, is_forced: bool = False) -> CopiedModels:
    """Write a consistent copy of the store to `out`, its models to `<out>.models`; the service may go on meanwhile.

    Args:
        url: the store.
        out: the file to make.
        is_forced: whether a file that is there may be replaced; models that are there stay.

    Raises:
        ModelError: a model cannot be copied; `out` is as it was.
        StoreError: the store cannot be copied; `out` is as it was.
    """
    models = _Models(models_folder(url), models_beside(out))
    await copies.backup(url, out, is_forced=is_forced, along=models.copy)
    return models.copied


async def put_back(file: Path, url: str, *, clock: Clock | None = None) -> CopiedModels:
    """Replace the store by a backup, with its models; no process may have the store open.

    Raises:
        ModelError: a model cannot be copied; the store is as it was.
        StoreError: `file` is damaged or no store, or the store is in use; the store is as it was.
    """
    models = _Models(models_beside(file), models_folder(url))
    await copies.restore(file, url, clock=clock, along=models.copy)
    return models.copied


class _Models:
    def __init__(self, source: Path, target: Path) -> None:
        self._source = source
        self._target = target
        self.copied = CopiedModels(target, (), ())

    def copy(self, store: Path) -> None:
        """Copy the models that a store's file names; blocks."""
        found, missing = [], []
        for digest in copies.models_of(store):
            if holds_model(self._target / digest, digest):
                found.append(digest)
            elif holds_model(self._source / digest, digest):
                keep(self._source / digest, self._target, digest)
                found.append(digest)
            else:
                missing.append(digest)
        self.copied = CopiedModels(self._target, tuple(found), tuple(missing))

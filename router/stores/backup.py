"""Backup and restore of a store's file through SQLite's backup API, off the event loop."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from models.errors import StoreError
from models.ports import Clock
from router.clock import SystemClock
from router.stores.looking import read_only, untouched
from router.stores.served import served
from router.stores.sqlite import connect, existing_file, prepare, revision_of, sqlite_file

Along = Callable[[Path], object]
"""Called in a thread with a whole copy before it takes its place; what it raises ends the work."""

# of those that a rollback may still put in force
_MODELS = "SELECT DISTINCT digest FROM promotions WHERE stage IN ('shadow', 'canary', 'full', 'superseded') ORDER BY 1"


async def backup(url: str, out: Path, *, is_forced: bool = False, along: Along | None = None) -> None:
    """Write a consistent copy of the store to `out`; the service may go on writing meanwhile.

    The copy is one file, checked, flushed to the disk, and put in its place in one step.

    Args:
        url: the store.
        out: the file to make.
        is_forced: whether a file that is there may be replaced.
        along: what goes with it; None: nothing.

    Raises:
        StoreError: where it cannot be done; `out` is as it was.
    """
    await asyncio.to_thread(_backup, url, out, is_forced, along)


async def restore(file: Path, url: str, *, clock: Clock | None = None, along: Along | None = None) -> None:
    """Replace the store by the copy in `file`, migrated to the newest schema; no process may have the store open.

    Args:
        file: the copy.
        url: the store.
        clock: stamps a migration; None takes the system's.
        along: what goes with it; None: nothing.

    Raises:
        StoreError: where `file` is damaged or no store, or the store is in use; the store is as it was.
    """
    now_ms = int((clock or SystemClock()).now_ms())
    await asyncio.to_thread(_restore, file, sqlite_file(url), url, now_ms, along)


def models_of(file: Path) -> list[str]:
    """Digests of the models that a store's file, which nobody writes to, has on their way or in force; blocks.

    Raises:
        StoreError: it cannot be read.
    """
    with _border(f"reading the promotions of {str(file)!r}"), closing(read_only(file)) as connection:
        known = connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'promotions'"
        ).fetchone()
        return [str(digest) for (digest,) in connection.execute(_MODELS)] if known else []


def _backup(url: str, out: Path, is_forced: bool, along: Along | None) -> None:
    out = out.absolute()
    with _border(f"backup of {url!r} to {str(out)!r}"):
        store = existing_file(url)
        if out.exists() and out.samefile(store):
            raise StoreError(f"{str(out)!r} is the store itself: name another file")
        if out.exists() and not is_forced:
            raise StoreError(f"{str(out)!r} exists: name another file, or replace it by `--force`")
        with _file_beside(out) as copy, untouched(store):
            with closing(read_only(store)) as source:
                _check_schema(source, url)
                _copy(source, copy)
            if along is not None:
                along(copy)
            _put(copy, out)


def _restore(file: Path, store: Path, url: str, now_ms: int, along: Along | None) -> None:
    file = file.absolute()
    with _border(f"restore of {url!r} from {str(file)!r}"):
        if not file.is_file():
            raise StoreError(f"there is no file {str(file)!r}")
        if store.exists() and store.samefile(file):
            raise StoreError(f"{str(file)!r} is the store itself: name a backup")
        with served(url), _file_beside(store) as copy:
            with closing(read_only(file)) as source:
                _check_schema(source, str(file))
                _copy(source, copy)
            # migrated before it takes the place, so that a failure leaves the store alone
            prepare(copy, str(file), now_ms)
            with closing(connect(copy)) as connection:
                connection.execute("PRAGMA journal_mode=DELETE")
            if along is not None:
                along(copy)
            _free(store, url)
            _put(copy, store)


def _check_schema(connection: sqlite3.Connection, name: str) -> None:
    if revision_of(connection, name) is None:
        raise StoreError(f"{name!r} is empty: it is no store")


def _copy(source: sqlite3.Connection, path: Path) -> None:
    with closing(connect(path)) as target:
        # all pages in one step: one read transaction, so one moment of the store, and writers do not make it start anew
        source.backup(target, pages=-1)
        # without a WAL the copy is a single file
        target.execute("PRAGMA journal_mode=DELETE")
        (found,) = target.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise StoreError(f"the source is damaged: {found}")


def _free(store: Path, url: str) -> None:
    """Make sure that nobody has the old file open, and that no WAL of it is left to be read into the new one."""
    if store.exists():
        try:
            with closing(connect(store, 1.0)) as connection:
                connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreError(f"{url!r} is in use: stop the service first") from error
        except sqlite3.DatabaseError:
            # a damaged store is what restoring is for
            pass
    for suffix in ("-wal", "-shm", "-journal"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)


@contextmanager
def _file_beside(path: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{name}{suffix}").unlink(missing_ok=True)


def _put(copy: Path, path: Path) -> None:
    _flush(copy)
    os.replace(copy, path)
    _flush(path.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _border(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{what} failed: {error}") from error

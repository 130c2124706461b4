"""Opened: the database of a store, brought to the newest schema or only looked at, until it is closed again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from models.ports import Clock
from router.clock import SystemClock
from router.stores.database import Database
from router.stores.looking import check_schema, looking_engine, stored_revision, untouched
from router.stores.sqlite import existing_file, prepare, reader_engine, sqlite_file, writer_engine
from router.stores.tables import REVISION


@asynccontextmanager
async def opened(url: str, *, clock: Clock | None = None, n_readers: int = 1) -> AsyncIterator[Database]:
    """The database that `url` names, made and migrated if need be.

    Args:
        url: of the store.
        clock: stamps a migration; None takes the system's.
        n_readers: connections that read beside the one that writes.

    Raises:
        StoreError: where it cannot be opened, naming the URL and what to do.
    """
    path = sqlite_file(url)
    await asyncio.to_thread(prepare, path, url, int((clock or SystemClock()).now_ms()))
    database = Database(writer_engine(path), reader_engine(path, n_readers), url)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def looked_at(url: str, *, n_readers: int = 1) -> AsyncIterator[Database]:
    """The database of a store that is there and of this release's schema, for reading alone; a service may write to it.

    Args:
        url: of the store.
        n_readers: connections.

    Raises:
        StoreError: there is none, or it is of another schema; whatever would write.
    """
    path = await asyncio.to_thread(existing_file, url)
    with untouched(path):
        await asyncio.to_thread(check_schema, path, url)
        engine = await asyncio.to_thread(looking_engine, path, n_readers)
        database = Database(engine, engine, url)
        try:
            yield database
        finally:
            await database.close()


def migrated(url: str, now_ms: int) -> tuple[str, str]:
    """Bring a store that is there to the newest schema; blocks. The revision before, and the one now.

    Raises:
        StoreError: there is none, or it cannot be migrated.
    """
    path = existing_file(url)
    before = stored_revision(path, url)
    prepare(path, url, now_ms)
    return before, REVISION

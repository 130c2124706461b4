"""Opened: the database of a store, brought to the newest schema, until it is closed again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from models.ports import Clock
from router.clock import SystemClock
from router.stores.database import Database
from router.stores.sqlite import prepare, reader_engine, sqlite_file, writer_engine


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

"""Database: one writer, several readers, and the border where the driver's errors become ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from models.errors import StoreError

T = TypeVar("T")


class Database:
    """Runs functions of a Core connection, writes one after another, reads beside them.

    What has begun is finished even when the caller is cancelled: a transaction cut in half would leave its connection
    in an unknown state.
    """

    def __init__(self, writer: AsyncEngine, reader: AsyncEngine, name: str) -> None:
        self._writer = writer
        self._reader = reader
        self._name = name
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction of its own; what it wrote is durable on return.

        Raises:
            StoreError: where the database does not do it.
            ValueError: where a row is such that this database can never hold it.
        """
        return await self._finish(self._write(work))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads, on one of the readers.

        Raises:
            StoreError: where the database does not do it.
            ValueError: where it cannot even be asked for such a value.
        """
        return await self._finish(self._read(work))

    async def bare(self, statement: str) -> None:
        """Run a statement of SQLite's own on the writer, outside of any transaction; elsewhere nothing is done.

        Raises:
            StoreError: where the database does not do it.
        """
        if self._writer.dialect.name == "sqlite":
            await self._finish(self._bare(statement))

    async def close(self) -> None:
        """Finish what has begun and close all connections; a second call does nothing."""
        self._is_closed = True
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._writer.dispose()
        await self._reader.dispose()

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        if self._is_closed:
            work.close()
            raise StoreError(f"{self._name}: the store is closed")
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # a caller that was cancelled no longer asks for it
            task.exception()

    async def _write(self, work: Callable[[Connection], T]) -> T:
        with self._border():
            async with self._turn, self._writer.begin() as connection:
                return await connection.run_sync(work)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        with self._border():
            async with self._reader.connect() as connection:
                return await connection.run_sync(work)

    async def _bare(self, statement: str) -> None:
        with self._border():
            async with self._turn, self._writer.connect() as connection:
                # past SQLAlchemy, which would begin a transaction
                driver = (await connection.get_raw_connection()).driver_connection
                assert driver is not None
                # to its end, which `execute` does not do where there are no columns
                await driver.executescript(statement)

    @contextmanager
    def _border(self) -> Iterator[None]:
        try:
            yield
        except (DataError, IntegrityError, OverflowError, UnicodeError) as error:
            raise ValueError(f"{self._name} cannot hold this: {reason(error)}") from error
        except SQLAlchemyError as error:
            raise StoreError(f"{self._name}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """What went wrong, without the SQL and its parameters, which may be what callers sent."""
    if isinstance(error, DBAPIError):
        return str(error.orig)
    return type(error).__name__ if isinstance(error, SQLAlchemyError) else str(error)


def insert_or_keep(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """INSERT that leaves a row alone whose key is already there."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from models.errors import StoreError
from router.stores.database import Database
from router.stores.sqlite import prepare, reader_engine, writer_engine
from router.stores.tables import meta
from tests.router.stores.samples import url_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare(tmp_path / "store.db", url_of(tmp_path / "store.db"), 1)
    return tmp_path / "store.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    opened = Database(writer_engine(path), reader_engine(path, 2), "the store")
    yield opened
    await opened.close()


def add(name: str, connection: Connection) -> None:
    connection.execute(insert(meta), {"name": name, "value": ""})


async def names(database: Database) -> list[str]:
    return await database.read(lambda connection: list(connection.execute(select(meta.c.name)).scalars()))


async def test_the_writer_syncs_each_commit_and_the_reader_cannot_write(database: Database) -> None:
    def pragma(name: str, connection: Connection) -> int:
        return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())

    assert await database.write(lambda connection: pragma("synchronous", connection)) == 2
    assert await database.write(lambda connection: pragma("foreign_keys", connection)) == 1
    assert await database.write(lambda connection: pragma("busy_timeout", connection)) == 5000
    assert await database.read(lambda connection: pragma("busy_timeout", connection)) == 5000
    with pytest.raises(StoreError, match="readonly"):
        await database.read(lambda connection: add("x", connection))


async def test_a_failed_transaction_leaves_nothing_and_the_next_one_works(database: Database) -> None:
    def twice(connection: Connection) -> None:
        add("a", connection)
        add("a", connection)

    with pytest.raises(ValueError, match="UNIQUE"):
        await database.write(twice)
    await database.write(lambda connection: add("b", connection))
    assert await names(database) == ["b", "created_at"]


async def test_an_error_does_not_tell_what_was_written(database: Database) -> None:
    await database.write(lambda connection: add("secret", connection))
    with pytest.raises(ValueError, match="UNIQUE") as caught:
        await database.write(lambda connection: add("secret", connection))
    assert "secret" not in str(caught.value)


async def test_what_sqlite_cannot_hold_is_a_value_error(database: Database) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        await database.write(lambda connection: add("\ud800", connection))
    with pytest.raises(ValueError, match="surrogates"):
        await database.read(lambda connection: connection.execute(select(meta).where(meta.c.name == "\ud800")).all())


async def test_a_cancelled_caller_does_not_cut_its_transaction_in_half(database: Database) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work(connection: Connection) -> None:
        add("a", connection)
        driver = connection.connection.dbapi_connection
        assert driver is not None
        driver.create_function("hold", 0, hold)
        connection.exec_driver_sql("SELECT hold()")
        add("b", connection)

    def hold() -> int:
        begun.set()
        may_end.wait(30)
        return 0

    task = asyncio.create_task(database.write(work))
    await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    await database.write(lambda connection: add("c", connection))
    assert sorted(await names(database)) == ["a", "b", "c", "created_at"]


async def test_closing_waits_for_what_has_begun(database: Database) -> None:
    writes = [asyncio.create_task(database.write(partial(add, str(n)))) for n in range(20)]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*writes) == [None] * 20
    with pytest.raises(StoreError, match="closed"):
        await database.write(lambda connection: add("late", connection))


async def test_reads_go_on_beside_a_writer_in_another_process(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert await names(database) == ["created_at"]
        waiting = asyncio.create_task(database.write(lambda connection: add("a", connection)))
        assert await names(database) == ["created_at"]
        other.execute("COMMIT")
        await waiting
    assert sorted(await names(database)) == ["a", "created_at"]

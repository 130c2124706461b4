from __future__ import annotations

import asyncio
import filecmp
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from models.errors import StoreError
from models.events import Row
from router.stores.backup import backup, restore
from router.stores.open import open_store
from tests.router.stores.make_store_0001 import STORE_0001
from tests.router.stores.samples import card, decision, event, url_of


async def fill(path: Path, agent_id: str) -> str:
    async with open_store(url_of(path)) as store:
        await store.cards.put_card(card(agent_id))
    return url_of(path)


async def agents(url: str) -> list[str]:
    async with open_store(url) as store:
        return [stored.card.agent_id for stored in await store.cards.load_cards()]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def leftovers(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.startswith(".")]


async def test_a_backup_made_while_rows_are_written_holds_whole_transactions(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    async with open_store(url) as store:
        n_written = 0
        is_done = False
        has_grown = asyncio.Event()

        async def write() -> None:
            nonlocal n_written
            while not is_done:
                name = str(n_written)
                rows: list[Row] = [event(trace_id=name, payload="x" * 500) for _ in range(20)]
                await store.records.append([*rows, decision(decision_id=name, trace_id=name)])
                n_written += 1
                if n_written % 20 == 0:
                    has_grown.set()

        writer = asyncio.create_task(write())
        for n in range(3):
            has_grown.clear()
            await has_grown.wait()
            before = n_written
            await backup(url, tmp_path / f"copy{n}.db")
            with closing(sqlite3.connect(tmp_path / f"copy{n}.db")) as copy:
                assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                (n_events,) = copy.execute("SELECT count(*) FROM events").fetchone()
                (n_decisions,) = copy.execute("SELECT count(*) FROM decisions").fetchone()
            assert n_events == 20 * n_decisions
            assert before <= n_decisions <= n_written + 1
        is_done = True
        await writer
    assert leftovers(tmp_path) == []


async def test_a_backup_is_one_file_that_opens_as_a_store(tmp_path: Path) -> None:
    url = await fill(tmp_path / "store.db", "orders")
    await backup(url, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "copy.db-wal").exists()
    assert await agents(url_of(tmp_path / "copy.db")) == ["orders"]


async def test_a_backup_replaces_a_file_only_when_told_to_and_the_store_never(tmp_path: Path) -> None:
    url = await fill(tmp_path / "store.db", "orders")
    out = tmp_path / "copy.db"
    out.write_text("precious")
    with pytest.raises(StoreError, match="exists"):
        await backup(url, out)
    assert out.read_text() == "precious"
    await backup(url, out, is_forced=True)
    assert await agents(url_of(out)) == ["orders"]
    with pytest.raises(StoreError, match="is the store itself"):
        await backup(url, tmp_path / "store.db", is_forced=True)


async def test_a_backup_of_nothing_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        await backup(url_of(tmp_path / "missing.db"), tmp_path / "copy.db")
    assert names(tmp_path) == []


async def test_a_backup_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    url = await fill(tmp_path / "store.db", "orders")
    with pytest.raises(StoreError, match="No such file or directory"):
        await backup(url, tmp_path / "nowhere" / "copy.db")


async def test_restoring_brings_back_what_was_backed_up(tmp_path: Path) -> None:
    url = await fill(tmp_path / "store.db", "orders")
    await backup(url, tmp_path / "copy.db")
    await fill(tmp_path / "store.db", "later")
    await restore(tmp_path / "copy.db", url)
    assert await agents(url) == ["orders"]
    assert await agents(url_of(tmp_path / "copy.db")) == ["orders"]
    assert leftovers(tmp_path) == []


async def test_restoring_makes_a_store_where_there_is_none(tmp_path: Path) -> None:
    await backup(await fill(tmp_path / "store.db", "orders"), tmp_path / "copy.db")
    await restore(tmp_path / "copy.db", url_of(tmp_path / "new.db"))
    assert await agents(url_of(tmp_path / "new.db")) == ["orders"]


async def test_restoring_an_older_backup_migrates_the_store_and_not_the_backup(tmp_path: Path) -> None:
    shutil.copy(STORE_0001, tmp_path / "old.db")
    await restore(tmp_path / "old.db", url_of(tmp_path / "store.db"))
    assert await agents(url_of(tmp_path / "store.db")) == ["orders"]
    assert filecmp.cmp(tmp_path / "old.db", STORE_0001, shallow=False)


async def test_a_store_in_use_is_not_replaced(tmp_path: Path) -> None:
    url = await fill(tmp_path / "store.db", "orders")
    await backup(url, tmp_path / "copy.db")
    async with open_store(url) as store:
        await store.cards.put_card(card("later"))
        with pytest.raises(StoreError, match="in use: stop the service"):
            await restore(tmp_path / "copy.db", url)
        await store.cards.put_card(card("still"))
    assert await agents(url) == ["later", "orders", "still"]
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("kind", ["missing", "text", "empty", "cut", "foreign", "newer", "itself"])
async def test_an_unusable_backup_leaves_the_store_as_it_is(tmp_path: Path, kind: str) -> None:
    url = await fill(tmp_path / "store.db", "orders")
    file = tmp_path / f"{kind}.db"
    if kind == "text":
        file.write_text("no database " * 1000)
    elif kind == "empty":
        file.touch()
    elif kind == "cut":
        content = STORE_0001.read_bytes()
        file.write_bytes(content[: len(content) // 2])
    elif kind == "foreign":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE notes (text)")
    elif kind == "newer":
        shutil.copy(STORE_0001, file)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
    elif kind == "itself":
        file = tmp_path / "store.db"
    with pytest.raises(StoreError):
        await restore(file, url)
    assert await agents(url) == ["orders"]
    assert leftovers(tmp_path) == []


async def test_a_damaged_store_can_be_restored(tmp_path: Path) -> None:
    url = await fill(tmp_path / "store.db", "orders")
    await backup(url, tmp_path / "copy.db")
    (tmp_path / "store.db").write_text("overwritten " * 1000)
    (tmp_path / "store.db-wal").write_text("left behind")
    await restore(tmp_path / "copy.db", url)
    assert await agents(url) == ["orders"]

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from models.errors import StoreError
from router.stores.open import look_into, open_store
from router.stores.opened import looked_at, migrated
from router.stores.tables import REVISION
from tests.router.stores.make_store_0001 import STORE_0001
from tests.router.stores.samples import ROOT, card, url_of

LOOK_AS_NOBODY = """
import asyncio, os, sys
from router.stores.open import look_into

async def main() -> None:
    async with look_into(sys.argv[1]) as store:
        print(*[stored.card.agent_id for stored in await store.cards.load_cards()])

asyncio.run(main())  # what Python loads on the way may be for root alone
os.setuid(65534)
asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place" / "a store #1.db"


async def fill(path: Path) -> None:
    async with open_store(url_of(path)) as store:
        await store.cards.put_card(card("orders"))


def seen(path: Path) -> tuple[str, list[str]]:
    """The file's digest, and what lies beside it."""
    return hashlib.sha256(path.read_bytes()).hexdigest(), sorted(each.name for each in path.parent.iterdir())


async def agents(path: Path) -> list[str]:
    async with look_into(url_of(path)) as store:
        return [stored.card.agent_id for stored in await store.cards.load_cards()]


async def test_a_look_leaves_the_file_and_its_folder_as_they_were(path: Path) -> None:
    await fill(path)
    before = seen(path)
    assert await agents(path) == ["orders"]
    assert seen(path) == before


async def test_a_look_sees_what_others_write_meanwhile_and_keeps_nobody_from_it(path: Path) -> None:
    async with open_store(url_of(path)) as store:
        await store.cards.put_card(card("orders"))
        async with look_into(url_of(path)) as looked:
            await store.cards.put_card(card("later"))
            assert [stored.card.agent_id for stored in await looked.cards.load_cards()] == ["later", "orders"]
        assert await agents(path) == ["later", "orders"]
        await store.cards.put_card(card("still"))
    assert await agents(path) == ["later", "orders", "still"]


async def test_what_a_killed_service_left_in_its_log_is_seen(path: Path, tmp_path: Path) -> None:
    async with open_store(url_of(path)) as store:
        await store.cards.put_card(card("orders"))
        for name in ("", "-wal"):
            shutil.copy(f"{path}{name}", f"{tmp_path}/killed.db{name}")
    n_bytes = (tmp_path / "killed.db-wal").stat().st_size
    assert n_bytes > 0
    assert await agents(tmp_path / "killed.db") == ["orders"]
    # to put it into the file is for whoever writes there next
    assert (tmp_path / "killed.db-wal").stat().st_size == n_bytes


async def test_whoever_looks_cannot_write(path: Path) -> None:
    await fill(path)
    async with look_into(url_of(path)) as store:
        with pytest.raises(StoreError, match="readonly"):
            await store.cards.put_card(card("other"))
        await store.vectors.save_vectors("e", {})
        assert len(await store.retention.redaction_key()) == 32
    assert await agents(path) == ["orders"]


async def test_the_redaction_key_of_a_look_is_the_stores(path: Path) -> None:
    async with open_store(url_of(path)) as store:
        key = await store.retention.redaction_key()
    async with look_into(url_of(path)) as looked:
        assert await looked.retention.redaction_key() == key


async def test_an_older_schema_is_named_with_what_is_needed_and_how_to_get_it(path: Path) -> None:
    shutil.copy(STORE_0001, path)
    before = seen(path)
    told = f"has the schema '0001', this release reads '{REVISION}', .* `agency-router store migrate`"
    with pytest.raises(StoreError, match=told):
        async with looked_at(url_of(path)):
            pass
    assert seen(path) == before


async def test_a_newer_schema_asks_for_a_newer_release(path: Path) -> None:
    await fill(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="upgrade agency-router"):
        async with looked_at(url_of(path)):
            pass


@pytest.mark.parametrize(
    ("content", "told"), [(b"", "is empty"), (b"no database at all, but text", "cannot be read"), (None, "no store")]
)
def test_what_is_no_store_is_named(path: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreError, match=told):
        asyncio.run(agents(path))
    with pytest.raises(StoreError, match=told):
        migrated(url_of(path), 1)
    assert path.exists() == (content is not None)


def test_migrating_tells_both_schemas_and_does_nothing_twice(path: Path) -> None:
    shutil.copy(STORE_0001, path)
    assert migrated(url_of(path), 1) == ("0001", REVISION)
    before = seen(path)
    assert migrated(url_of(path), 1) == (REVISION, REVISION)
    assert seen(path) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_store_on_a_medium_that_cannot_be_written_is_seen(path: Path, tmp_path: Path) -> None:
    asyncio.run(fill(path))
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        folder.chmod(0o755)
    path.chmod(0o644)
    path.parent.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", LOOK_AS_NOBODY, url_of(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("orders\norders\n", "")

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import router.stores
from models.errors import StoreError
from router.stores import tables
from router.stores.open import open_store
from router.stores.sqlite import prepare, sqlite_file
from tests.router.stores.make_store_0001 import STORE_0001
from tests.router.stores.samples import ROOT, event, url_of

OPEN_AND_ADD = """
import asyncio, sys
from router.stores.open import open_store
from tests.router.stores.samples import event

async def main() -> None:
    async with open_store(sys.argv[1]) as store:
        await store.records.append([event()])

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def prepared(path: Path) -> Path:
    prepare(path, url_of(path), 1)
    return path


def test_relative_urls_are_taken_from_the_working_directory() -> None:
    assert sqlite_file("sqlite:///a/b.db") == Path.cwd() / "a" / "b.db"
    assert sqlite_file("sqlite:////a/b.db") == Path("/a/b.db")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "store.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a.db?mode=ro",
        "sqlite+aiosqlite:///a",
        "sqlite://host/a.db",
        "sqlite:///a\0b",
        "http://x:y:z",
    ],
)
def test_a_url_of_no_sqlite_file_is_refused_with_the_right_form(url: str) -> None:
    with pytest.raises(StoreError, match=r"sqlite:///relative\.db"):
        sqlite_file(url)


def test_a_refused_url_does_not_tell_its_password() -> None:
    with pytest.raises(StoreError, match="postgresql") as caught:
        sqlite_file("postgresql://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_the_migrations_lead_to_the_declared_tables(tmp_path: Path) -> None:
    engine = create_engine(url_of(prepared(tmp_path / "store.db")))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []
        assert context.get_current_revision() == tables.REVISION
    engine.dispose()


def test_the_declared_revision_is_the_newest() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(router.stores.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [tables.REVISION]


async def test_a_file_of_the_first_revision_is_upgraded_with_its_rows(tmp_path: Path) -> None:
    path = Path(shutil.copy(STORE_0001, tmp_path / "old.db"))
    async with open_store(url_of(path)) as store:
        assert [(card.card.agent_id, card.source) for card in await store.cards.load_cards()] == [("orders", "api")]
        assert [key.name for key in await store.keys.load_keys()] == ["shop"]
        assert await store.policies.load_policy() == (1, "{}")
        record = await store.records.decision("d1")
        assert record is not None
        assert record.intent == "order_status"
        await store.records.append([event(span_id="s2", happened_at=1_700_000_000_001)])
        found = await store.records.events(1_700_000_000_000, 1_800_000_000_000, 0, 10)
        assert [(sequence, row.span_id) for sequence, row in found] == [(1, "s1"), (2, "s2")]
        assert await store.records.goal("default", "task") is None


def test_a_new_file_is_for_its_owner_alone_and_in_wal_mode(tmp_path: Path) -> None:
    path = prepared(tmp_path / "store.db")
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_percent_sign_in_the_path_does_no_harm(tmp_path: Path) -> None:
    prepared(tmp_path / "50%(x)s ü.db")


def test_a_missing_folder_is_named_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere/store\.db.*create its folder"):
        prepared(tmp_path / "nowhere" / "store.db")


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="name a file"):
        prepared(tmp_path)


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("something else entirely " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt.*not a database.*name another file"):
        prepared(path)
    assert path.read_text() == "something else entirely " * 100


def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        prepared(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused_with_both_revisions(tmp_path: Path) -> None:
    path = prepared(tmp_path / "store.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"9999.*0002.*newer release"):
        prepared(path)


def test_a_failed_upgrade_changes_nothing(tmp_path: Path) -> None:
    path = Path(shutil.copy(STORE_0001, tmp_path / "old.db"))
    with closing(sqlite3.connect(path)) as connection, connection:
        # stands in the way of the last step of 0002, after goals was made
        connection.execute("CREATE INDEX events_happened_at ON events (happened_at)")
    with pytest.raises(StoreError, match="already exists"):
        prepared(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'goals'").fetchone() is None


def test_processes_that_open_a_fresh_file_at_once_all_succeed(tmp_path: Path) -> None:
    for round_ in range(2):
        url = url_of(tmp_path / f"fresh{round_}.db")
        children = [
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", OPEN_AND_ADD, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for _ in range(3)
        ]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            _, errors = child.communicate(timeout=60)
            assert (child.returncode, errors) == (0, "")
        with closing(sqlite3.connect(sqlite_file(url))) as connection:
            assert connection.execute("SELECT count(*) FROM events").fetchone() == (3,)
            assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)

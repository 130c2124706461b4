"""What is SQLite's own: where the file is, how connections are set up, and how it comes to the newest schema."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, insert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from models.errors import StoreError
from router.stores import tables
from router.stores.database import reason

BUSY_S = 5.0
"""How long a connection waits for another process to finish writing."""

_MIGRATION_S = 60.0
"""The same while opening: another process may be migrating a large file."""

NEWER = "a newer release wrote it; upgrade agency-router, or restore a backup of your release"
"""What is to be done about a schema that is not known here."""

# Alembic hands its environment out through module globals, so one thread migrates at a time
_ALEMBIC = threading.Lock()


def sqlite_file(url: str) -> Path:
    """The absolute path that a store URL names.

    >>> sqlite_file("sqlite:////var/lib/router.db")
    PosixPath('/var/lib/router.db')

    Raises:
        StoreError: where the URL is no `sqlite:///…` URL of a file.
    """
    form = "use sqlite:///relative.db or sqlite:////absolute.db"
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(f"{url!r} is no store URL: {form}") from None
    shown = parsed.render_as_string(hide_password=True)
    if parsed.drivername != "sqlite":
        raise StoreError(f"{shown!r}: stores of the kind {parsed.drivername!r} are not supported: {form}")
    if parsed.host or parsed.query or parsed.database in (None, "", ":memory:") or "\0" in str(parsed.database):
        raise StoreError(f"{shown!r} names no file: {form}, without parameters")
    return Path(str(parsed.database)).absolute()


def existing_file(url: str) -> Path:
    """The same, of a store that is there: opening would make one.

    Raises:
        StoreError: where the URL is no such one, or there is no file.
    """
    path = sqlite_file(url)
    if not path.is_file():
        raise StoreError(f"there is no store {url!r}: name the one that the service uses")
    return path


def writer_engine(path: Path) -> AsyncEngine:
    """One connection whose transactions take the write lock at once; a commit is on the disk when it returns."""
    # what is deleted is overwritten, else it would lie in the file until its place is needed again
    pragmas = ("PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON", "PRAGMA secure_delete=ON")
    engine = _async_engine(path, 1, pragmas)
    # upgrading a read lock later fails at once with "database is locked", whatever the busy time-out
    event.listen(engine.sync_engine, "begin", _begin_immediate)
    return engine


def reader_engine(place: Path | URL, n_connections: int) -> AsyncEngine:
    """Connections that cannot write, each statement a snapshot of its own; `place` is the file, or how to open it."""
    return _async_engine(
        place,
        n_connections,
        ("PRAGMA query_only=ON",),
        isolation_level="AUTOCOMMIT",
        skip_autocommit_rollback=True,
    )


def _async_engine(place: Path | URL, pool_size: int, pragmas: tuple[str, ...], **options: Any) -> AsyncEngine:
    url = place if isinstance(place, URL) else URL.create("sqlite+aiosqlite", database=str(place))
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        connect_args={"timeout": BUSY_S, "isolation_level": None},
        **options,
    )

    def set_up(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    event.listen(engine.sync_engine, "connect", set_up)
    return engine


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _vacuum_by_steps(connection: Any, _record: object) -> None:
    """Free pages can be given back; in a file that is there already only after a `VACUUM`."""
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")


def prepare(path: Path, url: str, now_ms: int) -> None:
    """Make the file if need be and bring it to the newest schema; blocks.

    Several processes may do so at once: SQLite's write lock lets one migrate, the others find it done.

    Raises:
        StoreError: naming the URL and what to do.
    """
    try:
        # readable by its owner alone: it holds requests and key digests
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(connect(path, _MIGRATION_S)) as connection:
            if revision_of(connection, url) != tables.REVISION:
                _upgrade(path, url, now_ms)
            _use_wal(connection, url)
    except OSError as error:
        raise StoreError(f"{url!r} cannot be opened ({error.strerror}): {fix(error)}") from error
    except (sqlite3.Error, DBAPIError) as error:
        raise StoreError(f"{url!r} cannot be opened ({reason(error)}): {fix(error)}") from error


def connect(path: Path, wait_s: float = BUSY_S) -> sqlite3.Connection:
    """A plain connection, for the work that goes past SQLAlchemy."""
    return sqlite3.connect(path, timeout=wait_s, isolation_level=None)


def fix(error: Exception) -> str:
    """What to do where a file cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return "create its folder"
    if isinstance(error, OSError):
        return "name a file in a folder that this user may write to"
    if "locked" in str(error):
        return "another process holds it; try again when that has ended"
    return "name another file, or restore a backup with `agency-router restore`"


def revision_of(connection: sqlite3.Connection, url: str) -> str | None:
    """The file's schema revision; None where it is empty.

    Raises:
        StoreError: where the database is not one of ours.
    """
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    names = {str(name) for (name,) in found}
    if not names:
        return None
    if not {"alembic_version", "cards", "meta"} <= names:
        raise StoreError(f"{url!r} is the database of another program: name another file")
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def _upgrade(path: Path, url: str, now_ms: int) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        poolclass=NullPool,
        connect_args={"timeout": _MIGRATION_S, "isolation_level": None},
    )
    event.listen(engine, "connect", _vacuum_by_steps)
    event.listen(engine, "begin", _begin_immediate)
    with _ALEMBIC, engine.begin() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        found = revision_of(driver, url)
        if found is not None and found not in known:
            raise StoreError(f"{url!r} has the schema {found!r}, this release knows {sorted(known)}: {NEWER}")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if found is None:
            connection.execute(insert(tables.meta).values(name="created_at", value=str(now_ms)))


def _use_wal(connection: sqlite3.Connection, url: str) -> None:
    until = time.monotonic() + _MIGRATION_S
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError:
            # SQLite does not wait here for another process that is opening the same file
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise StoreError(f"{url!r}: its file system has no shared memory for a WAL: name a file on a local disk")
        return

"""Looking into a store that is there: SQLite's file is opened such that nothing is written, made or migrated."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine

from models.errors import StoreError
from router.stores.sqlite import BUSY_S, NEWER, connect, reader_engine, revision_of
from router.stores.tables import REVISION


@contextmanager
def untouched(path: Path) -> Iterator[None]:
    """While a file is only looked at: what SQLite lays beside it to read it is gone afterwards, if it was not there."""
    was_there = _log_of(path).exists()
    try:
        yield
    finally:
        if not was_there:
            _tidy(path)


def check_schema(path: Path, url: str) -> None:
    """Make sure that a store is of this release's schema; blocks.

    Raises:
        StoreError: it is not, or is no store, or cannot be read.
    """
    found = stored_revision(path, url)
    if found < REVISION:
        raise StoreError(
            f"{url!r} has the schema {found!r}, this release reads {REVISION!r}, and what only looks changes "
            "nothing: bring it up to date with `agency-router store migrate`, or start `agency-router serve` with it"
        )
    if found != REVISION:
        raise StoreError(f"{url!r} has the schema {found!r}, this release reads {REVISION!r}: {NEWER}")


def stored_revision(path: Path, url: str) -> str:
    """The schema revision of a store that is there; blocks.

    Raises:
        StoreError: it is none, or cannot be read.
    """
    try:
        with closing(read_only(path)) as connection:
            found = revision_of(connection, url)
    except sqlite3.Error as error:
        raise StoreError(f"{url!r} cannot be read ({error}): name a store of agency-router") from error
    if found is None:
        raise StoreError(f"{url!r} is empty: name a store of agency-router")
    return found


def read_only(path: Path) -> sqlite3.Connection:
    """A plain connection that cannot write; a service may be writing to the same file.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    connection = _connected(path, _look_query(path))
    connection.execute("PRAGMA query_only=ON")
    return connection


def _look_query(path: Path) -> dict[str, str]:
    """How SQLite is to open a file that is only read.

    With a write-ahead log it makes the log's files where there are none. Where it may not, as on a medium that cannot
    be written, the file alone is the whole store.
    """
    query = {"mode": "ro"}
    if _log_of(path).exists():
        return query
    with closing(_connected(path, query)) as connection:
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            if os.access(path.parent, os.W_OK) or "locked" in str(error):
                raise
            return {**query, "immutable": "1"}
    return query


def _log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def _tidy(path: Path) -> None:
    """Take away the empty log that a reader made, in the way of SQLite's own: the last to close a file does it."""
    with suppress(OSError, sqlite3.Error):
        if _log_of(path).stat().st_size == 0:
            with closing(connect(path)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _connected(path: Path, query: Mapping[str, str]) -> sqlite3.Connection:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return sqlite3.connect(f"{path.as_uri()}?{text}", uri=True, timeout=BUSY_S, isolation_level=None)


def looking_engine(path: Path, n_connections: int) -> AsyncEngine:
    """Connections to a file that they cannot write to, each statement a snapshot of its own; blocks for a moment.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        query = _look_query(path)
    except sqlite3.Error as error:
        raise StoreError(f"{str(path)!r} cannot be read ({error}): name a store of agency-router") from error
    url = URL.create("sqlite+aiosqlite", database=path.as_uri(), query={**query, "uri": "true"})
    return reader_engine(url, n_connections)

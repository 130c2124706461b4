"""Served: at most one process serves a store, as it keeps what it has learned in memory and writes it down whole.

Other processes may read and write beside it, such as the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from models.errors import StoreError
from router.stores.sqlite import fix, sqlite_file

try:
    import fcntl
except ImportError:  # there is none on Windows, where nothing is held
    fcntl = None  # type: ignore[assignment]

_MAX_PID_BYTES = 20


@contextmanager
def served(url: str) -> Iterator[None]:
    """Hold a store as the one that serves it, by a lock on `<store>.lock`, which is there as long as it is held.

    The lock goes with the process that holds it, however it ends; the file is none of the store's.

    Raises:
        StoreError: another process holds it, or it cannot be held.
    """
    # by whatever links it is named
    path = Path(os.path.realpath(sqlite_file(url)))
    lock = path.with_name(f"{path.name}.lock")
    held = _held(lock, url)
    try:
        yield
    finally:
        if held is not None:
            # before it is let go: whoever opened the old file looks whether it is still the one that is there
            with suppress(OSError):
                lock.unlink()
            os.close(held)


def _held(lock: Path, url: str) -> int | None:
    """The lock's file, held; None where that cannot be done at all."""
    if fcntl is None:
        return None
    try:
        while True:
            found = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_there(lock, found):
                    os.ftruncate(found, 0)
                    os.write(found, f"{os.getpid()}\n".encode())
                    return found
            except BlockingIOError:
                told = os.pread(found, _MAX_PID_BYTES, 0)
                os.close(found)
                raise StoreError(_taken(url, told)) from None
            except BaseException:
                os.close(found)
                raise
            os.close(found)  # the one before has just taken it away
    except OSError as error:
        raise StoreError(f"{url!r} cannot be opened ({error.strerror}): {fix(error)}") from error


def _is_there(lock: Path, found: int) -> bool:
    try:
        return os.path.samestat(os.fstat(found), lock.stat())
    except FileNotFoundError:
        return False


def _taken(url: str, told: bytes) -> str:
    name = told.decode(errors="replace").strip()
    who = f"another process ({name})" if name.isdigit() else "another process"
    return f"{url!r} is in use by {who}: stop the service first, or name another store by --store"

"""Lock: no two runs write to one folder at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from models.errors import ModelError

try:
    import fcntl
except ImportError:  # there is none on Windows, where nothing is locked
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made where there is none, and goes again if it is empty in the end.

    A lock goes with the process that holds it, however it ends.

    Raises:
        ModelError: another run holds it, or it cannot be made.
    """
    held = _open(folder)
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()
        if held is not None:
            os.close(held)


def _open(folder: Path) -> int | None:
    """The folder, held; None where that cannot be done."""
    try:
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            if fcntl is None:
                return None
            found = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if folder.exists() and os.path.samestat(os.fstat(found), folder.stat()):
                    return found
            except BaseException:
                os.close(found)
                raise
            os.close(found)  # the run before has removed it meanwhile
    except BlockingIOError as error:
        raise ModelError(
            f"another `retrain` is writing to {folder}: wait until it is through, or name another --out"
        ) from error
    except OSError as error:
        raise ModelError(f"{folder} cannot be written ({error}); name another --out") from error

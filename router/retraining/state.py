"""State: what a run has done, so that one that was ended goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from models.errors import ModelError

MOST_AGE_MS = 24 * 3_600_000
"""An older run is begun again: what has been erased since may be among its rows."""

_STATE, _PLAN = "state.json", "plan.json"


class State:
    """The folder of one run, `OUT/.retrain`; readable by its owner alone, as it holds what callers said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def vectors(self) -> Path:
        """File of the vectors."""
        return self.folder / "vectors.npz"

    @property
    def before(self) -> Path:
        """Model folder of the classifiers that the new ones are compared with, where none was named."""
        return self.folder / "before"

    @property
    def after(self) -> Path:
        """Model folder of the new ones."""
        return self.folder / "after"

    @property
    def exam(self) -> Path:
        """The exam's report."""
        return self.folder / "exam.json"

    def open(self, arguments: str, now_ms: int) -> bool:
        """Go on with the run of these arguments, if it is not too old, else begin anew; whether it goes on.

        Raises:
            ModelError: the folder cannot be written.
        """
        found = _json(self.folder / _STATE)
        if found is not None and found.get("arguments") == arguments:
            age_ms = now_ms - int(found.get("started_at", 0))
            if 0 <= age_ms <= MOST_AGE_MS:
                return True
        self._guarded(lambda: self._begin(arguments, now_ms))
        return False

    def plan(self) -> dict[str, Any] | None:
        """The plan that was kept; None where rows were not gathered yet."""
        return _json(self.folder / _PLAN)

    def keep_plan(self, plan: dict[str, Any]) -> None:
        """Keep the plan."""
        self._guarded(lambda: write_whole(self.folder / _PLAN, json.dumps(plan)))

    def keep_exam(self, text: str) -> None:
        """Keep the exam's report."""
        self._guarded(lambda: write_whole(self.exam, text))

    def close(self) -> None:
        """Nothing of the run is kept, nor its folder's folder if that holds nothing else."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            self.folder.parent.rmdir()

    def _begin(self, arguments: str, now_ms: int) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(mode=0o700, parents=True)
        write_whole(self.folder / _STATE, json.dumps({"arguments": arguments, "started_at": now_ms}))

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            raise ModelError(f"{self.folder} cannot be written ({error}); name another --out") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no reader, and no later run, ever finds half of it."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _json(path: Path) -> dict[str, Any] | None:
    """The object in a file of ours; None where there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None

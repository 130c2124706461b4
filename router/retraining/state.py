"""State: what a run has done, so that one that was ended goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from intent.model_folder import SUCCESS_FILE
from models.errors import ModelError

MOST_AGE_MS = 24 * 3_600_000
"""An older run is begun again: what has been erased since may be among its rows."""

_STATE, _PLAN, _OUTCOMES = "state.json", "plan.json", "outcomes.json"


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
    def success(self) -> Path:
        """The success heads, where they are kept; meaningful beside `success_exam` alone."""
        return self.folder / SUCCESS_FILE

    @property
    def success_exam(self) -> Path:
        """Their exam."""
        return self.folder / "success.json"

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

    def outcomes(self) -> dict[str, Any] | None:
        """The outcomes that were kept; None where rows were not gathered yet."""
        return _json(self.folder / _OUTCOMES)

    def keep_plan(self, plan: dict[str, Any], outcomes: dict[str, Any]) -> None:
        """Keep the plan, and the outcomes that success heads are fitted on."""
        self._guarded(lambda: write_whole(self.folder / _OUTCOMES, json.dumps(outcomes)))
        self._guarded(lambda: write_whole(self.folder / _PLAN, json.dumps(plan)))

    def keep_success(self, heads: bytes | None, exam: str) -> None:
        """Keep success heads, None where there are none to keep, and their exam."""
        if heads is not None:
            self._guarded(lambda: write_whole(self.success, heads))
        self._guarded(lambda: write_whole(self.success_exam, exam))

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


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader, and no later run, ever finds half of it."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(beside, path)


def _json(path: Path) -> dict[str, Any] | None:
    """The object in a file of ours; None where there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None

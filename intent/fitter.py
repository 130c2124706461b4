"""Fitter: fits heads in a process of its own, since fitting holds the interpreter for seconds."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from intent.fit_job import EXAMPLES, MODEL, VECTORS
from intent.heads import Heads
from intent.model_folder import Origin, load_heads
from models.errors import RouterError
from models.ports import Embedded

log = logging.getLogger(__name__)


class FitError(RouterError):
    """The fit process failed or took too long."""

    code = "fit_failed"


async def fit_apart(
    examples: Sequence[tuple[str, str]],
    vectors: Mapping[str, Embedded],
    *,
    origin: Origin,
    timeout_s: float,
    keep: Path | None = None,
) -> Heads:
    """Heads for (normalized text, intent) examples.

    Args:
        examples: of at least two intents.
        vectors: text → vector; those that are not to be trusted are left out here.
        origin: for the manifest of the model folder.
        timeout_s: the process is killed after that.
        keep: where to put the model folder; None keeps none. Where that fails, the heads are good all the same.

    Raises:
        FitError: the process failed or took too long.
    """
    try:
        # a thread may still write while it is left
        with tempfile.TemporaryDirectory(prefix="agency-router-fit-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            await asyncio.to_thread(_write_job, folder, examples, vectors, origin)
            await _run(folder, timeout_s)
            heads = await asyncio.to_thread(load_heads, folder / MODEL)
            if keep is not None:
                await asyncio.to_thread(_keep, folder / MODEL, keep)
            return heads
    except OSError as error:
        raise FitError(f"fitting the classifiers failed: {error}") from error


def _write_job(
    folder: Path,
    examples: Sequence[tuple[str, str]],
    vectors: Mapping[str, Embedded],
    origin: Origin,
) -> None:
    job = {"examples": [list(example) for example in examples], "origin": origin.model_dump(), "seed": origin.seed}
    (folder / EXAMPLES).write_text(json.dumps(job), encoding="utf-8")
    rows = [row for row, (text, _) in enumerate(examples) if text in vectors and vectors[text].is_trusted]
    points = [np.frombuffer(vectors[examples[row][0]].vector, dtype="<f4") for row in rows]
    np.savez(
        folder / VECTORS,
        rows=np.array(rows, dtype=np.int64),
        points=np.stack(points) if points else np.zeros((0, 1), dtype="<f4"),
    )


async def _run(folder: Path, timeout_s: float) -> None:
    # -P: the working directory may hold modules of the same names as ours
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "intent.fit_job",
        str(folder),
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(timeout_s):
            _, errors = await process.communicate()
    except TimeoutError:
        raise FitError(f"fitting the classifiers took longer than {timeout_s:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        said = errors.decode(errors="replace").strip() or f"the process ended with {process.returncode}"
        raise FitError(f"fitting the classifiers failed: {said.splitlines()[-1]}")


def _keep(made: Path, keep: Path) -> None:
    """Put a finished folder in its place, whole: a reader never sees half of it."""
    beside, before = (keep.with_name(f"{keep.name}.{end}") for end in ("new", "old"))
    try:
        keep.parent.mkdir(parents=True, exist_ok=True)
        for rest in (beside, before):
            shutil.rmtree(rest, ignore_errors=True)
        shutil.copytree(made, beside)
        if keep.exists():
            keep.rename(before)
        beside.rename(keep)
        shutil.rmtree(before, ignore_errors=True)
    except OSError as error:
        log.warning("the classifiers are not kept, the next start fits them anew: %s", error)

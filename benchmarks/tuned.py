"""The encoder tuned for a task, for the rows of bench_intents with fine-tuning."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measured import Bench, Subject, Task


def tuned(bench: Bench, task: Task, seed: int, folder: Path) -> Subject:
    """Heads by the better encoder, the tuned one or the one that it was made from, and that encoder's vectors.

    Args:
        bench: its vectors are of the encoder to begin with.
        task: what may be looked at; its test rows must not be.
        seed: of the tuning and the heads.
        folder: for the tuned encoder.
    """
    raise NotImplementedError(f"no fine-tuning yet: {len(task.examples)} examples, seed {seed}, {folder}, {bench}")

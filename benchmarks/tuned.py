"""The encoder tuned for a task, for the rows of bench_intents with fine-tuning."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from benchmarks.measured import Bench, Subject, Task
from intent.export import find_source
from intent.fine_tune import FineTuning
from intent.pair_embedder import open_encoder
from intent.vector_cache import VectorCache


def tuned(bench: Bench, task: Task, seed: int, folder: Path) -> Subject:
    """Heads by the encoder that the exam finds best, and that encoder's vectors.

    Args:
        bench: its vectors are of the encoder to begin with.
        task: what may be looked at; its test rows are not.
        seed: of the tuning and the heads.
        folder: for the tuned encoder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tuning = FineTuning(bench.vectors, files("intent").joinpath("weights"), find_source(), folder, seed=seed)
    found = tuning.run(task.examples, held_out=task.held_out, out_of_scope=task.out_of_scope)
    for name, figures in found.exam.items():
        known, unknown = figures["accuracy"], figures.get("oos_auroc", float("nan"))
        chosen = ", chosen" if name == found.chosen else ""
        bench.report.say(f"exam of {folder.name}, {name}: accuracy {known:.4f}, AUROC {unknown:.4f}{chosen}")
    if found.encoder is None:
        return Subject([found.trained], bench.vectors)
    return Subject([found.trained], VectorCache(open_encoder(found.encoder)))

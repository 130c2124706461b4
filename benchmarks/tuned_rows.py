"""Rows of bench_intents with fine-tuning: each set is tuned for anew, which takes minutes to hours."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import accuracy
from benchmarks.measured import Bench, Subject, Task
from benchmarks.targets import NAMES, WITH_FINE_TUNING
from benchmarks.tuned import tuned

TUNED_SETS = ("clinc150", "near", "banking77", "hwu64", "fewshot")
"""What can be asked for, in the order of the report; `near` is tuned for without the intents that it withholds."""


def sets_of(text: str) -> Sequence[str]:
    """Names with commas between them.

    Raises:
        ArgumentTypeError: one is none of `TUNED_SETS`.

    >>> sets_of("hwu64,clinc150")
    ('hwu64', 'clinc150')
    """
    names = tuple(filter(None, text.split(",")))
    unknown = sorted(set(names) - set(TUNED_SETS))
    if unknown:
        raise ArgumentTypeError(f"there is no {', '.join(unknown)} among {', '.join(TUNED_SETS)}")
    return names


def with_fine_tuning(bench: Bench, sets: Collection[str], folder: Path) -> None:
    """The rows of the sets that were asked for, one seed each.

    Args:
        bench: as for the rows without.
        sets: of `TUNED_SETS`.
        folder: for the tuned encoders.
    """
    bench = replace(bench, n_seeds=1, n_draws=1)
    for name in TUNED_SETS:
        if name in sets:
            _ROWS[name](bench, folder / name)


def _clinc150(bench: Bench, folder: Path) -> None:
    task = bench.task("clinc150", held_out="val", out_of_scope=True)
    subject = tuned(bench, task, 0, folder)
    bench.report.section("Fine-tuned: CLINC150 in scope and out of scope")
    found = accuracy.clinc_in_scope(bench, subject, task.rows, WITH_FINE_TUNING)
    bench.report.section("Fine-tuned: CLINC150 with its out-of-scope rows, wrong-agent risk")
    accuracy.stated_risk(bench, subject, found, WITH_FINE_TUNING)


def _near(bench: Bench, folder: Path) -> None:
    bench.report.section("Fine-tuned: near out of scope, intents of the set withheld")

    def fit(task: Task, seed: int) -> Subject:
        return tuned(bench, task, seed, folder / f"{len(task.examples)}-{seed}")

    for name, goal in WITH_FINE_TUNING.near_auroc.items():
        accuracy.near_out_of_scope(bench, name, goal, fit)


def _banking77(bench: Bench, folder: Path) -> None:
    _full(bench, "banking77", bench.task("banking77"), folder)


def _hwu64(bench: Bench, folder: Path) -> None:
    _full(bench, "hwu64", bench.task("hwu64", held_out="val"), folder)


def _full(bench: Bench, name: str, task: Task, folder: Path) -> None:
    subject = tuned(bench, task, 0, folder)
    bench.report.section(f"Fine-tuned: {NAMES[name]}, all of its train part")
    accuracy.read_right(bench, NAMES[name], subject, task.rows, WITH_FINE_TUNING.full[name])


def _fewshot(bench: Bench, folder: Path) -> None:
    for name, goal in WITH_FINE_TUNING.few.items():
        task = bench.task(name, "fewshot_10")
        subject = tuned(bench, task, 0, folder / name)
        bench.report.section(f"Fine-tuned: {NAMES[name]}, the published 10 examples an intent")
        accuracy.read_right(bench, NAMES[name], subject, task.rows, goal)


_ROWS = {"clinc150": _clinc150, "near": _near, "banking77": _banking77, "hwu64": _hwu64, "fewshot": _fewshot}

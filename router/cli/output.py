"""What commands print: results to stdout, all else to stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

import typer

FINDING, UNUSABLE, UNKNOWN = 1, 2, 3
"""Exit statuses of commands that look or judge: a finding; nothing that could be looked at; it cannot be told."""

_WIDEST = 10_000
_NEVER_BROKEN = 36
"""Characters of a first column that is kept on one line: an id has 32."""


def emit_json(result: dict[str, Any]) -> None:
    """Print a result as the one JSON object of stdout."""
    sys.stdout.write(json.dumps(result) + "\n")


def say(message: str) -> None:
    """Print a message for people to stderr."""
    from rich.console import Console

    Console(stderr=True).print(_printable(message), markup=False, highlight=False, soft_wrap=True)


def fail(message: str, code: int = 1) -> NoReturn:
    """Print what is wrong and what would be right, and end the command.

    Args:
        message: one or more lines.
        code: exit status; 2 means that the command line itself is wrong, or that there is nothing to look at.
    """
    say(f"error: {message}")
    raise typer.Exit(code)


def table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a result for people to stdout, every cell whole: names and ids in it are typed into the next command.

    On a terminal cells are broken where they have to be, and the first column last; elsewhere lines are as long as they
    get.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made, shown = Table(), Console()
    if not shown.is_terminal and "COLUMNS" not in os.environ:
        shown.width = _WIDEST
    for at, column in enumerate(columns):
        fits = at == 0 and max((len(row[0]) for row in rows), default=0) <= _NEVER_BROKEN
        made.add_column(column, overflow="fold", no_wrap=fits)
    for row in rows:
        made.add_row(*(Text(_printable(cell)) for cell in row))
    shown.print(made)


def store_url(option: str | None) -> str:
    """The store that the option names, or the one that the service takes without it."""
    from models.settings import DEFAULT_STORE

    return option or DEFAULT_STORE


def _printable(text: str) -> str:
    # names and arguments may hold bytes that are no text, or steer the terminal
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)

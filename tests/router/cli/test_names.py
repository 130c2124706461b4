from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from router.cli.main import app

STORE = "sqlite:///{folder}/store.db"
GIVEN = {
    "evaluate policy": ["--log", STORE, "--policy", "{folder}/policy.yaml"],
    "feedback export": ["{folder}/log.jsonl", "--store", STORE],
    "keys create": ["web", "--store", STORE],
    "reviews list": ["--store", STORE],
    "route": ["help me"],
}
"""What each command with a namespace needs beside it."""

WRONG = ["", "a b", "a//b", "/", "x" * 201, "café"]


def with_option(option: str) -> set[str]:
    """Names of all commands that take an option."""
    found = set()

    def look(name: str, command: Any) -> None:
        for word, inner in getattr(command, "commands", {}).items():
            look(f"{name} {word}".strip(), inner)
        if any(option in parameter.opts for parameter in command.params):
            found.add(name)

    look("", typer.main.get_command(app))
    return found


def invoke(folder: Path, name: str, *more: str) -> tuple[int, str, str]:
    given = [each.replace("{folder}", str(folder)) for each in GIVEN[name]]
    result = CliRunner().invoke(app, [*name.split(), *given, *more], env={"COLUMNS": "400"})
    return result.exit_code, result.stdout, result.stderr


def test_all_commands_with_a_namespace_are_looked_at() -> None:
    assert with_option("--namespace") == set(GIVEN)


@pytest.mark.parametrize("namespace", WRONG)
@pytest.mark.parametrize("name", GIVEN)
def test_a_namespace_that_can_never_be_is_refused_before_anything_is_opened(
    tmp_path: Path, name: str, namespace: str
) -> None:
    code, out, errors = invoke(tmp_path, name, "--namespace", namespace)
    assert (code, out) == (2, "")
    assert "namespace" in errors
    assert "such as prod/commerce" in errors or "200" in errors
    assert list(tmp_path.iterdir()) == []


def test_neither_is_an_intent_with_a_line_break(tmp_path: Path) -> None:
    code, _, errors = invoke(tmp_path, "reviews list", "--intent", "a\nb")
    assert code == 2
    assert "--intent" in errors
    assert "is no name of an intent" in errors

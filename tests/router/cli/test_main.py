from __future__ import annotations

import resource
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from router.cli.main import app
from tests.service.server import run

COMMANDS = [
    "", "serve", "route", "trace", "cards", "cards lint", "keys", "keys create", "keys list", "keys revoke",
    "evaluate", "evaluate routing", "store", "store migrate", "backup", "restore",
]  # fmt: skip
HEAVY = ["numpy", "faiss", "onnxruntime", "sklearn", "sqlalchemy", "alembic", "starlette", "uvicorn", "pydantic"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert (result.exit_code, "Usage:" in result.stdout) == (0, True)


def test_the_installed_script_explains_itself_quickly() -> None:
    """In processor time, which other work on the machine does not lengthen."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in ("", "serve", "evaluate routing"):
        code, out, errors = run(*command.split(), "--help")
        assert (code, "Usage:" in out, errors) == (0, True, "")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3 < 1.5


def test_help_loads_nothing_heavy() -> None:
    code = f"import router.cli.main, sys; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_without_a_command_it_explains_itself() -> None:
    result = CliRunner().invoke(app, [])
    assert "Usage:" in result.output
    assert all(command.split()[0] in result.output for command in COMMANDS if command)


def test_an_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(app, ["fly"])
    assert (result.exit_code, "fly" in result.stderr) == (2, True)

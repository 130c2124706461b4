"""The console script, started where other programs' modules have our names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(sys.executable).parent / "agency-router"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose modules end the process of whoever imports them."""
    for name in ("models", "feedback"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the wrong {name}')\n")
    for name in ("router", "intent"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('the wrong {name}')\n")
    return tmp_path


def routed(folder: Path, *arguments: str) -> Any:
    """What `agency-router route … --json` answers in a folder; its stdout is one JSON object."""
    # the search path of whoever runs the tests is not that of a shell
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(SCRIPT), "route", *arguments, "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_script_passes_over_modules_of_the_working_folder(hostile: Path) -> None:
    answer = routed(hostile, "please cancel my order for the sofa")

    assert answer["target"]["agent_id"] == "orders_desk"


def test_a_command_without_a_server_leaves_no_file_behind(tmp_path: Path) -> None:
    routed(tmp_path, "我还有多少天年假")

    assert list(tmp_path.iterdir()) == []

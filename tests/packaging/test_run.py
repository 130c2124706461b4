"""The script `run`, with stand-ins for Python: when it makes an environment, when it says why it cannot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Answers what `run` asks of a Python, and makes environments whose tools tell how they were called.
PYTHON = """#!/bin/sh
case "$*" in
*version_info*) exit {is_old} ;;
*platform*) echo "python3 is 3.10.4"; exit ;;
*"import venv"*) exit {lacks_venv} ;;
*"-m venv --clear"*)
    mkdir -p "$4/bin"
    : >"$4/pyvenv.cfg"
    cp "$0" "$4/bin/python"
    printf '#!/bin/sh\\necho "$PWD: $*"\\n' >"$4/bin/agency-router"
    cp "$4/bin/agency-router" "$4/bin/ruff"
    chmod +x "$4"/bin/*
    echo made ;;
*"-m pip install"*) echo "pip $*"; exit {pip_fails} ;;
*"-m pytest"*) echo "$PWD: $*" ;;
esac
"""
TOOLS = ("dirname", "cksum", "cat", "ls", "rm", "sh", "mkdir", "cp", "chmod")


class Clone:
    """A clone with nothing in it but the script, and a machine with nothing on it but a few tools."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"
        self.elsewhere = folder / "elsewhere"
        self.bin = folder / "bin"
        for each in (self.root, self.elsewhere, self.bin):
            each.mkdir()
        shutil.copy(ROOT / "run", self.root)
        (self.root / "pyproject.toml").write_text("[project]\n")
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)

    def has_python(self, *, is_old: bool = False, lacks_venv: bool = False, pip_fails: bool = False) -> None:
        python = self.bin / "python3"
        python.write_text(PYTHON.format(is_old=int(is_old), lacks_venv=int(lacks_venv), pip_fails=int(pip_fails)))
        python.chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "run"), *arguments],
            cwd=self.elsewhere,
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_command_runs_in_the_folder_of_the_caller_with_stdout_to_itself(clone: Clone) -> None:
    clone.has_python()

    done = clone.run("route", "two words", "--json")

    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{clone.elsewhere}: route two words --json\n"
    assert "made" in done.stderr


def test_an_environment_that_fits_is_used_again(clone: Clone) -> None:
    clone.has_python()
    clone.run("serve")

    assert clone.run("serve").stderr == ""


def test_changed_dependencies_are_installed(clone: Clone) -> None:
    clone.has_python()
    clone.run("serve")
    (clone.root / "pyproject.toml").write_text("[project]\ndependencies = []\n")

    done = clone.run("serve")

    assert "pip" in done.stderr
    assert "made" not in done.stderr


def test_tests_run_in_the_clone_with_the_extra_dev(clone: Clone) -> None:
    clone.has_python()
    clone.run("serve")

    done = clone.run("test", "-k", "word")

    assert f"--editable {clone.root}[dev]" in done.stderr
    assert done.stdout == f"{clone.root}: -m pytest -k word\n"
    assert clone.run("serve").stderr == "", "an environment for tests serves as well"


def test_a_tool_of_the_developers_runs_in_the_clone(clone: Clone) -> None:
    clone.has_python()

    assert clone.run("dev", "ruff", "check").stdout == f"{clone.root}: check\n"


def test_the_environment_may_be_elsewhere(clone: Clone) -> None:
    clone.has_python()

    assert clone.run("serve", VENV="venvs/ours").returncode == 0
    assert (clone.elsewhere / "venvs/ours/pyvenv.cfg").exists()
    assert not (clone.root / ".venv").exists()


def test_a_folder_that_is_no_environment_is_left_alone(clone: Clone) -> None:
    clone.has_python()
    precious = clone.elsewhere / "precious"
    precious.touch()

    done = clone.run("serve", VENV=str(clone.elsewhere))

    assert done.returncode == 1
    assert "is not a virtual environment" in done.stderr
    assert precious.exists()


def test_a_failed_installation_is_tried_again(clone: Clone) -> None:
    clone.has_python(pip_fails=True)
    assert clone.run("serve").returncode == 1
    clone.has_python()
    shutil.copy(clone.bin / "python3", clone.root / ".venv/bin/python")

    done = clone.run("serve")

    assert done.returncode == 0
    assert "pip" in done.stderr


def test_an_old_python_is_named(clone: Clone) -> None:
    clone.has_python(is_old=True)

    done = clone.run("serve")

    assert done.returncode == 1
    assert "Python 3.11 or newer is needed, but python3 is 3.10.4" in done.stderr


def test_a_missing_python_is_told(clone: Clone) -> None:
    assert "there is no python3" in clone.run("serve").stderr


def test_a_missing_venv_is_told_with_its_package(clone: Clone) -> None:
    clone.has_python(lacks_venv=True)

    done = clone.run("serve")

    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from router.cli import keys
from router.cli.store import backup, restore
from tests.router.stores.samples import url_of

app = typer.Typer()
app.add_typer(keys.app, name="keys")
app.command()(backup)
app.command()(restore)


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = url_of(tmp_path / "store.db")
    assert invoke("keys", "create", "shop", "--store", url)[0] == 0
    return url


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def names(url: str) -> list[str]:
    return [key["name"] for key in json.loads(invoke("keys", "list", "--store", url, "--json")[1])["keys"]]


def test_a_backup_can_be_restored(url: str, tmp_path: Path) -> None:
    out = tmp_path / "copy.db"
    code, text, errors = invoke("backup", str(out), "--store", url, "--json")
    assert (code, errors) == (0, "")
    none: dict[str, Any] = {"models": {"folder": None, "digests": [], "missing": []}}
    assert json.loads(text) == {"store": url, "out": str(out), "n_bytes": out.stat().st_size, **none}
    invoke("keys", "create", "later", "--store", url)
    assert names(url) == ["shop", "later"]
    code, text, errors = invoke("restore", str(out), "--store", url, "--json")
    assert (code, errors, json.loads(text)) == (0, "", {"store": url, "file": str(out), **none})
    assert names(url) == ["shop"]


def test_for_people_all_is_said_on_stderr(url: str, tmp_path: Path) -> None:
    out = str(tmp_path / "copy.db")
    code, text, errors = invoke("backup", out, "--store", url)
    assert (code, text) == (0, "")
    assert "copied" in errors
    code, text, errors = invoke("restore", out, "--store", url)
    assert (code, text) == (0, "")
    assert "restored" in errors


def test_an_existing_file_is_replaced_only_by_force(url: str, tmp_path: Path) -> None:
    out = str(tmp_path / "copy.db")
    assert invoke("backup", out, "--store", url)[0] == 0
    code, text, errors = invoke("backup", out, "--store", url, "--json")
    assert (code, text) == (1, "")
    assert "exists" in errors
    assert invoke("backup", out, "--store", url, "--force")[0] == 0


def test_what_is_no_backup_is_not_restored(url: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database " * 500)
    for file in ("notes.txt", "missing.db"):
        code, text, errors = invoke("restore", str(tmp_path / file), "--store", url, "--json")
        assert (code, text) == (1, "")
        assert file in errors
    assert names(url) == ["shop"]

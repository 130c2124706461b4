"""Commands that only look: they change no store, and say so of one of another schema."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from router.cli.main import app
from router.stores.open import open_store
from router.stores.tables import REVISION
from tests.router.stores.make_store_0001 import STORE_0001
from tests.router.stores.samples import card, decision, event

LOOKS = (
    "replay d1",
    "replay --all",
    "replay --chain",
    "trace t1",
    "failures",
    "reviews list",
    "keys list",
    "feedback export {out}",
    "subjects export shop --json",
    "evaluate policy --policy {policy}",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    return tmp_path


def invoke(look: str, folder: Path) -> tuple[int, str, str]:
    words = [word.format(out=folder / "out.jsonl", policy=folder / "policy.yaml") for word in look.split()]
    option = "--log" if words[0] in ("failures", "evaluate") else "--store"
    return run([*words, option, f"sqlite:///{folder}/store/store.db"])


def run(arguments: Sequence[str]) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "300"})
    return result.exit_code, result.stdout, result.stderr


def seen(folder: Path) -> dict[str, str]:
    """What lies in the store's folder, and a digest of each."""
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in (folder / "store").iterdir()}


@pytest.mark.parametrize("look", LOOKS)
def test_a_store_of_an_older_release_stays_as_it_is_and_what_to_do_is_said(folder: Path, look: str) -> None:
    shutil.copy(STORE_0001, folder / "store" / "store.db")
    before = seen(folder)
    code, out, errors = invoke(look, folder)
    assert (code, out) == (2, "")
    assert f"has the schema '0001', this release reads '{REVISION}'" in errors
    assert "`agency-router store migrate`" in errors
    assert seen(folder) == before


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_changes_nothing_in_the_store_and_lays_nothing_beside_it(folder: Path, look: str) -> None:
    async def fill() -> None:
        async with open_store(f"sqlite:///{folder}/store/store.db") as store:
            await store.cards.put_card(card("orders"))
            await store.records.append([decision("d1"), event(trace_id="t1")])

    asyncio.run(fill())
    before = seen(folder)
    assert invoke(look, folder)[0] in (0, 3)
    assert seen(folder) == before


def test_what_migrates_a_store_makes_it_one_that_can_be_looked_into(folder: Path) -> None:
    shutil.copy(STORE_0001, folder / "store" / "store.db")
    url = f"sqlite:///{folder}/store/store.db"
    code, out, _ = run(["store", "migrate", "--store", url, "--json"])
    assert (code, json.loads(out)) == (0, {"store": url, "before": "0001", "after": REVISION})
    code, out, errors = run(["store", "migrate", "--store", url])
    assert (code, out, "already" in errors) == (0, "", True)
    code, _, errors = invoke("replay --all", folder)
    assert (code, "1 records have no seal: written before there were seals (d1)" in errors) == (0, True)
    assert invoke("trace t1", folder)[0] == 0


def test_no_store_is_made_to_be_migrated(folder: Path) -> None:
    code, out, errors = run(["store", "migrate", "--store", f"sqlite:///{folder}/none.db", "--json"])
    assert (code, out, "there is no store" in errors) == (1, "", True)
    assert not (folder / "none.db").exists()

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from router.cli.main import app
from router.stores.open import open_store
from tests.router.replay_history import altered, make_history
from tests.router.stores.samples import decision


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("history")
    return folder / "store.db", make_history(folder)


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["replay", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def test_an_equal_decision_ends_with_0_and_its_parts(made: tuple[Path, dict[str, str]]) -> None:
    store, ids = made
    code, out, errors = invoke(ids["selected"], "--store", f"sqlite:///{store}")
    assert code == 0
    assert "equal" in errors
    for part in ("record", "cards", "ranking", "plan"):
        assert part in out
    code, out, errors = invoke(ids["selected"], "--store", f"sqlite:///{store}", "--json")
    assert (code, errors, out.count("\n")) == (0, "", 1)
    assert json.loads(out)["verdict"] == "equal"


def test_what_was_read_with_another_encoder_cannot_be_replayed(made: tuple[Path, dict[str, str]]) -> None:
    store, ids = made
    code, out, _ = invoke(ids["read"], "--store", f"sqlite:///{store}", "--json")
    assert (code, json.loads(out)["verdict"]) == (3, "not_replayable")
    assert "the encoder dummy-64, at hand is" in json.loads(out)["detail"]
    # given intents need none
    code, out, _ = invoke(ids["selected"], "--store", f"sqlite:///{store}", "--json")
    assert {"encoder", "index"}.isdisjoint(json.loads(out)["checked"])


def test_an_altered_record_ends_with_1_and_the_part(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    store, ids = made
    copy = tmp_path / "store.db"
    shutil.copy(store, copy)
    altered(copy, "UPDATE decisions SET inputs = replace(inputs, '\"seed\":', '\"seed\":1') WHERE 1")
    code, _, errors = invoke(ids["selected"], "--store", f"sqlite:///{copy}")
    assert code == 1
    assert "differs in draws" in errors
    code, out, errors = invoke("--chain", "--store", f"sqlite:///{copy}")
    assert (code, out) == (1, "")
    assert "the chain breaks at seal 1" in errors


def test_the_chain_is_followed_to_its_end(made: tuple[Path, dict[str, str]]) -> None:
    store, _ = made
    code, out, _ = invoke("--chain", "--store", f"sqlite:///{store}", "--json")
    told = json.loads(out)
    assert (code, told["broken"]) == (0, None)
    code, _, errors = invoke("--chain", "--store", f"sqlite:///{store}")
    assert f"{told['n_seals']} seals" in errors
    assert told["head"] in errors.replace("\n", "")


def test_records_without_a_seal_are_told_and_only_those_that_ought_to_have_one_are_a_finding(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"

    async def make() -> None:
        async with open_store(url) as store:
            await store.records.append([decision(decision_id=name) for name in ("old", "new")])

    asyncio.run(make())
    altered(tmp_path / "store.db", "DELETE FROM seals")
    altered(tmp_path / "store.db", "DELETE FROM sqlite_sequence WHERE name = 'seals'")
    code, out, errors = invoke("--all", "--store", url)
    assert (code, "2 records have no seal: written before there were seals (new, old)" in errors) == (0, True)
    altered(tmp_path / "store.db", "UPDATE decisions SET inputs = '{\"digests\": {}}' WHERE decision_id = 'new'")
    code, out, errors = invoke("--all", "--store", url)
    assert (code, "1 records have no seal, and ought to have one" in errors) == (1, True)
    code, out, _ = invoke("--all", "--store", url, "--json")
    told = json.loads(out)
    assert (code, told["n"], told["verdicts"]) == (1, 1, {"differs": 1})
    assert told["unsealed"] == {"n_before_seals": 1, "n_lost": 1, "examples": ["old"]}


def test_erased_records_are_counted_and_are_no_reason_to_fail(
    made: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    store, ids = made
    copy, url = tmp_path / "store.db", f"sqlite:///{tmp_path}/store.db"
    shutil.copy(store, copy)
    altered(copy, "UPDATE seals SET salt = NULL, erased_at = 5 WHERE decision_id <> ?", ids["selected"])
    altered(copy, "DELETE FROM decisions WHERE decision_id <> ?", ids["selected"])
    code, out, _ = invoke("--all", "--store", url, "--json")
    n_erased = json.loads(out)["chain"]["n_seals"] - 1
    assert (n_erased >= len(ids) - 1, code, json.loads(out)["verdicts"]) == (True, 0, {"equal": 1, "erased": n_erased})
    code, _, errors = invoke("--all", "--store", url)
    assert (code, f"{n_erased} records were erased, or dropped at their age" in errors) == (0, True)
    code, _, errors = invoke(ids["read"], "--store", url)
    assert (code, errors.startswith(f"{ids['read']}: erased, or dropped at its age, at 1970-")) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a DECISION_ID"),
        (("d1", "--all"), "only one of DECISION_ID, --all and --chain"),
        (("--all", "--chain"), "only one of DECISION_ID, --all and --chain"),
        (("d1", "--limit", "3"), "--limit goes with --all"),
    ],
)
def test_a_wrong_command_line_says_what_would_be_right(arguments: tuple[str, ...], said: str) -> None:
    code, out, errors = invoke(*arguments)
    assert (code, out) == (2, "")
    assert said in errors


def test_a_folder_that_holds_no_model_is_named(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    store, ids = made
    code, out, errors = invoke(ids["read"], "--store", f"sqlite:///{store}", "--model", str(tmp_path))
    assert (code, out) == (2, "")
    assert "--model" in errors
    assert "is no model folder" in errors


def test_a_store_or_a_decision_that_is_not_there_is_named(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    code, _, errors = invoke("d1", "--store", f"sqlite:///{tmp_path}/none.db")
    assert code == 2
    assert "there is no store" in errors
    code, _, errors = invoke("d1", "--store", f"sqlite:///{made[0]}")
    assert code == 2
    assert "there is no decision 'd1'" in errors

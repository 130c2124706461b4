from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.events import Row
from router.cli.main import app
from router.stores.open import open_store
from tests.router.promotions import decided, good_heads, model_folder, shadowed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("models") / "good", good_heads())


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/store.db"
    write(url, [decided("d-1")])
    return url


def write(url: str, rows: Sequence[Row]) -> None:
    async def append() -> None:
        async with open_store(url) as store:
            await store.records.append(rows)

    asyncio.run(append())


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "250"})
    return result.exit_code, result.stdout, result.stderr


def test_a_step_is_one_json_object_with_its_evidence(url: str, folder: Path) -> None:
    code, out, errors = invoke("promote", str(folder), "--store", url, "--json")
    assert (code, errors, out.count("\n")) == (0, "", 1)
    told = json.loads(out)
    assert (told["moved"], told["before"], told["stage"]) == (True, None, "shadow")
    assert [(check["name"], check["is_met"]) for check in told["checks"]] == [
        ("folder", True),
        ("encoder", True),
        ("exam", True),
    ]
    assert (told["promotion"]["promotion_id"], told["promotion"]["folder"]) == (1, str(folder))


def test_a_refusal_ends_with_3_and_says_what_is_missing_and_what_to_do(url: str, folder: Path) -> None:
    assert invoke("promote", str(folder), "--store", url)[0] == 0
    code, out, errors = invoke("promote", str(folder), "--store", url, "--json")
    assert (code, errors) == (3, "")
    told = json.loads(out)
    assert (told["moved"], told["before"], told["stage"]) == (False, "shadow", "shadow")
    assert [check["name"] for check in told["checks"]] == ["too_few_outcomes", "baseline"]
    code, out, errors = invoke("promote", str(folder), "--store", url)
    assert code == 3
    for words in ("too_few_outcomes", "0 outcomes can be judged, 3000 are needed", "post outcomes to /feedback"):
        assert words in out
    assert "refused, not enough evidence: it stays in the stage shadow" in errors


def test_with_all_evidence_it_moves_on(url: str, folder: Path) -> None:
    invoke("promote", str(folder), "--store", url)
    write(url, shadowed(1, 3200, other=0.04, worth_of_other=0.5, tried=0.5, seed=6))
    code, out, errors = invoke("promote", str(folder), "--store", url)
    assert code == 0
    assert "better by" in out
    assert "shadow -> canary" in errors


def test_rolling_back_says_what_has_changed_and_is_told_in_the_trail(url: str, folder: Path) -> None:
    code, _, errors = invoke("rollback", "--store", url)
    assert (code, "nothing is on its way" in errors) == (3, True)
    invoke("promote", str(folder), "--store", url)
    code, out, _ = invoke("rollback", "--store", url, "--reason", "no longer wanted", "--json")
    (change,) = json.loads(out)["changes"]
    assert (code, change["before"], change["promotion"]["stage"]) == (0, "shadow", "ended")
    invoke("promote", str(folder), "--store", url)
    code, _, errors = invoke("rollback", "--store", url)
    assert (code, "shadow -> ended" in errors) == (0, True)

    async def trail() -> list[tuple[str | None, str]]:
        async with open_store(url) as store:
            events = await store.records.events(0, 2**53, 0, 100)
            return [(event.decision, json.loads(event.payload)["why"]) for _, event in events]

    told = asyncio.run(trail())
    assert [stage for stage, _ in told] == ["shadow", "ended", "shadow", "ended"]
    assert [why for stage, why in told if stage == "ended"] == ["no longer wanted", "by hand"]


def test_folders_and_stores_that_are_none_are_told(url: str, folder: Path, tmp_path: Path) -> None:
    code, out, errors = invoke("promote", str(tmp_path / "none"), "--store", url, "--json")
    assert (code, out) == (2, "")
    assert "manifest.json cannot be read" in errors
    missing = f"sqlite:///{tmp_path}/none.db"
    for command in (["promote", str(folder)], ["rollback"]):
        code, out, errors = invoke(*command, "--store", missing, "--json")
        assert (code, out) == (2, "")
        assert "there is no store" in errors
    assert not (tmp_path / "none.db").exists()


def test_before_the_first_decision_the_encoder_is_the_one_that_would_serve(tmp_path: Path, folder: Path) -> None:
    url = f"sqlite:///{tmp_path}/fresh.db"
    write(url, [])
    code, out, _ = invoke("promote", str(folder), "--store", url, "--json")
    assert code == 3
    assert [check["name"] for check in json.loads(out)["checks"] if not check["is_met"]] == ["encoder"]

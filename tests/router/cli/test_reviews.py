from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models.events import ReviewRow
from router.cli.main import app
from router.stores.open import open_store
from tests.builders import capability, card


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    asyncio.run(fill(url))
    return url


async def fill(url: str) -> None:
    async with open_store(url) as store:
        await store.cards.put_card(card("a", capability("refunds")))
        row = ReviewRow("r1", "d1", "web", "default", "my money [red]\x1b[31m", "orders", "refunds", 1000)
        unserved = row._replace(review_id="r2", decision_id="d2", correct_intent="nothing", text="my parcel")
        await store.records.append([row, unserved])


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["reviews", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def states(url: str, state: str = "any") -> dict[str, Any]:
    told = json.loads(invoke("list", "--state", state, "--store", url, "--json")[1])
    return {each["review_id"]: each["state"] for each in told["reviews"]}


def test_corrections_are_shown_as_one_json_object(url: str) -> None:
    code, out, errors = invoke("list", "--store", url, "--json")
    assert (code, errors, out.count("\n")) == (0, "", 1)
    told = json.loads(out)
    assert [each["correct_intent"] for each in told["reviews"]] == ["refunds", "nothing"]
    assert (told["n_waiting"], told["n_refused"], told["next"]) == (2, 0, None)


def test_people_see_a_table_that_cannot_steer_their_terminal(url: str) -> None:
    code, out, errors = invoke("list", "--limit", "1", "--store", url)
    assert code == 0
    assert "my money [red]\\x1b[31m" in out
    assert "\x1b" not in out
    assert errors == "2 wait, 0 were not kept as too many of their caller waited; read on with --after r1\n"


def test_a_correction_is_accepted_once_and_for_all(url: str) -> None:
    code, out, _ = invoke("accept", "r1", "--store", url, "--json")
    assert (code, json.loads(out)["state"]) == (0, "accepted")
    assert invoke("accept", "r1", "--store", url)[0] == 0
    code, out, errors = invoke("reject", "r1", "--store", url)
    assert (code, out, errors) == (1, "", "error: the correction 'r1' is accepted already, which stays\n")
    assert states(url) == {"r1": "accepted", "r2": "waiting"}


def test_what_no_card_serves_is_rejected_only(url: str) -> None:
    code, _, errors = invoke("accept", "r2", "--store", url)
    assert code == 1
    assert "no card serves the intent 'nothing' for namespace 'default'" in errors
    assert invoke("reject", "r2", "--store", url)[0] == 0
    assert states(url, "rejected") == {"r2": "rejected"}


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("list", "--state", "open"), 2, "use waiting, accepted, rejected or any"),
        (("accept", "r9"), 1, "there is no correction 'r9'"),
    ],
)
def test_what_is_wrong_is_told(url: str, arguments: tuple[str, ...], status: int, told: str) -> None:
    code, out, errors = invoke(*arguments, "--store", url)
    assert (code, out) == (status, "")
    assert told in errors


def test_no_store_is_made_for_a_look(tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    code, _, errors = invoke("list", "--store", f"sqlite:///{missing}")
    assert (code, missing.exists()) == (2, False)
    assert "there is no store" in errors

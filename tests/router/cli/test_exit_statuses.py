"""What each command that looks or judges ends with: the table of the page, row by row and status by status."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from router.cli.main import app
from router.stores.open import open_store
from tests.docs.pages import named, page, rows, sections
from tests.router.cli.test_evaluate_policy import BETTER, WORSE, filled
from tests.router.policy_log import World
from tests.router.promotions import decided, good_heads, model_folder
from tests.router.replay_history import altered, make_history

SHOP = Path(__file__).parents[2] / "data" / "shop"
STATUSES = (0, 1, 3)
ENV = {"COLUMNS": "200", "AGENCY_ROUTER_CLASSIFIER": "false"}
TOLD = [row for row in rows(sections(page("cli.md"))["Exit status"]) if row[0].startswith("`")]
JSON = '{"text": "%s", "intent": "%s"}\n'
Commands = Mapping[str, Mapping[int, Sequence[str]]]


def cells() -> list[tuple[str, int]]:
    """(command, status) of every cell that says something, and 2 of every command."""
    return [
        (command, status)
        for row in TOLD
        for command in named(f"| {row[0]} |")
        for status, cell in [*zip(STATUSES, row[1:], strict=True), (2, "always")]
        if cell
    ]


def invoke(arguments: Sequence[str]) -> int:
    return CliRunner().invoke(app, list(arguments), env=ENV).exit_code


def replays(folder: Path) -> Commands:
    ids = make_history(folder)
    good, bad = folder / "store.db", folder / "bad.db"
    shutil.copy(good, bad)
    altered(bad, "UPDATE decisions SET inputs = replace(inputs, '\"seed\":', '\"seed\":1') WHERE 1")
    equal, alone = folder / "equal.db", ["--store", f"sqlite:///{folder}/equal.db"]
    shutil.copy(good, equal)
    # another encoder is at hand: what was read cannot be replayed; here it goes in the way in which age takes it
    altered(equal, "UPDATE seals SET salt = NULL, erased_at = 5 WHERE decision_id <> ?", ids["selected"])
    altered(equal, "DELETE FROM decisions WHERE decision_id <> ?", ids["selected"])
    whole, spoilt, none = (["--store", f"sqlite:///{path}"] for path in (good, bad, folder / "none.db"))
    one = ids["selected"]
    return {
        "replay DECISION_ID": {
            0: ["replay", one, *whole],
            1: ["replay", one, *spoilt],
            2: ["replay", "never", *whole],
            3: ["replay", ids["read"], *whole],
        },
        "replay --all": {
            0: ["replay", "--all", *alone],
            1: ["replay", "--all", *spoilt],
            2: ["replay", "--all", *none],
            3: ["replay", "--all", *whole],
        },
        "replay --chain": {
            0: ["replay", "--chain", *whole],
            1: ["replay", "--chain", *spoilt],
            2: ["replay", "--chain", *none],
        },
    }


def judgements(folder: Path) -> Commands:
    logged = filled(folder / "log.db", World(floor=0.4, cost_weight=0.3).rows(1200))
    thin = filled(folder / "thin.db", World(mode="exploit", floor=0.0, cost_weight=0.9).rows(300))
    for name, text in (("better", BETTER), ("worse", WORSE)):
        (folder / f"{name}.yaml").write_text(text)
    better, worse = (["--policy", str(folder / f"{name}.yaml")] for name in ("better", "worse"))
    twin = "{intent: %s, description: Does it, examples: [do the one thing], input_schema: none, output_schema: none}"
    twins = ", ".join(twin % intent for intent in ("one", "two"))
    (folder / "twins.yaml").write_text(f"agent_id: a\nendpoint: http://a\ncapabilities: [{twins}]\n")
    model, store = str(model_folder(folder / "model", good_heads())), f"sqlite:///{folder}/promotions.db"
    told = ["--store", store]

    async def fill() -> None:
        async with open_store(store) as opened:
            await opened.records.append([decided("d-1")])

    asyncio.run(fill())
    return {
        "cards lint": {
            0: ["cards", "lint", str(SHOP / "cards.yaml"), "--policy", str(SHOP / "policy.yaml")],
            1: ["cards", "lint", str(folder / "twins.yaml")],
            2: ["cards", "lint", str(folder / "none.yaml")],
        },
        "evaluate policy": {
            0: ["evaluate", "policy", "--log", logged, *better],
            1: ["evaluate", "policy", "--log", logged, *worse],
            2: ["evaluate", "policy", "--log", logged, "--policy", str(folder / "none.yaml")],
            3: ["evaluate", "policy", "--log", thin, *better],
        },
        # in this order each finds what it needs
        "promote": {0: ["promote", model, *told], 2: ["promote", str(folder), *told], 3: ["promote", model, *told]},
        "rollback": {
            0: ["rollback", *told],
            2: ["rollback", "--store", f"sqlite:///{folder}/none.db"],
            3: ["rollback", *told],
        },
    }


def reports(folder: Path) -> Commands:
    store, none = (["--store", f"sqlite:///{folder}/{name}.db"] for name in ("store", "none"))
    labelled, wanted = folder / "labelled.jsonl", folder / "requests.jsonl"
    labelled.write_text("".join(JSON % (f"{word} number {n}", word) for word in ("buy", "sell") for n in range(6)))
    wanted.write_text(json.dumps({"request": {"intent": "x"}, "expect": {"action": "invoke"}}) + "\n")
    out = str(folder / "out.jsonl")
    shop = ["--cards", str(SHOP / "cards.yaml"), "--policy", str(SHOP / "policy.yaml")]
    return {
        "evaluate routing": {
            0: ["evaluate", "routing", "--requests", str(wanted), *shop],
            2: ["evaluate", "routing", "--requests", str(folder / "none.jsonl"), *shop],
        },
        "evaluate intents": {
            0: ["evaluate", "intents", "--train", str(labelled), "--test", str(labelled)],
            2: ["evaluate", "intents", "--train", str(labelled), "--test", str(folder / "none.jsonl")],
        },
        "failures": {0: ["failures", "--log", store[1]], 2: ["failures", "--log", none[1]]},
        "trace": {0: ["trace", "t-1", *store], 2: ["trace", "never", *store]},
        "reviews list": {0: ["reviews", "list", *store], 2: ["reviews", "list", *none]},
        "keys list": {0: ["keys", "list", *store], 2: ["keys", "list", *none]},
        "feedback export": {0: ["feedback", "export", out, *store], 2: ["feedback", "export", f"{out}2", *none]},
        "subjects export": {0: ["subjects", "export", "s", "--json", *store], 2: ["subjects", "export", "s", *none]},
    }


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    folder = tmp_path_factory.mktemp("statuses")

    async def empty() -> None:
        async with open_store(f"sqlite:///{folder}/empty.db"):
            pass

    asyncio.run(empty())
    made = {**replays(folder), **judgements(folder), **reports(folder)}
    altered(folder / "store.db", "UPDATE events SET trace_id = 't-1'")
    return made


def test_every_command_that_is_told_can_be_asked_here_and_no_other(commands: Commands) -> None:
    assert set(cells()) == {(name, status) for name, found in commands.items() for status in found}


@pytest.mark.parametrize(("command", "status"), [pytest.param(*cell, id=f"{cell[0]} {cell[1]}") for cell in cells()])
def test_a_command_ends_with_the_status_that_the_page_tells(commands: Commands, command: str, status: int) -> None:
    assert invoke(commands[command][status]) == status

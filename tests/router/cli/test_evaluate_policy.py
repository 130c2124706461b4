from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models.events import DecisionRow, Row
from router.cli.main import app
from router.policy_file import parse_policy
from router.stores.database import Database
from router.stores.generations import Generation, SqlGenerations
from router.stores.open import open_store
from router.stores.sqlite import reader_engine, writer_engine
from tests.builders import capability, card
from tests.router.policy_log import START_MS, SUCCESS, World

EXPLORE = "learning: {mode: explore, floor: 0.4}\ndefaults: {cost_weights: {auto: 0.3}}\n"
BETTER = "learning: {mode: explore, floor: 0.4}\ndefaults: {intents: {refund: {agents: [dear]}}}\n"
WORSE = "learning: {mode: explore, floor: 0.4}\ndefaults: {intents: {refund: {agents: [nobody]}}}\n"


def filled(path: Path, rows: Iterable[Row]) -> str:
    """A store with cards and rows; its URL."""
    url = f"sqlite:///{path}"

    async def fill() -> None:
        async with open_store(url) as store:
            for name in ("cheap", "dear"):
                await store.cards.put_card(card(name, *(capability(intent) for intent in SUCCESS)))
            await store.records.append(list(rows))

    asyncio.run(fill())
    return url


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return filled(tmp_path_factory.mktemp("lab") / "store.db", World(floor=0.4, cost_weight=0.3).rows(1200))


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(text: str) -> str:
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        return str(path)

    return written


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["evaluate", "policy", *arguments], env={"COLUMNS": "240"})
    return result.exit_code, result.stdout, result.stderr


def test_a_better_policy_ends_with_0_and_one_json_object(url: str, write: Any) -> None:
    policy = write(BETTER)
    code, out, _ = invoke("--log", url, "--policy", policy, "--json")
    assert (code, out.count("\n")) == (0, 1)
    told = json.loads(out)
    assert (told["verdict"], told["exit_code"], told["log"], told["policy"]) == ("better", 0, url, policy)
    assert (told["n_read"], told["n_outcomes"], told["choices_of"]) == (1200, 1200, "router")
    assert told["difference"]["success"]["low95"] > 0
    assert len(told["flips"]["examples"]) == 10
    # the newest come first
    times = [each["at_ms"] for each in told["flips"]["examples"]]
    assert times == sorted(times, reverse=True)


def test_a_worse_policy_ends_with_1(url: str, write: Any) -> None:
    code, out, _ = invoke("--log", url, "--policy", write(WORSE), "--json")
    assert (code, json.loads(out)["verdict"]) == (1, "worse")


def test_the_policy_of_the_log_ends_with_0_and_flips_nothing(url: str, write: Any) -> None:
    code, out, _ = invoke("--log", url, "--policy", write(EXPLORE), "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["flips"]["n"]) == (0, "same", 0)
    _, out, _ = invoke("--log", url, "--policy", write(EXPLORE))
    assert "0 (0 to 0)" in out
    assert "e-" not in out


def test_thin_support_ends_with_3_and_says_what_is_missing(tmp_path: Path, write: Any) -> None:
    thin = filled(tmp_path / "thin.db", World(mode="exploit", floor=0.0, cost_weight=0.9).rows(300))
    code, out, errors = invoke("--log", thin, "--policy", write(BETTER))
    assert code == 3
    assert "not known" in out
    assert "missing: untried_changes" in errors
    assert "learning.mode: explore" in errors
    assert "refused: the log does not hold the evidence" in errors
    code, out, _ = invoke("--log", thin, "--policy", write(BETTER), "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["new"]["success"]) == (3, "refused", None)


def test_people_get_tables(url: str, write: Any) -> None:
    code, out, errors = invoke("--log", url, "--policy", write(BETTER))
    assert code == 0
    for told in ("success", "cost_usd", "latency_ms", "cost_share", "effective sample size", "decisions that flip"):
        assert told in out
    for told in ("would be", "please help with my order", "cheap", "dear"):
        assert told in out
    assert "better: success is shown to rise" in errors
    assert "note: readings" in errors


def test_what_stands_in_a_request_does_not_steer_the_terminal(tmp_path: Path, write: Any) -> None:
    odd = World(floor=0.4, cost_weight=0.3, utterance="[red]\x1b[31m\n")
    code, out, _ = invoke("--log", filled(tmp_path / "odd.db", odd.rows(150)), "--policy", write(BETTER))
    assert code in (0, 3)
    assert "\x1b" not in out
    assert "[red]" in out


def test_callers_choices_tell_what_the_router_would_have_gained(tmp_path: Path, write: Any) -> None:
    share = {"cheap": 0.8, "dear": 0.2}
    shadow = World(cost_weight=0.0, floor=0.1, caller_share={"refund": share, "track": share})
    log = filled(tmp_path / "shadow.db", shadow.rows(1000))
    policy = write("learning: {mode: explore, floor: 0.1}\ndefaults: {cost_weights: {auto: 0.0}}\n")
    code, out, errors = invoke("--log", log, "--policy", policy)
    assert code == 0
    assert "callers" in out
    assert "better: with the router the callers would have gained +0." in errors
    assert "propensities are estimated from how often they chose each agent" in errors
    code, out, _ = invoke("--log", log, "--policy", policy, "--choices", "router", "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["n_skipped"]) == (3, "refused", {"of_callers": 1000})


def test_only_a_namespace_or_a_time_can_be_evaluated(url: str, write: Any) -> None:
    policy = write(EXPLORE)
    _, out, _ = invoke("--log", url, "--policy", policy, "--namespace", "none", "--json")
    assert json.loads(out)["n_read"] == 0
    _, out, _ = invoke("--log", url, "--policy", policy, "--since", "2023-11-14T22:13:21", "--json")
    told = json.loads(out)
    # decisions are a millisecond apart, from 22:13:20 on
    assert (told["n_read"], told["from_ms"]) == (200, START_MS + 1000)
    _, out, _ = invoke("--log", url, "--policy", policy, "--since", "1h", "--json")
    assert json.loads(out)["n_read"] == 0
    _, out, _ = invoke("--log", url, "--policy", policy, "--limit", "150", "--json")
    assert json.loads(out)["n_read"] == 150


def test_the_margin_is_the_callers(url: str, write: Any) -> None:
    code, out, _ = invoke("--log", url, "--policy", write(WORSE), "--margin", "1", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "not_worse")


def test_policies_in_the_archive_tell_which_agents_are_new(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "archive.db"
    rows = [
        row._replace(inputs=row.inputs.replace('"seed"', '"digests": {"policy": "p1"}, "seed"', 1))
        if isinstance(row, DecisionRow)
        else row
        for row in World(floor=0.4, cost_weight=0.3).rows(300)
    ]
    log = filled(path, rows)
    before = parse_policy({"defaults": {"intents": {"refund": {"agents": ["cheap", "dear"]}}}})

    async def fill() -> None:
        async with open_store(log) as store:
            await store.cards.put_card(card("new", capability("refund")))
        database = Database(writer_engine(path), reader_engine(path, 1), "test")
        await SqlGenerations(database).keep([Generation("policy", "p1", before.model_dump_json().encode())], [], 1)
        await database.close()

    asyncio.run(fill())
    code, out, _ = invoke("--log", log, "--policy", write(EXPLORE), "--json")
    told = json.loads(out)
    assert (code, [each["code"] for each in told["refusals"]]) == (3, ["never_offered"])


def test_a_store_that_is_not_there_is_told_and_not_made(tmp_path: Path, write: Any) -> None:
    code, out, errors = invoke("--log", f"sqlite:///{tmp_path}/none.db", "--policy", write(EXPLORE), "--json")
    assert (code, out) == (2, "")
    assert "there is no store" in errors
    assert not (tmp_path / "none.db").exists()
    assert invoke("--log", "mysql://x", "--policy", write(EXPLORE))[0] == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("learning: {mode: guess}\n", "mode"),
        ("defaults: {cost_weigths: {auto: 0.1}}\n", "cost_weigths"),
        ("- a list\n", "expected a mapping"),
    ],
)
def test_a_policy_that_is_wrong_is_told_with_its_place(url: str, write: Any, text: str, told: str) -> None:
    code, out, errors = invoke("--log", url, "--policy", write(text), "--json")
    assert (code, out) == (2, "")
    assert told in errors
    assert "policy.yaml" in errors
    assert "Traceback" not in errors


def test_a_policy_file_that_is_not_there_is_told(url: str, tmp_path: Path) -> None:
    code, out, errors = invoke("--log", url, "--policy", str(tmp_path / "none.yaml"))
    assert (code, out) == (2, "")
    assert "none.yaml" in errors


@pytest.mark.parametrize(
    ("option", "value", "told"), [("--since", "tomorrow", "write a time as"), ("--choices", "all", "router or callers")]
)
def test_options_that_cannot_be_used_are_told(url: str, write: Any, option: str, value: str, told: str) -> None:
    code, out, errors = invoke("--log", url, "--policy", write(EXPLORE), option, value)
    assert (code, out) == (2, "")
    assert told in errors

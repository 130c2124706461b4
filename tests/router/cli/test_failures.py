from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.learning_failures import CAUSES, planted_cards, planted_log
from router.cli.main import app
from router.stores.open import open_store


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('log') / 'store.db'}"

    async def fill() -> None:
        made = planted_log(1)
        async with open_store(url) as store:
            for card in planted_cards():
                await store.cards.put_card(card)
            await store.records.append([*made.decisions, *made.outcomes])

    asyncio.run(fill())
    return url


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["failures", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def test_clusters_are_one_json_object_and_a_page(url: str, tmp_path: Path) -> None:
    page = tmp_path / "failures.html"
    code, out, errors = invoke("--log", url, "--json", "--html", str(page))
    told = json.loads(out)

    assert (code, out.count("\n")) == (0, 1)
    assert errors.endswith(f"the page is {page}\n")
    assert {cluster["fix"]["kind"] for cluster in told["clusters"]} >= set(CAUSES)
    sizes = [cluster["size"] for cluster in told["clusters"]]
    assert sum(sizes) + told["rest"]["size"] == told["n_failures"]
    assert sizes == sorted(sizes, reverse=True)
    assert set(told["clusters"][0]) == {
        "name", "phrases", "stage", "size", "share", "trend", "first_seen", "last_seen", "agents", "errors", "intents",
        "fix", "examples",
    }  # fmt: skip
    assert "payments-db" in page.read_text(encoding="utf-8")


def test_people_get_a_table(url: str) -> None:
    code, out, _ = invoke("--log", url, "--min-size", "20")

    assert code == 0
    assert "payments-db fails" in out
    assert "sick_agent" in out
    assert "traces: t-d1-" in out


def test_a_log_without_failures_is_told_with_exit_0(tmp_path: Path, url: str) -> None:
    empty = f"sqlite:///{tmp_path / 'empty.db'}"

    async def make() -> None:
        async with open_store(empty):
            pass

    asyncio.run(make())
    assert invoke("--log", empty)[:2] == (0, "nothing failed among 0 outcome(s)\n")
    code, out, _ = invoke("--log", empty, "--json")
    assert (code, json.loads(out)["clusters"], json.loads(out)["n_failures"]) == (0, [], 0)
    for since in ("2100-01-01", "1m"):
        assert invoke("--log", url, "--since", since)[:2] == (0, "nothing failed among 0 outcome(s)\n")


def test_the_store_is_that_of_the_environment_if_none_is_named(url: str, tmp_path: Path) -> None:
    env = {"COLUMNS": "200", "AGENCY_ROUTER_STORE": f"sqlite:///{tmp_path / 'none.db'}"}
    result = CliRunner().invoke(app, ["failures", "--since", "2100-01-01"], env=env)
    assert (result.exit_code, "none.db" in result.stderr) == (2, True)
    result = CliRunner().invoke(app, ["failures", "--since", "2100-01-01"], env={**env, "AGENCY_ROUTER_STORE": url})
    assert (result.exit_code, result.stdout) == (0, "nothing failed among 0 outcome(s)\n")


def test_what_cannot_be_used_is_named(tmp_path: Path, url: str) -> None:
    code, out, errors = invoke("--log", f"sqlite:///{tmp_path / 'none.db'}")
    assert (code, out) == (2, "")
    assert "there is no store" in errors
    assert list(tmp_path.iterdir()) == []

    code, _, errors = invoke("--log", url, "--since", "yesterday")
    assert code == 2
    assert (
        errors
        == "error: --since 'yesterday': write a time as 2026-11-30 or 2026-11-30T12:00:00, or as 7d, 12h or 90m ago\n"
    )

    code, _, errors = invoke("--log", url, "--since", "2100-01-01", "--html", str(tmp_path / "no" / "page.html"))
    assert code == 2
    assert "--html:" in errors
    assert "cannot be written" in errors
    code, _, errors = invoke("--log", f"sqlite:///{tmp_path}/none.db", "--html", str(tmp_path))
    assert (code, errors) == (
        2,
        f"error: --html: {tmp_path} cannot be written; name a file in a folder that there is\n",
    )

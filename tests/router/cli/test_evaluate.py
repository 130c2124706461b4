from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from router.cli.main import app
from tests.service.server import SHOP, SHOP_OPTIONS

REQUESTS = SHOP / "requests.jsonl"


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["evaluate", "routing", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def test_the_shop_is_all_right_in_one_json_object() -> None:
    code, out, _ = invoke("--requests", str(REQUESTS), *SHOP_OPTIONS, "--json")
    assert (code, out.count("\n")) == (0, 1)
    summary = json.loads(out)
    assert summary["misses"] == []
    assert summary["n"] == summary["right"] == len(REQUESTS.read_text(encoding="utf-8").splitlines())
    assert summary["accuracy"] == 1.0
    assert 1 <= summary["mean_cost_level"] <= 5
    assert 0 < summary["p50_ms"] <= summary["p95_ms"] <= summary["p99_ms"]


def test_people_get_the_figures_and_the_misses(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(
        '{"name": "odd [one]", "request": {"intent": "x"}, "expect": {"action": "invoke"}}\n', encoding="utf-8"
    )
    code, out, _ = invoke("--requests", str(path), *SHOP_OPTIONS)
    assert code == 0
    for told in ("accuracy", "0.0", "odd [one]", "abstained", "fallback"):
        assert told in out


def test_wrong_lines_are_told_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text('{"request": {}, "expect": {}}\n{"request": 5, "expect": {}}\n', encoding="utf-8")
    code, out, errors = invoke("--requests", str(path), *SHOP_OPTIONS, "--json")
    assert (code, out) == (2, "")
    assert "line 2, request: expected a mapping, got the number 5" in errors


def test_a_missing_file_and_missing_options_are_told(tmp_path: Path) -> None:
    code, _, errors = invoke("--requests", str(tmp_path / "none.jsonl"))
    assert (code, "none.jsonl cannot be read" in errors) == (2, True)
    assert invoke()[0] == 2


def test_wrong_cards_are_told(tmp_path: Path) -> None:
    cards = tmp_path / "cards.yaml"
    cards.write_text("agent_id: a\ncapabilities: [{intent: b, quality: 7}]\n", encoding="utf-8")
    code, out, errors = invoke("--requests", str(REQUESTS), "--cards", str(cards), "--json")
    assert (code, out, "quality" in errors) == (2, "", True)

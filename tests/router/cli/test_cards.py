from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from router.cli.cards import app

SHOP = Path(__file__).parents[2] / "data" / "shop"


def invoke(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["lint", *map(str, arguments)], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def read(*arguments: str | Path) -> tuple[int, Any, str]:
    code, out, errors = invoke(*arguments, "--json")
    assert out.count("\n") == 1
    return code, json.loads(out), errors


def test_json_is_one_object_with_counts_and_findings() -> None:
    code, found, errors = read(SHOP / "cards.yaml", SHOP / "card-nested.yaml", "--policy", SHOP / "policy.yaml")
    assert (code, errors) == (0, "")
    assert set(found) == {"cards", "capabilities", "findings"}
    assert (found["cards"], found["capabilities"]) == (8, 10)
    gaps = [each for each in found["findings"] if each["code"] == "schema_gap"]
    assert [(each["agent_id"], each["intent"], each["severity"]) for each in gaps] == [
        ("care_agent", "anything_else", "warning")
    ]


def test_people_get_a_table_and_notes_on_stderr() -> None:
    code, out, errors = invoke(SHOP)
    assert code == 0
    assert "warning schema_gap: no input and no output schema" in out
    assert "8 card(s), 10 capability(ies)" in out
    assert errors == f"note: {SHOP / 'policy.yaml'}: a policy, not cards; left out\n"


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """Two intents with the same example: an error."""
    card = "- {intent: %s, description: Does it, examples: [do the one thing], input_schema: none, output_schema: none}"
    text = "agent_id: a\nendpoint: http://a\ncapabilities:\n"
    path = tmp_path / "cards.yaml"
    path.write_text(text + "\n".join(card % intent for intent in ("one", "two")), encoding="utf-8")
    return path


def test_a_finding_that_is_an_error_ends_with_status_1(twins: Path) -> None:
    code, found, _ = read(twins)
    assert code == 1
    (error,) = [each for each in found["findings"] if each["severity"] == "error"]
    assert error["code"] == "duplicate_capability"
    assert "do the one thing" in error["utterances"]
    code, out, _ = invoke(twins)
    assert code == 1
    assert "· do the one thing" in out


def test_the_policy_says_which_schemas_are_needed(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("defaults: {require_schemas: none}", encoding="utf-8")
    _, found, _ = read(SHOP / "cards.yaml", "--policy", policy)
    assert "schema_gap" not in {each["code"] for each in found["findings"]}


def test_cards_that_cannot_be_read_are_all_told_on_stderr_with_status_1(tmp_path: Path) -> None:
    path = tmp_path / "cards.yaml"
    path.write_text("agents:\n- agent_id: a\n  wieght: 1\n- agent_id: [b]\n", encoding="utf-8")
    code, out, errors = invoke(path)
    assert (code, out) == (1, "")
    assert f"line 3, {path}:agents[0].wieght: unknown field; did you mean 'weight'?" in errors
    assert f"line 4, {path}:agents[1].agent_id: expected text, got a list" in errors


def test_cards_that_cannot_be_read_are_told_as_json_too(tmp_path: Path) -> None:
    code, found, errors = read(tmp_path / "none.yaml")
    assert code == 2
    assert found["code"] == "card_invalid"
    assert found["problems"] == [
        {"path": str(tmp_path / "none.yaml"), "message": "there is no such file or folder", "line": None}
    ]
    assert errors.startswith("error: ")


def test_a_faulty_policy_is_told_with_status_2(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("rulez: []", encoding="utf-8")
    code, _, errors = invoke(SHOP / "cards.yaml", "--policy", policy)
    assert code == 2
    assert "did you mean 'rules'?" in errors


def test_a_path_is_needed() -> None:
    assert invoke()[0] == 2

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models.decision import RouteDecision
from router.cli.main import app
from tests.service.server import SHOP_NAMESPACE, SHOP_OPTIONS, run

ASK = "have you paid back my deposit"


def invoke(*arguments: str, **env: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["route", *arguments], env={"COLUMNS": "200", **env})
    return result.exit_code, result.stdout, result.stderr


def read(*arguments: str) -> Any:
    code, out, errors = invoke(*arguments, "--json")
    assert (code, errors, out.count("\n")) == (0, "", 1)
    return json.loads(out)


def test_the_bundled_set_answers_without_anything_given() -> None:
    answer = read("please cancel my order for the sofa")
    assert set(answer) == set(RouteDecision.model_fields)
    assert (answer["action"], answer["intent"]["name"]) == ("invoke", "cancel_order")


def test_the_only_namespace_need_not_be_named_and_explain_lists_the_candidates() -> None:
    answer = read(ASK, "--explain", *SHOP_OPTIONS)
    assert (answer["namespace"], answer["target"]["agent_id"]) == (SHOP_NAMESPACE, "deposit_desk")
    assert {each["agent_id"] for each in answer["candidates"]} == {"deposit_desk", "deposit_auditor"}


def test_people_get_a_table_with_the_agent_and_the_reason() -> None:
    code, out, errors = invoke(ASK, *SHOP_OPTIONS)
    assert code == 0
    for told in ("invoke", "deposit_status", "deposit_desk 1.2.0 at http://deposit-desk:7070/call", " ms"):
        assert told in out
    assert "--explain" in errors


@pytest.mark.parametrize(("sentence", "told"), [(ASK, "deposit_auditor"), ("[bold]Figaro\x1b[31m 歌剧", "fallback")])
def test_people_get_all_candidates_whatever_was_asked(sentence: str, told: str) -> None:
    code, out, _ = invoke(sentence, "--explain", *SHOP_OPTIONS)
    assert (code, told in out, "why not" in out, "\x1b" in out) == (0, True, True, False)


def test_caller_and_permissions_hold_as_over_http() -> None:
    wipe = ("wipe my personal data", *SHOP_OPTIONS, "--caller")
    assert read(*wipe, "switchboard", "--permission", "rider:erase")["target"]["agent_id"] == "records_officer"
    assert read(*wipe, "switchboard", "--permission", "other")["action"] == "deny"


def test_of_several_namespaces_one_has_to_be_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(
            f"agent_id: agent-{name}\nnamespace: {name}\ncapabilities:\n"
            "  - {intent: go, examples: [please go], input_schema: text, output_schema: text}\n",
            encoding="utf-8",
        )
    code, out, errors = invoke("please go", "--cards", str(tmp_path), "--json")
    assert (code, out) == (2, "")
    assert "one, two" in errors
    assert read("please go", "--cards", str(tmp_path), "--namespace", "two")["target"]["agent_id"] == "agent-two"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("",), 2, "utterance"),
        (("x", "--namespace", "no spaces"), 2, "namespace"),
        (("x", "--caller", "no spaces"), 2, "caller.agent_id"),
        (("x", "--cards", "no-such.yaml"), 1, "no-such.yaml"),
        (("x", "--policy", "no-such.yaml"), 1, "no-such.yaml"),
    ],
)
def test_what_cannot_be_done_is_told(arguments: tuple[str, ...], code: int, told: str) -> None:
    found, out, errors = invoke(*arguments, "--json")
    assert (found, out) == (code, "")
    assert told in errors
    assert errors.startswith("error: ")


def test_the_settings_of_a_service_are_not_taken_for_a_single_decision(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.yaml")
    service = {"AGENCY_ROUTER_CARDS": f'["{missing}"]', "AGENCY_ROUTER_POLICY": missing, "AGENCY_ROUTER_STORE": "x://"}
    assert invoke(ASK, "--cards", SHOP_OPTIONS[1], "--json", **service)[0] == 0


def test_the_installed_script_answers_from_any_folder_and_leaves_nothing_there(tmp_path: Path) -> None:
    code, out, errors = run("route", ASK, *SHOP_OPTIONS, "--json", cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert json.loads(out)["target"]["agent_id"] == "deposit_desk"
    assert list(tmp_path.iterdir()) == []

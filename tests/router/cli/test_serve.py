"""What `serve` says of its command line; its starts and stops are in tests/service."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from router.cli.main import app
from router.cli.settings import settings_of


def invoke(*arguments: str, **env: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["serve", *arguments], env=env)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("arguments", "env", "told"),
    [
        (("--port", "70000"), {}, "port"),
        ((), {"AGENCY_ROUTER_PORT": "many"}, "port"),
        ((), {"AGENCY_ROUTER_LOG_LEVEL": "loud"}, "log_level"),
        ((), {"AGENCY_ROUTER_MAX_BATCH": "257", "AGENCY_ROUTER_SHUTDOWN_S": "0"}, "max_batch"),
        ((), {"AGENCY_ROUTER_CARDS": "cards.yaml"}, '["cards.yaml"]'),
    ],
)
def test_a_setting_that_cannot_be_is_told_in_a_line(arguments: tuple[str, ...], env: dict[str, str], told: str) -> None:
    code, out, errors = invoke(*arguments, **env)
    assert (code, out) == (2, "")
    assert errors.startswith("error: settings: ")
    assert told in errors
    assert errors.count("\n") == 1


def test_all_wrong_settings_are_told_together() -> None:
    _, _, errors = invoke("--port", "-1", AGENCY_ROUTER_MAX_BATCH="0")
    assert ("port" in errors, "max_batch" in errors) == (True, True)


@pytest.mark.parametrize("command", [["serve"], ["keys", "list"]])
def test_what_the_environment_sets_and_is_no_setting_is_refused_with_the_nearest_one(command: list[str]) -> None:
    env = {"AGENCY_ROUTER_STORES": "abc", "AGENCY_ROUTER_ZZZ": "1", "agency_router_port": "0", "AGENCY_ROUTERS": "x"}
    result = CliRunner().invoke(app, command, env=env)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: settings: the environment's AGENCY_ROUTER_STORES is no setting (did you mean AGENCY_ROUTER_STORE?);"
        " the environment's AGENCY_ROUTER_ZZZ is no setting; unset it, or see docs/settings.md for what there is\n"
    )


def test_a_taken_port_ends_with_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, out, errors = invoke("--port", port, "--store", f"sqlite:///{tmp_path}/store.db")
    assert (code, out) == (1, "")
    assert f"cannot bind 127.0.0.1:{port}" in errors


def test_options_win_over_the_environment_and_none_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_ROUTER_PORT", "1111")
    monkeypatch.setenv("AGENCY_ROUTER_HOST", "::1")
    monkeypatch.setenv("AGENCY_ROUTER_CARDS", '["a.yaml", "b"]')
    settings = settings_of(port=2222, host=None, cards=None)
    assert (settings.port, settings.host, settings.cards) == (2222, "::1", (Path("a.yaml"), Path("b")))
    assert settings_of(cards=()).cards == ()


def test_a_wrong_setting_ends_the_command() -> None:
    with pytest.raises(typer.Exit):
        settings_of(port=70_000)

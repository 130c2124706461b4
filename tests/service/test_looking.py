"""The command line beside a running service: what looks into its store, and what would share it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from router.cli.main import app
from tests.service.conftest import Serve
from tests.service.server import SHOP_NAMESPACE, SHOP_OPTIONS, Server, run


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve(*SHOP_OPTIONS)


def look_at(*arguments: str) -> tuple[int, str, str]:
    """In this process, which starts faster than one of its own; the service is another one."""
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_a_running_service_is_looked_into_and_goes_on_writing(server: Server, tmp_path: Path) -> None:
    body = {"intent": "cancel_booking", "namespace": SHOP_NAMESPACE, "caller": {"session_id": "s-1"}}
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    looks = (
        "replay --all --store {}",
        "replay --chain --store {}",
        "failures --log {}",
        "reviews list --store {}",
        "keys list --store {}",
        f"feedback export {tmp_path}/out.jsonl --store {{}}",
        "subjects export s-1 --store {}",
        f"evaluate policy --policy {tmp_path}/policy.yaml --log {{}}",
    )
    for n_before, look in enumerate(looks):
        made = server.client.post("/route", json=body).json()
        settled = {"decision_id": made["decision_id"], "attempt": 1, "status": "succeeded"}
        assert server.client.post("/feedback", json=settled).status_code == 202
        code, out, errors = look_at(*look.format(server.store).split(), "--json")
        assert code == 0, errors
        told = json.loads(out)
        if look.startswith("replay --all"):
            assert told["verdicts"] == {"equal": n_before + 1}
        code, _, errors = look_at("trace", made["trace_id"], "--store", server.store)
        assert code == 0, errors
    assert server.client.get("/readyz").json()["problems"] == {}


def test_a_second_service_on_the_same_store_ends_at_once_and_the_first_goes_on(server: Server, tmp_path: Path) -> None:
    code, out, errors = run("serve", "--port", "0", "--store", server.store, cwd=tmp_path)
    assert (code, out) == (1, "")
    assert "Traceback" not in errors
    assert f"is in use by another process ({server.process.pid}): stop the service first" in errors
    assert server.client.get("/readyz").status_code == 200


def test_the_command_line_writes_beside_a_running_service(server: Server, tmp_path: Path) -> None:
    past = tmp_path / "past.jsonl"
    past.write_text('{"agent_id": "a", "intent": "pay", "status": "succeeded"}\n')
    for words in (f"feedback import {past}", "keys create beside", "keys revoke beside", f"backup {tmp_path}/copy.db"):
        code, _, errors = look_at(*words.split(), "--store", server.store)
        assert code == 0, errors
    code, _, errors = look_at("restore", f"{tmp_path}/copy.db", "--store", server.store)
    assert (code, "stop the service first" in errors) == (1, True)


def test_after_a_kill_the_next_service_takes_the_store_over(server: Server) -> None:
    server.kill()
    server.start()
    assert server.stop() == 0
    assert not Path(f"{server.store.removeprefix('sqlite:///')}.lock").exists()

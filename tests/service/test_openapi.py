"""The served OpenAPI document is valid, complete and true: schemathesis finds nothing with all its checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from models.settings import Settings
from router.app import CALLS, create_app
from tests.service.conftest import Serve
from tests.service.server import Server, environment

CARDS = """
agents:
  - agent_id: anyone
    version: 1.0.0
    endpoint: http://anyone:1/call
    capabilities:
      - {intent: anything, examples: [please do anything, help me], input_schema: {}, output_schema: {}}
"""


@pytest.fixture(scope="module")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Serves one agent that accepts any payload, so that only what the document says is refused."""
    path = tmp_path_factory.mktemp("cards") / "cards.yaml"
    path.write_text(CARDS, encoding="utf-8")
    return serve("--cards", str(path))


CONFIG = """
[parameters]
"header.If-Match" = "*"

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "410", "412", "429", "5xx"]
"""
"""A generation that is not in force is refused however well it is written: nearly all policies would be."""


def run_schemathesis(server: Server, folder: Path, *options: str) -> None:
    """Run all checks against the server. AssertionError with the report if it finds anything."""
    (folder / "schemathesis.toml").write_text(CONFIG, encoding="utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("schemathesis"), "run", f"{server.client.base_url}/openapi.json",
         "--checks", "all", "--seed", "1", "--no-color", *options],
        capture_output=True, text=True, cwd=folder, check=False,
        env=environment(),
    )  # fmt: skip
    report = done.stdout[:20_000] + done.stderr[-2000:]
    assert done.returncode == 0, report
    n_calls = len(CALLS) - 1  # it takes the document itself for granted
    assert f"{n_calls} selected / {n_calls} total" in done.stdout, report


def test_the_document_is_valid_and_holds_every_call(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    validate(document)
    documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert documented == {(call.method, call.path) for call in CALLS}


def test_every_route_of_the_application_is_a_call_of_the_document() -> None:
    routes: list[Any] = create_app(Settings()).routes
    served = {(method, route.path.replace(":path}", "}")) for route in routes for method in route.methods}
    assert served - {(method, path) for method, path in served if method == "HEAD"} == {
        (call.method, call.path) for call in CALLS
    }


def test_schemathesis_finds_nothing_while_keys_are_off(server: Server, tmp_path: Path) -> None:
    run_schemathesis(server, tmp_path, "--max-examples", "20")


def test_schemathesis_finds_nothing_with_a_key(server: Server, tmp_path: Path) -> None:
    key = server.key("tester", "router:admin")["Authorization"]
    server.wait(lambda: server.client.get("/agents").status_code == 401, "no key is needed")
    server.client.headers["Authorization"] = key
    phases = ("--phases", "fuzzing,stateful", "--max-examples", "10")
    run_schemathesis(server, tmp_path, *phases, "--header", f"Authorization: {key}")

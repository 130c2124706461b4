"""The policy lab over what a real service has recorded: the format of records is what the lab reads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from router.cli.main import app
from tests.service.conftest import Serve
from tests.service.server import Server

REFUND = {"intent": "refund", "input_schema": "text", "output_schema": "text", "cost_level": 1, "quality": 0.7}
POLICY: dict[str, Any] = {"learning": {"mode": "explore", "floor": 0.4}, "agents": {"dear": {"weight": 50.0}}}
N_ROUTED, N_SHADOWED = 120, 20


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    """Has decided between two agents, and shadowed callers that decide themselves; outcomes are posted."""
    server = serve()
    client, rng = server.client, random.Random(1)
    for agent_id, cost in (("cheap", 1), ("dear", 5)):
        card = {"endpoint": "http://x/", "version": "1.0.0", "capabilities": [{**REFUND, "cost_level": cost}]}
        client.put(f"/agents/{agent_id}", json=card).raise_for_status()
    client.put("/policy", json=POLICY).raise_for_status()
    for number in range(N_ROUTED + N_SHADOWED):
        request: dict[str, Any] = {"intent": "refund", "utterance": f"my money back, number {number}"}
        if number >= N_ROUTED:
            request["caller_choice"] = {"agent_id": "dear"}
        decision = client.post("/route", json=request).raise_for_status().json()
        # answers that are bad, as failures would open a breaker
        told = {"decision_id": decision["decision_id"], "status": "succeeded", "quality": round(rng.random(), 2)}
        told |= {"latency_ms": 100, "cost_usd": 0.5}
        assert client.post("/feedback", json=told).status_code == 202
    # what is recorded is written beside the requests
    server.stop()
    return server


def lab(server: Server, folder: Path, policy: dict[str, Any], *options: str) -> tuple[int, dict[str, Any]]:
    path = folder / "policy.json"
    path.write_text(json.dumps(policy))
    command = ["evaluate", "policy", "--log", server.store, "--policy", str(path), "--json", *options]
    result = CliRunner().invoke(app, command)
    told: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, told


def test_the_policy_that_decided_flips_none_of_its_decisions(server: Server, tmp_path: Path) -> None:
    code, told = lab(server, tmp_path, POLICY)
    assert (code, told["verdict"], told["flips"]["n"], told["refusals"]) == (0, "same", 0, [])
    assert (told["n_decisions"], told["n_outcomes"]) == (N_ROUTED, N_ROUTED)
    assert told["n_skipped"] == {"of_callers": N_SHADOWED}
    assert told["logged"]["cost_usd"]["value"] == pytest.approx(0.5)


def test_another_policy_flips_some(server: Server, tmp_path: Path) -> None:
    only_dear = {**POLICY, "defaults": {"intents": {"refund": {"agents": ["dear"]}}}}
    _, told = lab(server, tmp_path, only_dear)
    assert 0 < told["flips"]["n"] < N_ROUTED
    first = told["flips"]["examples"][0]
    assert (first["was"], first["would_be"], first["intent"]) == ("cheap", "dear", "refund")
    assert first["utterance"].startswith("my money back")


def test_what_callers_chose_themselves_is_read_too(server: Server, tmp_path: Path) -> None:
    code, told = lab(server, tmp_path, POLICY, "--choices", "callers")
    assert (told["choices_of"], told["n_decisions"], told["n_outcomes"]) == ("callers", N_SHADOWED, N_SHADOWED)
    assert (code, told["verdict"]) == (3, "refused")
    assert {"too_few_outcomes", "untried_changes"} <= {each["code"] for each in told["refusals"]}
    assert {each["was"] for each in told["flips"]["examples"]} <= {"dear"}

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models.events import EventRow
from router.cli.main import app
from router.stores.open import open_store


def event(trace_id: str, number: int, payload: str = "{}", **fields: Any) -> EventRow:
    row = EventRow(
        trace_id, f"span-{number}", None, "router", "route", "invoke", payload, 0, 0.5, 1_700_000_000_000, "me"
    )
    return row._replace(**fields)


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    asyncio.run(fill(url))
    return url


async def fill(url: str) -> None:
    async with open_store(url) as store:
        rows = [event("mine", number, json.dumps({"agent_id": f"agent-{number}"})) for number in range(3)]
        odd = event("o/d d", 0, '{"text": "[red]\\u001b[31m\\n"}', decision=None)
        await store.records.append([rows[0], event("other", 9), *rows[1:], odd])


def invoke(*arguments: str, **env: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["trace", *arguments], env={"COLUMNS": "200", **env})
    return result.exit_code, result.stdout, result.stderr


def test_a_trace_is_one_json_object_with_its_events_in_order(url: str) -> None:
    code, out, errors = invoke("mine", "--store", url, "--json")
    assert (code, errors, out.count("\n")) == (0, "", 1)
    told = json.loads(out)
    assert told["trace_id"] == "mine"
    assert [each["span_id"] for each in told["events"]] == ["span-0", "span-1", "span-2"]
    assert [each["payload"]["agent_id"] for each in told["events"]] == ["agent-0", "agent-1", "agent-2"]
    numbers = [each["seq"] for each in told["events"]]
    assert numbers == sorted(set(numbers))


def test_people_get_a_table(url: str) -> None:
    code, out, errors = invoke("mine", "--store", url)
    assert (code, errors) == (0, "")
    for told in ("2023-11-14T22:13:20.000", "span-1", "route", "invoke", "agent_id=agent-2"):
        assert told in out


def test_what_stands_in_a_payload_does_not_steer_the_terminal(url: str) -> None:
    code, out, _ = invoke("o/d d", "--store", url)
    assert (code, "\x1b" in out, "[red]" in out) == (0, False, True)


def test_the_store_may_come_from_the_environment(url: str) -> None:
    assert invoke("mine", "--json", AGENCY_ROUTER_STORE=url)[0] == 0


def test_a_trace_that_is_not_there_is_told(url: str) -> None:
    code, out, errors = invoke("none", "--store", url, "--json")
    assert (code, out) == (2, "")
    assert "there is no trace 'none'" in errors


def test_a_store_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    code, out, errors = invoke("mine", "--store", f"sqlite:///{tmp_path}/wrong.db", "--json")
    assert (code, out) == (2, "")
    assert "there is no store" in errors
    assert list(tmp_path.iterdir()) == []
    assert invoke("mine", "--store", "mysql://x")[0] == 2

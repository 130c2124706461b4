from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from models.events import HOUR_MS, UsageRow
from router.endpoints.usage import USAGE
from router.keys import create_key
from tests.router.asgi import speaking
from tests.router.stores.samples import used

ROWS = [
    used(1, "orders", 2, 100, n_decisions=3, n_succeeded=1, cost_usd=0.1, n_latencies=2, latency_ms=300.0),
    used(2, "orders", 1, 50, n_decisions=1, n_succeeded=1, cost_usd=0.2, n_latencies=1, latency_ms=60.0),
    used(2, "refunds", 1, 7, caller="bot", team="crew", namespace="other"),
]
KNOWN = f"from={HOUR_MS}&to={3 * HOUR_MS}"


async def told(client: httpx.AsyncClient, question: str) -> Any:
    response = await client.get(f"/usage?{question}")
    assert response.status_code == 200, response.text
    jsonschema_rs.validate(USAGE, response.json())
    return response.json()


async def test_usage_is_told_as_sums_and_means(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["store"].records.append(ROWS)
        web = {"n_decisions": 4, "n_calls": 3, "n_succeeded": 2, "tokens": 150, "cost_usd": 0.3}
        bot = {"n_decisions": 0, "n_calls": 1, "n_succeeded": 0, "tokens": 7, "cost_usd": 0.0}
        assert await told(client, KNOWN) == {
            "from": HOUR_MS,
            "to": 3 * HOUR_MS,
            "group": "caller",
            "by": "total",
            "usage": [
                {"name": "bot", "hour": None, **bot, "mean_latency_ms": None},
                {"name": "web", "hour": None, **web, "mean_latency_ms": 120.0},
            ],
            "truncated": False,
        }


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("group=agent&by=hour", [("orders", 1, 2), ("orders", 2, 1), ("refunds", 2, 1)]),
        ("group=team", [("crew", None, 1), ("shop", None, 3)]),
        ("group=namespace", [("default", None, 3), ("other", None, 1)]),
        ("group=agent&caller=bot", [("refunds", None, 1)]),
        ("agent=orders&by=hour", [("web", 1, 2), ("web", 2, 1)]),
        ("team=crew&namespace=other", [("bot", None, 1)]),
        ("team=crew&namespace=default", []),
        ("caller=", []),
    ],
)
async def test_usage_is_grouped_and_filtered(
    tmp_path: Path, question: str, expected: list[tuple[str, int | None, int]]
) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["store"].records.append(ROWS)
        rows = (await told(client, f"{KNOWN}&{question}"))["usage"]
        found = [(row["name"], row["hour"] and row["hour"] // HOUR_MS, row["n_calls"]) for row in rows]
        assert found == expected


async def test_hours_are_whole_and_what_was_covered_is_told(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        await parts["store"].records.append(ROWS)
        within = await told(client, f"from={2 * HOUR_MS - 1}&to={2 * HOUR_MS + 1}")
        assert (within["from"], within["to"], len(within["usage"])) == (HOUR_MS, 3 * HOUR_MS, 2)
        before = await told(client, f"from={HOUR_MS}&to={2 * HOUR_MS}")
        assert [row["n_calls"] for row in before["usage"]] == [2]
        assert (await told(client, f"from={5 * HOUR_MS}&to={HOUR_MS}"))["usage"] == []


async def test_without_a_time_the_last_thirty_days_are_told_and_no_more_than_a_year_or_so(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        hour = int(parts["clock"].now_ms()) // HOUR_MS
        await parts["store"].records.append([used(hour), used(hour - 700, n_calls=10), used(hour - 800, n_calls=100)])
        usual = await told(client, "")
        assert [row["n_calls"] for row in usual["usage"]] == [11]
        assert usual["to"] - usual["from"] == 720 * HOUR_MS
        everything = await told(client, "from=0")
        assert [row["n_calls"] for row in everything["usage"]] == [111]
        assert everything["to"] - everything["from"] == 10_000 * HOUR_MS


async def test_what_was_taken_back_leaves_no_rest(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        costs = (0.1, 0.2, -0.3)
        rows = [used(1, n_calls=0, cost_usd=cost, latency_ms=cost, n_latencies=round(cost * 10)) for cost in costs]
        await parts["store"].records.append(rows)
        (row,) = (await told(client, KNOWN))["usage"]
        assert (row["cost_usd"], row["mean_latency_ms"]) == (0.0, None)
        assert str(row["cost_usd"]) == "0.0"


async def test_rows_beyond_the_limit_are_left_out_and_that_is_told(tmp_path: Path) -> None:
    rows: list[UsageRow] = [used(1, f"agent-{number:02}") for number in range(12)]
    async with speaking(tmp_path) as (client, parts):
        await parts["store"].records.append(rows)
        some = await told(client, f"{KNOWN}&group=agent&limit=10")
        assert ([row["name"] for row in some["usage"]], some["truncated"]) == (
            [row.agent_id for row in rows[:10]],
            True,
        )
        assert (await told(client, f"{KNOWN}&group=agent&limit=12"))["truncated"] is False


@pytest.mark.parametrize(
    ("question", "name"),
    [("from=soon", "from"), ("to=-1", "to"), ("group=owner", "group"), ("by=day", "by"), ("limit=0", "limit"),
     ("limit=10001", "limit"), ("agent=a&agent=b", "agent"), ("caller=" + "x" * 201, "caller")],
)  # fmt: skip
async def test_a_parameter_that_is_wrong_is_named(tmp_path: Path, question: str, name: str) -> None:
    async with speaking(tmp_path) as (client, _):
        response = await client.get(f"/usage?{question}")
        assert response.status_code == 422
        assert [problem["path"] for problem in response.json()["errors"]] == [name]


async def test_usage_needs_router_read(tmp_path: Path) -> None:
    async with speaking(tmp_path, keys_refresh_ms=10) as (client, parts):
        statuses = []
        for name, permissions in (("one", ()), ("reader", ("router:read",)), ("admin", ("router:admin",))):
            key, token = create_key(name, permissions, None, None, now_ms=0)
            await parts["store"].keys.add_key(key)
            response = await client.get("/usage", headers={"Authorization": f"Bearer {token}"})
            statuses.append(response.status_code)
        assert statuses == [403, 200, 200]

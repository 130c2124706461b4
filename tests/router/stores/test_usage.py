from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.events import Row, UsageQuery, UsageRow
from router.stores.open import Store
from router.stores.usage import merged
from tests.router.stores.samples import event, used

ALL = UsageQuery(0, 100, "agent_id", by_hour=True)


async def test_usage_is_added_to_what_there_is_also_within_a_batch(store: Store) -> None:
    rows: list[Row] = [
        used(n_calls=1, tokens=5),
        event(),
        used(n_calls=2, cost_usd=0.5, latency_ms=10.0, n_latencies=1),
    ]
    await store.records.append([*rows, used(agent_id="refunds")])
    await store.records.append([used(n_calls=4, tokens=2, cost_usd=0.25), used(hour=2, n_calls=7)])
    assert await store.records.usage(ALL._replace(group="agent_id")) == [
        UsageRow(1, "", "", "", "orders", 0, 7, 0, 7, 0.75, 1, 10.0),
        UsageRow(1, "", "", "", "refunds", 0, 1, 0, 0, 0.0, 0, 0.0),
        UsageRow(2, "", "", "", "orders", 0, 7, 0, 0, 0.0, 0, 0.0),
    ]


async def test_an_amendment_takes_back_what_it_replaces(store: Store) -> None:
    await store.records.append([used(n_calls=1, n_succeeded=1, tokens=500, latency_ms=20.5, n_latencies=1)])
    await store.records.append([used(n_calls=0, n_succeeded=-1, tokens=-400, latency_ms=-20.5, n_latencies=-1)])
    (row,) = await store.records.usage(ALL)
    assert row == UsageRow(1, "", "", "", "orders", 0, 1, 0, 100, 0.0, 0, 0.0)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("caller", [("bot", 2), ("web", 5)]),
        ("team", [("shop", 7)]),
        ("namespace", [("default", 6), ("other", 1)]),
        ("agent_id", [("orders", 4), ("refunds", 3)]),
    ],
)
async def test_usage_is_summed_over_hours_by_any_column(
    store: Store, group: str, expected: list[tuple[str, int]]
) -> None:
    await store.records.append(
        [
            used(1, "orders", 1, namespace="other"),
            used(2, "orders", 1),
            used(2, "refunds", 3),
            used(3, "orders", 2, caller="bot"),
            used(9, "orders", 8),
        ]
    )
    query = UsageQuery(1, 9, group, by_hour=False)  # type: ignore[arg-type]
    rows = await store.records.usage(query)
    assert [(row.hour, getattr(row, group), row.n_calls) for row in rows] == [(0, *each) for each in expected]
    assert [row.n_calls for row in await store.records.usage(query._replace(limit=1))] == [expected[0][1]]


async def test_usage_is_that_of_the_caller_team_namespace_and_agent_asked_for(store: Store) -> None:
    other = {"caller": "bot", "team": "crew", "namespace": "other", "agent_id": "refunds"}
    rows = [used(n_calls=1), *(used(n_calls=10)._replace(**{name: value}) for name, value in other.items())]  # type: ignore[arg-type]
    await store.records.append(rows)
    total = UsageQuery(0, 100, "caller", by_hour=False)
    for name, value in other.items():
        found = await store.records.usage(total._replace(**{name: value}))  # type: ignore[arg-type]
        assert [row.n_calls for row in found] == [10]
    mine = total._replace(caller="web", team="shop", namespace="default", agent_id="orders")
    assert [row.n_calls for row in await store.records.usage(mine)] == [1]


ROWS = st.builds(
    used,
    hour=st.integers(1, 2),
    agent_id=st.sampled_from(["a", "b"]),
    n_calls=st.integers(-5, 5),
    tokens=st.integers(-100, 100),
    caller=st.sampled_from(["web", "bot"]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(ROWS, max_size=20))
def test_merging_keeps_every_sum_and_each_key_once(rows: list[UsageRow]) -> None:
    together = merged(rows)
    keys = [row[:5] for row in together]
    assert keys == list(dict.fromkeys(row[:5] for row in rows))
    for key, row in zip(keys, together, strict=True):
        mine = [each for each in rows if each[:5] == key]
        assert (row.n_calls, row.tokens) == (sum(each.n_calls for each in mine), sum(each.tokens for each in mine))

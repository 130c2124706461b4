from __future__ import annotations

import asyncio
import gc
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from router.metrics import Metrics
from router.running import Parts
from tests.router.asgi import speaking
from tests.router.memory_store import WaitingEmbedder


def values(text: bytes | str) -> dict[str, float]:
    """Sample (its labels beside its name) → value."""
    families = text_string_to_metric_families(text if isinstance(text, str) else text.decode())
    return {
        ",".join([sample.name, *map(str, sample.labels.values())]): sample.value
        for family in families
        for sample in family.samples
    }


def observed(parts: Parts) -> dict[str, float]:
    metrics = Metrics()
    metrics.observe(parts)
    return values(metrics.text())


def test_counters_are_told_before_anything_runs() -> None:
    metrics = Metrics()
    metrics.decided("invoke", "selected", 0.0004)
    found = values(metrics.text())
    assert found["agency_router_decisions_total,invoke,selected"] == 1
    assert found["agency_router_decision_seconds_count"] == 1
    assert found["agency_router_decision_seconds_bucket,0.0002"] == 0
    assert found["agency_router_decision_seconds_bucket,0.0005"] == 1


def test_two_registries_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.answered(200)
    assert "agency_router_http_requests_total,200" not in values(other.text())


async def test_running_parts_are_told_with_their_snapshot(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (client, parts):
        await asyncio.wait_for(parts["readiness"].ready.wait(), 30)
        answer = await client.post("/route", json={"intent": "no_such_intent"})
        assert answer.status_code == 200
        await parts["journal"].flush(5000)
        found = values((await client.get("/metrics")).text)
        snapshot = parts["registry"].snapshot
        assert found["agency_router_ready"] == 1
        assert found["agency_router_cards"] == len(snapshot.cards)
        assert found["agency_router_capabilities"] == len(snapshot.entries)
        assert found["agency_router_index_rows"] == snapshot.index.n_rows
        assert found["agency_router_policy_generation"] == snapshot.policy_generation
        assert found["agency_router_decisions_total,fallback,no_capable_agent"] == 1
        assert found["agency_router_journal_written_rows_total"] > 0
        assert found["agency_router_journal_pending_rows"] == 0
        assert found["agency_router_http_in_flight"] == 0
        parts["readiness"].report("cards", "line 3")
        assert observed(parts)["agency_router_problems"] == 1


async def test_before_the_first_snapshot_its_figures_are_absent(tmp_path: Path) -> None:
    with WaitingEmbedder() as embedder:
        async with speaking(tmp_path, embedder=embedder) as (_, parts):
            found = observed(parts)
            assert found["agency_router_ready"] == 0
            assert "agency_router_cards" not in found
            embedder.may_end.set()


async def test_garbage_collections_are_told_by_generation(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, parts):
        before = observed(parts)
        gc.collect()
        after = observed(parts)
        name = "agency_router_gc_collections_total,2"
        assert after[name] >= before[name] + 1
        assert after["agency_router_gc_frozen_objects"] == gc.get_freeze_count()

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from models.errors import StoreError
from models.events import Row
from router.stores.database import Database
from router.stores.feedback_log import LogQuery, SqlFeedbackLog, open_log
from router.stores.generations import Generation, SqlGenerations
from router.stores.open import open_store
from router.stores.sqlite import reader_engine, writer_engine
from router.stores.tables import REVISION
from tests.router.policy_log import contender, decision_row, outcome_row
from tests.router.stores.samples import card, url_of


def decision(decision_id: str, at_ms: int, **columns: Any) -> Row:
    return decision_row(decision_id, "refund", contender("a"), at_ms=at_ms, **columns)


ROWS = [
    decision("d1", 1000),
    decision("d3", 2000),
    decision("d2", 2000),
    decision("nobody", 2500, agent_id=None, action="fallback"),
    decision("other", 3000, namespace="prod"),
    decision("d4", 4000),
    outcome_row("d2", "failed", at_ms=5000),
    outcome_row("d2", "succeeded", attempt=2, at_ms=5001),
    outcome_row("d4", "succeeded", at_ms=5002),
    outcome_row("d2", "succeeded", at_ms=5003, quality=0.5),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def log(path: Path) -> AsyncIterator[SqlFeedbackLog]:
    async with open_store(url_of(path)) as store:
        await store.records.append(ROWS)
        await store.cards.put_card(card("orders"))
    async with open_log(url_of(path)) as opened:
        yield opened


async def ids(log: SqlFeedbackLog, query: LogQuery, limit: int = 10) -> list[str]:
    """All of them, page by page."""
    found: list[str] = []
    after = None
    while True:
        page = await log.page(query, after, limit)
        assert len(page) <= limit
        found += [each.decision.decision_id for each in page]
        if len(page) < limit:
            return found
        after = (page[-1].decision.happened_at, page[-1].decision.decision_id)


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_pages_hold_every_decision_that_named_an_agent_once_in_order_of_time(
    log: SqlFeedbackLog, limit: int
) -> None:
    assert await ids(log, LogQuery(), limit) == ["d1", "d2", "d3", "other", "d4"]
    assert await ids(log, LogQuery(newest_first=True), limit) == ["d4", "other", "d3", "d2", "d1"]


async def test_a_time_and_a_namespace_can_be_asked_for(log: SqlFeedbackLog) -> None:
    assert await ids(log, LogQuery(from_ms=2000, to_ms=4000)) == ["d2", "d3", "other"]
    assert await ids(log, LogQuery(namespace="prod")) == ["other"]
    assert await ids(log, LogQuery(namespace="none")) == []
    assert await ids(log, LogQuery(from_ms=2000, newest_first=True, namespace="default"), 1) == ["d4", "d3", "d2"]


async def test_of_each_attempt_the_newest_outcome_counts(log: SqlFeedbackLog) -> None:
    found = {each.decision.decision_id: each.outcomes for each in await log.page(LogQuery(), None, 10)}
    assert [(each.attempt, each.received_at) for each in found["d2"]] == [(1, 5003), (2, 5001)]
    assert len(found["d4"]) == 1
    assert found["d1"] == ()


async def test_cards_are_those_of_the_store(log: SqlFeedbackLog) -> None:
    assert [each.agent_id for each in await log.cards()] == ["orders"]


async def test_policies_that_decided_are_found_by_their_digests(log: SqlFeedbackLog, path: Path) -> None:
    database = Database(writer_engine(path), reader_engine(path, 1), "test")
    made = [Generation("policy", "p1", b"{}"), Generation("card", "c1", b"[]")]
    await SqlGenerations(database).keep(made, [], 1)
    await database.close()
    assert await log.policies() == {"p1": b"{}"}


async def test_nothing_is_written_and_none_is_made(log: SqlFeedbackLog, path: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store .*name the one that the service uses"):
        async with open_log(url_of(tmp_path / "none.db")):
            pass
    assert not (tmp_path / "none.db").exists()


async def test_a_store_of_another_release_is_not_migrated_but_told(path: Path) -> None:
    async with open_store(url_of(path)):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
    with pytest.raises(StoreError, match=f"has the schema '0004', this release reads '{REVISION}',"):
        async with open_log(url_of(path)):
            pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0004",)]


@pytest.mark.parametrize(("content", "told"), [(b"", "is empty"), (b"no database at all, but text", "cannot be read")])
def test_a_file_that_is_no_store_is_told(path: Path, content: bytes, told: str) -> None:
    path.write_bytes(content)

    async def opened() -> None:
        async with open_log(url_of(path)):
            pass

    with pytest.raises(StoreError, match=told):
        asyncio.run(opened())


async def test_a_url_that_is_none_is_told() -> None:
    with pytest.raises(StoreError, match="is no store URL"):
        async with open_log("store.db"):
            pass

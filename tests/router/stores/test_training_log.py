from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Select
from sqlalchemy.dialects import sqlite

from models.errors import StoreError
from models.events import DecisionRow, OutcomeRow
from router.stores.open import Store, open_store
from router.stores.training_log import (
    START,
    AcceptedCorrection,
    accepted_query,
    open_training_log,
    settled_query,
)
from tests.router.stores.samples import FakeClock, card, decision, url_of


def plan(path: Path, query: Select[Any]) -> str:
    text = str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"))


def made(decision_id: str, happened_at: int = 1000, **fields: Any) -> DecisionRow:
    given = {"intent": "order_status", "caller": "gateway", "asker": "bot", **fields}
    return decision(decision_id)._replace(happened_at=happened_at, **given)


def told(decision_id: str, body: str = "{}", attempt: int = 1, charged: str = "agent") -> OutcomeRow:
    return OutcomeRow(decision_id, attempt, None, "bot", body, charged, 2000)


def review(path: Path, review_id: str, decision_id: str, state: str = "accepted", decided_at: int | None = 50) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO reviews (review_id, decision_id, caller, namespace, text, intent, correct_intent, created_at,"
            " state, decided_at) VALUES (?, ?, 'bot', 'default', 'a text', 'order_status', 'refund', 40, ?, ?)",
            (review_id, decision_id, state, decided_at),
        )


async def settled_ids(path: Path, limit: int = 100) -> list[str]:
    found, after = [], START
    async with open_training_log(url_of(path)) as log:
        while page := await log.settled(after, limit):
            found += [row.decision_id for row in page]
            after = page[-1].cursor
    return found


async def test_settled_decisions_come_by_time_whatever_the_page(store: Store, tmp_path: Path) -> None:
    times = {"c": 10, "a": 20, "b": 20, "d": 20, "e": 5}
    await store.records.append([row for name, at in times.items() for row in (made(name, at), told(name))])
    for limit in (1, 2, 3, 100):
        assert await settled_ids(tmp_path / "store.db", limit) == ["e", "c", "a", "b", "d"]


async def test_only_decisions_that_named_an_agent_and_were_answered_by_it_come(store: Store, tmp_path: Path) -> None:
    rows = [made("open"), made("asked", action="clarify"), made("unread", intent=None), made("second"), made("good")]
    outcomes = [told("asked"), told("unread"), told("second", attempt=2), told("good", attempt=2), told("good")]
    await store.records.append([*rows, *outcomes])
    assert await settled_ids(tmp_path / "store.db") == ["good"]


@pytest.mark.parametrize("state", ["waiting", "accepted", "rejected"])
async def test_a_decision_that_somebody_corrected_is_not_settled(state: str, store: Store, tmp_path: Path) -> None:
    await store.records.append([made("d1"), told("d1"), made("d2"), told("d2")])
    review(tmp_path / "store.db", "r1", "d1", state)
    assert await settled_ids(tmp_path / "store.db") == ["d2"]


async def test_the_newest_outcome_of_the_first_attempt_is_told(store: Store, tmp_path: Path) -> None:
    await store.records.append([made("d1"), told("d1", '{"n":1}'), told("d1", '{"n":3}', attempt=2)])
    await store.records.append([told("d1", '{"n":2}', charged="caller")])
    async with open_training_log(url_of(tmp_path / "store.db")) as log:
        (row,) = await log.settled(START, 10)
        assert await log.n_decisions() == 1
    assert (row.outcome, row.charged, row.caller, row.asker) == ('{"n":2}', "caller", "gateway", "bot")


async def test_accepted_corrections_come_in_the_order_of_acceptance(store: Store, tmp_path: Path) -> None:
    await store.records.append([made("d1")])
    for review_id, state, at in (("r1", "accepted", 90), ("r2", "waiting", None), ("r3", "accepted", 70)):
        review(tmp_path / "store.db", review_id, "d1" if review_id == "r1" else "gone", state, at)
    review(tmp_path / "store.db", "r4", "gone", "rejected")
    async with open_training_log(url_of(tmp_path / "store.db")) as log:
        first = await log.accepted(START, 1)
        rest = await log.accepted(first[-1].cursor, 10)
    common = ("bot", "a text", "order_status", "refund")
    assert first == [AcceptedCorrection("r3", "gone", *common, 70, None)]
    assert rest == [AcceptedCorrection("r1", "d1", *common, 90, "gateway")]


async def test_pages_are_found_through_indexes(store: Store, tmp_path: Path) -> None:
    settled = plan(tmp_path / "store.db", settled_query((5, "d"), 10))
    assert "decisions USING INDEX decisions_happened_at" in settled
    assert "SCAN" not in settled
    accepted = plan(tmp_path / "store.db", accepted_query((5, "r"), 10))
    assert "reviews USING INDEX reviews_state" in accepted
    assert "SCAN" not in accepted


async def test_the_cards_of_the_store_come_along(tmp_path: Path) -> None:
    async with open_store(url_of(tmp_path / "store.db"), clock=FakeClock()) as store:
        await store.cards.put_card(card())
    async with open_training_log(url_of(tmp_path / "store.db")) as log:
        assert [stored.card for stored in await log.cards()] == [card()]


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    async def look() -> None:
        async with open_training_log(url_of(tmp_path / "none.db")):
            pass

    with pytest.raises(StoreError, match="there is no store"):
        asyncio.run(look())
    assert list(tmp_path.iterdir()) == []

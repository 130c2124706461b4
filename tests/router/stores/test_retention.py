from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects import sqlite

from models.events import ReviewRow, ShadowRow
from models.queue import Claim, SettleRequest, TicketRow, TicketState
from models.review import ReviewFilter, ReviewState
from router.seals import GENESIS, first_break
from router.stores.open import Store, open_store
from router.stores.retention import older_query
from router.stores.tables import decisions, events, outcomes
from tests.router.stores.samples import decision, event, outcome, url_of

FAR = 9_000_000_000_000


def made(number: int, **fields: Any) -> Any:
    return decision(f"d{number:03}", "t1")._replace(happened_at=number, **fields)


async def kept(store: Store, n: int) -> list[int]:
    return [number for number in range(n) if await store.records.decision(f"d{number:03}") is not None]


async def test_the_oldest_decisions_go_first_with_their_shadows_and_leave_their_seals(
    store: Store, tmp_path: Path
) -> None:
    rows = [made(number, caller="web") for number in range(10)]
    await store.records.append([*rows, *(ShadowRow(row.decision_id, 1, "{}", row.happened_at) for row in rows)])
    assert [await store.retention.drop_decisions(7, 5000, 3) for _ in range(4)] == [3, 3, 1, 0]
    assert await kept(store, 10) == [7, 8, 9]
    assert await store.retention.oldest_decision() == 7
    page = await store.seals.page(0, 100)
    assert [seal.erased_at for seal, _ in page] == [5000] * 7 + [None] * 3
    assert [seal.salt is None for seal, _ in page] == [True] * 7 + [False] * 3
    assert [seal.caller for seal, _ in page] == ["web"] * 7 + [None] * 3
    assert first_break((0, GENESIS), page)[1] is None
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("SELECT count(*) FROM shadows").fetchone() == (3,)


async def test_outcomes_and_events_go_by_their_own_age(store: Store) -> None:
    await store.records.append([outcome()._replace(received_at=number) for number in range(6)])
    await store.records.append([event(happened_at=number) for number in range(6)])
    assert [await store.retention.drop_outcomes(4, 3) for _ in range(3)] == [3, 1, 0]
    assert [await store.retention.drop_events(2, 9) for _ in range(2)] == [2, 0]
    assert [row.received_at for row in await store.records.outcomes_of("d1")] == [4, 5]
    assert [row.happened_at for _, row in await store.records.trace("t1", 10)] == [2, 3, 4, 5]


async def test_an_accepted_correction_lasts_longer(store: Store) -> None:
    rows = [ReviewRow(f"r{n}", f"d{n}", "web", "default", "text", "a", "b", n) for n in range(6)]
    await store.records.append(rows)
    for number in (0, 2, 5):
        await store.reviews.decide(f"r{number}", ReviewState.ACCEPTED, "me", 10)
    await store.reviews.decide("r1", ReviewState.REJECTED, "me", 10)
    assert [await store.retention.drop_reviews(4, 2, 2) for _ in range(3)] == [2, 1, 0]
    assert [row.review_id for row in await store.reviews.page(ReviewFilter(), "", 9)] == ["r2", "r4", "r5"]


async def test_a_ticket_keeps_its_request_until_it_is_over(store: Store, tmp_path: Path) -> None:
    for number in range(3):
        row = TicketRow(
            f"k{number}", "default", "refund", "d1", "t1", "", TicketState.WAITING,
            0, None, None, None, 1, FAR, None, None,
        )  # fmt: skip
        await store.tickets.put(row, '{"utterance":"secret"}', 10)
    [(first, _)] = await store.tickets.claim(Claim("c1", "default", None, 1, "worker", FAR, 3, 10_000), 5)
    assert await store.retention.compact_tickets(10) == 0
    await store.tickets.settle(first.ticket, SettleRequest(claim_id="c1", status="settled"), 6, 3)
    assert [await store.retention.compact_tickets(10) for _ in range(2)] == [1, 0]
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        found = connection.execute("SELECT request FROM tickets ORDER BY ticket").fetchall()
    assert found == [("{}",), ('{"utterance":"secret"}',), ('{"utterance":"secret"}',)]


async def test_the_key_of_digests_is_made_once_and_lasts(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    keys = []
    for _ in range(2):
        async with open_store(url) as store:
            keys += [await store.retention.redaction_key(), await store.retention.redaction_key()]
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    async with open_store(url_of(tmp_path / "other.db")) as store:
        assert await store.retention.redaction_key() != keys[0]


async def test_free_pages_are_given_back(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    await store.records.append([made(number, request="x" * 20_000) for number in range(200)])
    await store.subjects.give_back()
    full = size(file)
    assert full > 4_000_000
    while await store.retention.drop_decisions(1000, 5000, 50):
        pass
    left = await store.retention.give_back(500)
    assert left > 0
    assert await store.retention.give_back(100_000) == 0
    await store.subjects.give_back()
    assert size(file) < full / 10


def size(file: Path) -> int:
    return file.stat().st_size


async def test_a_file_of_before_gives_none_back_until_it_was_vacuumed(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    async with open_store(url_of(file)) as old:
        await old.records.append([made(1)])
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("PRAGMA auto_vacuum=NONE; VACUUM")
    async with open_store(url_of(file)) as old:
        assert await old.retention.give_back(100) == 0
        assert await old.records.decision("d001") is not None


@pytest.mark.parametrize(
    ("table", "key", "at"),
    [
        (decisions, decisions.c.decision_id, decisions.c.happened_at),
        (events, events.c.sequence, events.c.happened_at),
        (outcomes, outcomes.c.sequence, outcomes.c.received_at),
    ],
)
async def test_old_rows_are_found_through_an_index_without_sorting(
    store: Store, tmp_path: Path, table: Any, key: Any, at: Any
) -> None:
    text = str(
        older_query(table, key, at, 5, 10).compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    )
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")]
    assert len(steps) == 1
    assert steps[0].startswith(f"SEARCH {table.name} USING")

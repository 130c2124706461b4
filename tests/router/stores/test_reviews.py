from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Select
from sqlalchemy.dialects import sqlite

from models.errors import ConflictError
from models.events import ReviewRow
from models.review import ReviewFilter, ReviewState
from router.stores.open import Store
from router.stores.reviews import MAX_WAITING, agreement_query, n_waiting_query
from tests.router.stores.samples import outcome

ANY = ReviewFilter()
ACCEPTED: Final = ReviewState.ACCEPTED
REJECTED: Final = ReviewState.REJECTED
WAITING: Final = ReviewState.WAITING


def correction(review_id: str, decision_id: str = "", **fields: Any) -> ReviewRow:
    row = ReviewRow(review_id, decision_id or f"d-{review_id}", "web", "default", "my money", "orders", "refunds", 1000)
    return row._replace(**fields)


async def ids(store: Store, wanted: ReviewFilter = ANY, after: str = "", limit: int = 100) -> list[str]:
    return [row.review_id for row in await store.reviews.page(wanted, after, limit)]


async def test_a_correction_comes_back_as_it_was_put(store: Store) -> None:
    await store.records.append([outcome(), correction("r1", text="退款 ü")])
    row = await store.reviews.get("r1")
    assert row is not None
    assert (row.text, row.intent, row.correct_intent, row.state) == ("退款 ü", "orders", "refunds", WAITING)
    assert (row.decided_at, row.decided_by, row.n_agree) == (None, None, 0)
    assert await store.reviews.get("r2") is None


async def test_of_a_decision_and_caller_the_last_correction_waits(store: Store) -> None:
    await store.records.append([correction("r1", "d"), correction("r2", "d", correct_intent="billing")])
    await store.records.append([correction("r3", "d", caller="bot")])
    assert await ids(store) == ["r2", "r3"]


async def test_an_empty_correction_takes_back_what_waits_and_nothing_else(store: Store) -> None:
    await store.records.append([correction("r1", "d1"), correction("r2", "d2"), correction("r3", "d3")])
    await store.reviews.decide("r2", ACCEPTED, "me", 2000)
    await store.records.append([correction(f"w{n}", f"d{n}", correct_intent="", text=None) for n in (1, 2)])
    assert await ids(store) == ["r2", "r3"]
    assert (await store.reviews.page(ANY, "", 9))[0].state is ACCEPTED


async def test_what_was_decided_is_not_asked_again(store: Store) -> None:
    await store.records.append([correction("r1", "d")])
    await store.reviews.decide("r1", REJECTED, "me", 2000)
    await store.records.append([correction("r2", "d"), correction("r3", "d", correct_intent="billing")])
    assert await ids(store) == ["r1", "r3"]


async def test_a_caller_has_a_bounded_number_of_corrections_that_wait(store: Store) -> None:
    await store.records.append([correction(f"r{n:04}") for n in range(1000)])
    await store.records.append([correction("s1", caller="bot"), correction("s2")])
    assert await store.reviews.n_waiting(ANY) == MAX_WAITING + 1
    assert await store.reviews.n_refused() == 1001 - MAX_WAITING
    assert await ids(store, ReviewFilter(caller="bot")) == ["s1"]
    await store.reviews.decide("r0000", REJECTED, "me", 2000)
    await store.records.append([correction("t1"), correction("t2")])
    assert await ids(store, after="s1") == ["t1"]
    assert await store.reviews.n_refused() == 1002 - MAX_WAITING


async def test_a_replacement_needs_no_room(store: Store) -> None:
    await store.records.append([correction(f"r{n:04}") for n in range(MAX_WAITING)])
    await store.records.append([correction("s1", "d-r0007", correct_intent="billing")])
    assert await store.reviews.n_waiting(ANY) == MAX_WAITING
    assert await store.reviews.n_refused() == 0


async def test_a_verdict_stays(store: Store) -> None:
    await store.records.append([correction("r1")])
    decided = await store.reviews.decide("r1", ACCEPTED, "me", 2000)
    assert decided is not None
    assert (decided.state, decided.decided_by, decided.decided_at) == (ACCEPTED, "me", 2000)
    assert await store.reviews.decide("r1", ACCEPTED, "you", 3000) == decided
    with pytest.raises(ConflictError, match="'r1' is accepted already"):
        await store.reviews.decide("r1", REJECTED, "you", 3000)
    assert await store.reviews.decide("none", REJECTED, "you", 3000) is None


async def test_a_later_accepted_correction_of_the_same_decision_takes_the_place_of_the_earlier(store: Store) -> None:
    await store.records.append([correction("r1", "d")])
    await store.reviews.decide("r1", ACCEPTED, "me", 2000)
    await store.records.append([correction("r2", "d", correct_intent="billing")])
    await store.reviews.decide("r2", ACCEPTED, "you", 3000)
    rows = await store.reviews.page(ANY, "", 9)
    assert [(row.review_id, row.state, row.decided_by) for row in rows] == [
        ("r1", REJECTED, "you"),
        ("r2", ACCEPTED, "you"),
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ANY, ["r1", "r2", "r3", "r4"]),
        (ReviewFilter(state=WAITING), ["r2", "r3", "r4"]),
        (ReviewFilter(namespaces=frozenset({"other"})), ["r3"]),
        (ReviewFilter(namespaces=frozenset()), []),
        (ReviewFilter(intent="orders"), ["r1", "r2", "r3"]),
        (ReviewFilter(intent="billing"), ["r2"]),
        (ReviewFilter(caller="bot", state=WAITING), ["r4"]),
    ],
)
async def test_corrections_are_found_by_what_they_are(store: Store, wanted: ReviewFilter, expected: list[str]) -> None:
    await store.records.append(
        [correction("r1"), correction("r2", correct_intent="billing"), correction("r3", namespace="other")]
    )
    await store.records.append([correction("r4", caller="bot", intent=None)])
    await store.reviews.decide("r1", ACCEPTED, "me", 2000)
    assert await ids(store, wanted) == expected
    n_waiting = len([each for each in expected if each != "r1"])
    assert await store.reviews.n_waiting(wanted) == n_waiting


async def test_pages_follow_each_other(store: Store) -> None:
    await store.records.append([correction(f"r{n}") for n in range(7)])
    assert [await ids(store, after=after, limit=3) for after in ("", "r2", "r5")] == [
        ["r0", "r1", "r2"],
        ["r3", "r4", "r5"],
        ["r6"],
    ]


async def test_other_callers_who_say_the_same_are_counted_once_each(store: Store) -> None:
    await store.records.append(
        [
            correction("r1"),
            correction("r2"),
            correction("r3", caller="bot"),
            correction("r4", caller="bot"),
            correction("r5", caller="desk"),
            correction("r6", caller="mail", correct_intent="billing"),
            correction("r7", caller="mail", text="my parcel"),
            correction("r8", caller="mail", namespace="other"),
        ]
    )
    await store.reviews.decide("r5", REJECTED, "me", 2000)
    found = {row.review_id: row.n_agree for row in await store.reviews.page(ANY, "", 9)}
    assert found == {"r1": 1, "r2": 1, "r3": 1, "r4": 1, "r5": 2, "r6": 0, "r7": 0, "r8": 0}


def test_counting_needs_no_walk_over_all_corrections(store_path: Path) -> None:
    def plan(query: Select[Any]) -> str:
        text = str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
        with closing(sqlite3.connect(store_path)) as connection:
            return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"))

    assert "SCAN" not in plan(n_waiting_query("web"))
    assert "SCAN" not in plan(agreement_query(["r1", "r2"])).replace("SCAN reviews USING INDEX sqlite_autoindex", "")


@pytest.fixture
async def store_path(store: Store, tmp_path: Path) -> Path:
    return tmp_path / "store.db"

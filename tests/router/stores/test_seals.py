from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.dialects import sqlite

from models.events import DecisionRow
from router.seals import GENESIS, Break, Seal, chained, first_break, record_digest
from router.stores.open import Store
from router.stores.seals import page_query
from tests.router.stores.samples import decision, event


def altered(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def ids(*numbers: int) -> list[DecisionRow]:
    return [decision(decision_id=f"d{number}", trace_id=f"t{number}") for number in numbers]


async def broken(store: Store, limit: int = 2) -> Break | None:
    """The first break, found page by page."""
    before = (0, GENESIS)
    while page := await store.seals.page(before[0], limit):
        before, found = first_break(before, page)
        if found is not None:
            return found
    return None


async def test_each_decision_is_sealed_in_order_and_tied_to_the_one_before(store: Store) -> None:
    rows = ids(1, 2, 3)
    await store.records.append([rows[0], event(), rows[1]])
    await store.records.append([rows[2]])
    page = await store.seals.page(0, 10)
    assert [(seal.sequence, seal.decision_id) for seal, _ in page] == [(1, "d1"), (2, "d2"), (3, "d3")]
    assert [row for _, row in page] == rows
    chain = GENESIS
    for seal, row in page:
        assert seal.salt is not None
        assert row is not None
        assert seal.digest == record_digest(seal.salt, row)
        chain = chained(chain, seal.decision_id, seal.digest)
        assert seal.chain == chain
    assert len({seal.salt for seal, _ in page}) == 3
    assert await broken(store) is None
    assert await store.seals.count() == (3, 3)


async def test_a_decision_seen_before_gets_no_second_seal(store: Store) -> None:
    one, two, three = ids(1, 2, 3)
    await store.records.append([one, two])
    await store.records.append([two._replace(answer="other"), three, three._replace(answer="other"), one])
    page = await store.seals.page(0, 10)
    assert [(seal.decision_id, row and row.answer) for seal, row in page] == [
        ("d1", one.answer),
        ("d2", two.answer),
        ("d3", three.answer),
    ]
    assert await broken(store) is None


async def test_many_at_once_are_sealed_in_order_too(store: Store) -> None:
    rows = ids(*range(100))
    await store.records.append(rows)
    assert [row for _, row in await store.seals.page(0, 200)] == rows
    assert await broken(store, 30) is None


async def test_the_seal_of_one_decision_comes_with_the_chain_before_it(store: Store) -> None:
    await store.records.append(ids(1, 2))
    (first, _), (second, _) = await store.seals.page(0, 10)
    assert await store.seals.seal("d1") == (first, GENESIS)
    assert await store.seals.seal("d2") == (second, first.chain)
    assert await store.seals.seal("d3") == (None, GENESIS)


@pytest.mark.parametrize(
    ("statement", "sequence", "detail"),
    [
        ("UPDATE decisions SET answer = 'x' WHERE decision_id = 'd2'", 2, "not the one that was sealed"),
        ("UPDATE decisions SET agent_id = 'x' WHERE decision_id = 'd3'", 3, "not the one that was sealed"),
        ("UPDATE decisions SET request = x'00ff' WHERE decision_id = 'd3'", 3, "not the one that was sealed"),
        ("DELETE FROM decisions WHERE decision_id = 'd4'", 4, "not noted as erased"),
        ("UPDATE seals SET digest = '00' WHERE sequence = 2", 2, "does not follow"),
        ("UPDATE seals SET chain = '00' WHERE sequence = 2", 2, "does not follow"),
        ("UPDATE seals SET decision_id = 'd9' WHERE sequence = 2", 2, "does not follow"),
        ("DELETE FROM seals WHERE sequence = 2", 3, "seals 2 to 2 are missing"),
        ("DELETE FROM seals WHERE sequence = 1", 2, "seals 1 to 1 are missing"),
    ],
)
async def test_the_chain_says_where_it_breaks(
    store: Store, path: Path, statement: str, sequence: int, detail: str
) -> None:
    await store.records.append(ids(1, 2, 3, 4, 5))
    altered(path, statement)
    found = await broken(store)
    assert found is not None
    assert found.sequence == sequence
    assert detail in found.detail


async def test_an_erased_record_leaves_the_chain_whole(store: Store, path: Path) -> None:
    await store.records.append(ids(1, 2, 3))
    altered(path, "UPDATE seals SET salt = NULL, erased_at = 5 WHERE sequence = 2")
    altered(path, "DELETE FROM decisions WHERE decision_id = 'd2'")
    assert await broken(store) is None


async def test_newest_seals_that_were_taken_away_are_missed_in_the_count(store: Store, path: Path) -> None:
    await store.records.append(ids(1, 2, 3))
    altered(path, "DELETE FROM seals WHERE sequence = 3")
    assert await broken(store) is None
    assert await store.seals.count() == (2, 3)


async def test_pages_of_the_chain_are_read_along_the_keys(store: Store, path: Path) -> None:
    text = str(page_query(5, 10).compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    with closing(sqlite3.connect(path)) as connection:
        plan = "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"))
    assert "SEARCH seals USING INTEGER PRIMARY KEY" in plan
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan


def test_a_digest_covers_every_column_and_the_salt() -> None:
    row = decision()
    known = record_digest("ab", row)
    assert record_digest("ac", row) != known
    for place, name in enumerate(DecisionRow._fields):
        changed = [*row[:place], 7 if name == "happened_at" else "other", *row[place + 1 :]]
        assert record_digest("ab", DecisionRow._make(changed)) != known, name
    assert record_digest("ab", row._replace(request=row.request + " ")) != known


def test_a_record_that_can_never_be_stored_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be sealed"):
        record_digest("ab", decision(answer="\ud800"))


def test_a_seal_names_its_columns() -> None:
    assert Seal._fields == ("sequence", "decision_id", "salt", "digest", "chain", "happened_at", "erased_at", "caller")

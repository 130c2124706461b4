from __future__ import annotations

from pathlib import Path

from sqlalchemy import text
from sqlalchemy.dialects import sqlite

from models.events import Row
from router.stores.failed import nobody_query, open_failed, outcomes_query
from router.stores.open import open_store
from tests.router.stores.samples import decision, outcome, url_of


async def test_pages_of_outcomes_go_backwards_without_amended_ones(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    rows: list[Row] = [decision(f"d{number}") for number in range(5)]
    rows += [outcome(f"d{number}") for number in range(5)]
    rows += [outcome("d3", body='{"again": 1}'), outcome("d3", attempt=2), outcome("no such decision")]
    async with open_store(url) as store:
        await store.records.append(rows)
    async with open_failed(url) as failed:
        first = await failed.outcomes(0, None, 4)
        second = await failed.outcomes(0, first[-1].sequence, 4)
        assert await failed.outcomes(1001, None, 4) == []

    assert [(each.decision_id, each.attempt) for each in first] == [("d3", 2), ("d3", 1), ("d4", 1), ("d2", 1)]
    assert first[1].body == '{"again": 1}'
    assert [each.decision_id for each in second] == ["d1", "d0"]
    assert (first[0].namespace, first[0].agent_id, bool(first[0].is_shadow)) == ("default", "orders", False)


async def test_an_own_choice_is_told_from_a_text_that_speaks_of_one(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    own = decision("own")._replace(request='{"caller_choice":{"agent_id":"a"}}')
    quoted = decision("quoted")._replace(request='{"utterance":"\\"caller_choice\\":{"}')
    async with open_store(url) as store:
        await store.records.append([own, quoted, outcome("own"), outcome("quoted")])
    async with open_failed(url) as failed:
        found = {each.decision_id: bool(each.is_shadow) for each in await failed.outcomes(0, None, 9)}

    assert found == {"own": True, "quoted": False}


async def test_decisions_that_named_nobody_are_paged_and_counted(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    rows = [decision(f"d{number}")._replace(action="fallback", happened_at=number // 2) for number in range(6)]
    async with open_store(url) as store:
        await store.records.append([*rows, decision("served"), decision("denied")._replace(action="deny")])
    async with open_failed(url) as failed:
        first = await failed.named_nobody(0, None, 4)
        second = await failed.named_nobody(0, (first[-1].happened_at, first[-1].decision_id), 4)
        assert await failed.count_nobody(0) == 7
        assert await failed.count_nobody(2) == 3
        assert [each.decision_id for each in await failed.decisions(["d0", "gone"])] == ["d0"]

    assert [each.decision_id for each in first] == ["denied", "d5", "d4", "d3"]
    assert [each.decision_id for each in second] == ["d2", "d1", "d0"]


async def test_pages_are_found_without_sorting(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    async with open_store(url):
        pass
    async with open_failed(url) as failed:
        for query in (outcomes_query(5, 9, 10), nobody_query(5, (9, "d"), 10)):
            said = query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
            explain = text(f"EXPLAIN QUERY PLAN {said}".replace(":", "\\:"))
            steps = await failed._database.read(lambda connection: [row[-1] for row in connection.execute(explain)])  # noqa: B023
            assert not any("TEMP B-TREE FOR ORDER" in step for step in steps), steps

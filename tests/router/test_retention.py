from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.learning_policy import RetentionPolicy
from models.retention import Dropped
from router.retention import BATCH, DAY_MS, Retention
from router.stores.open import open_store
from tests.builders import START_MS, FakeClock
from tests.router.asgi import speaking
from tests.router.stores.samples import decision, event, url_of

DAYS = {"decisions_days": 90.0, "outcomes_days": 400.0, "events_days": 30.0, "generations_days": 60.0}


class Shelf:
    """A `RetentionStore` with so many rows due of each kind; it notes what it was asked."""

    def __init__(self, oldest: int | None = None, **n_due: int) -> None:
        self.n_due = n_due
        self.oldest = oldest
        self.asked: list[tuple[Any, ...]] = []
        self.n_free = 0

    def _some(self, name: str, limit: int, *before: int) -> int:
        self.asked.append((name, *before))
        n = min(limit, self.n_due.get(name, 0))
        self.n_due[name] = self.n_due.get(name, 0) - n
        self.n_free += n
        return n

    async def redaction_key(self) -> bytes:
        return b"key"

    async def drop_decisions(self, before_ms: int, at_ms: int, limit: int) -> int:
        assert at_ms == START_MS
        return self._some("decisions", limit, before_ms)

    async def drop_outcomes(self, before_ms: int, limit: int) -> int:
        return self._some("outcomes", limit, before_ms)

    async def drop_events(self, before_ms: int, limit: int) -> int:
        return self._some("events", limit, before_ms)

    async def drop_reviews(self, before_ms: int, accepted_before_ms: int, limit: int) -> int:
        return self._some("reviews", limit, before_ms, accepted_before_ms)

    async def compact_tickets(self, limit: int) -> int:
        return self._some("tickets", limit)

    async def oldest_decision(self) -> int | None:
        return self.oldest

    async def give_back(self, n_pages: int) -> int:
        self.n_free = max(0, self.n_free - n_pages)
        return self.n_free


def ago(days: float) -> int:
    return int(START_MS - days * DAY_MS)


def retention_of(shelf: Shelf, **rules: Any) -> tuple[Retention, list[int], list[float]]:
    """With the instants before which generations were forgotten, and the waits."""
    forgotten: list[int] = []
    waits: list[float] = []

    async def forget(before_ms: int) -> int:
        forgotten.append(before_ms)
        return 3

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    policy = RetentionPolicy(**{**DAYS, **rules})
    return Retention(shelf, forget, lambda: policy, FakeClock(), sleep=sleep), forgotten, waits


async def test_each_kind_goes_at_its_own_age() -> None:
    shelf = Shelf(decisions=1, outcomes=2, events=3, reviews=4)
    retention, _, _ = retention_of(shelf)
    assert await retention.drop() == Dropped(1, 2, 3, 4, 0, 3)
    assert shelf.asked == [
        ("decisions", ago(90)),
        ("outcomes", ago(400)),
        ("events", ago(30)),
        ("reviews", ago(90), ago(400)),
    ]


async def test_without_an_age_nothing_goes() -> None:
    shelf = Shelf()
    retention, forgotten, _ = retention_of(shelf, **dict.fromkeys(DAYS))
    assert await retention.drop() == Dropped()
    assert {before for _, *all_before in shelf.asked for before in all_before} == {0}
    assert forgotten == []


async def test_much_goes_in_small_steps_with_pauses() -> None:
    shelf = Shelf(events=3 * BATCH + 5)
    retention, _, waits = retention_of(shelf)
    assert (await retention.drop()).events == 3 * BATCH + 5
    assert [name for name, *_ in shelf.asked].count("events") == 4
    assert len(waits) >= 3


@pytest.mark.parametrize(("utterances", "n"), [("full", 0), ("redacted", 2), ("digest", 2)])
async def test_requests_of_tickets_that_are_over_go_where_utterances_are_not_kept(utterances: str, n: int) -> None:
    retention, _, _ = retention_of(Shelf(tickets=2), utterances=utterances)
    assert (await retention.drop()).tickets == n


@pytest.mark.parametrize(
    ("oldest", "expected"),
    [(None, ago(60)), (ago(89), ago(90)), (ago(10), ago(60))],
    ids=["no decision", "an older decision needs them", "younger decisions need none"],
)
async def test_generations_stay_as_long_as_a_decision_needs_them(oldest: int | None, expected: int) -> None:
    retention, forgotten, _ = retention_of(Shelf(oldest))
    await retention.drop()
    assert forgotten == [expected]


async def test_free_pages_are_given_back_but_for_some() -> None:
    shelf = Shelf(events=7500)
    retention, _, _ = retention_of(shelf)
    await retention.drop()
    assert shelf.n_free < 2000


async def test_a_service_drops_what_is_old_by_itself(tmp_path: Path) -> None:
    old = decision("old")._replace(happened_at=1000)
    fresh = decision("fresh")._replace(happened_at=int(time.time() * 1000))
    async with open_store(url_of(tmp_path / "store.db")) as store:
        await store.records.append([old, fresh, event(happened_at=1000)])
    async with speaking(tmp_path, classifier=False) as (client, parts):
        await until_gone(client, "/decisions/old")
        response = await client.get("/decisions/old")
        assert (response.status_code, response.json()["code"]) == (410, "erased")
        assert (await client.get("/decisions/fresh")).status_code == 200
        assert parts["readiness"].problems.get("retention") is None


async def until_gone(client: httpx.AsyncClient, path: str) -> None:
    ends_s = time.monotonic() + 10
    while (await client.get(path)).status_code == 200:
        assert time.monotonic() < ends_s

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Select
from sqlalchemy.dialects import sqlite

from models.errors import ConflictError
from models.queue import (
    ENDED_STATES,
    OPEN_STATES,
    Claim,
    SettleRequest,
    TicketCounts,
    TicketFilter,
    TicketRow,
    TicketState,
)
from router.stores import tables
from router.stores.open import Store, open_store
from router.stores.ticket_queries import counts_query, n_open_query, oldest_query, page_query
from tests.router.stores.samples import url_of

MAX_CLAIMS = 3


def row(ticket: str = "t1", **fields: Any) -> TicketRow:
    values: dict[str, Any] = {
        "namespace": "default",
        "intent": "order_status",
        "decision_id": "d1",
        "trace_id": "tr1",
        "caller": "shop",
        "state": TicketState.WAITING,
        "n_claims": 0,
        "claim_id": None,
        "claimed_by": None,
        "claimed_until": None,
        "created_at": 1000,
        "expires_at": 10_000,
        "settled_at": None,
        "note": None,
    }
    return TicketRow(ticket=ticket, **{**values, **fields})


def claim_of(claim_id: str = "c1", **fields: Any) -> Claim:
    values: dict[str, Any] = {
        "namespace": "default",
        "intents": None,
        "limit": 100,
        "claimed_by": "worker",
        "until_ms": 3000,
        "max_claims": MAX_CLAIMS,
        "max_chars": 1_000_000,
    }
    return Claim(claim_id=claim_id, **{**values, **fields})


async def put(store: Store, *rows: TicketRow, request: str = "{}", max_open: int = 100) -> list[bool]:
    return [await store.tickets.put(each, request, max_open) for each in rows]


async def claimed(store: Store, now_ms: int = 2000, **fields: Any) -> list[str]:
    return [each.ticket for each, _ in await store.tickets.claim(claim_of(**fields), now_ms)]


async def settle(
    store: Store, status: Any = "settled", *, ticket: str = "t1", claim_id: str = "c1", now_ms: int = 2500
) -> TicketRow:
    request = SettleRequest(claim_id=claim_id, status=status, note=f"it is {status}")
    found = await store.tickets.settle(ticket, request, now_ms, MAX_CLAIMS)
    assert found is not None
    return found


async def state(store: Store, ticket: str = "t1") -> TicketState:
    found = await store.tickets.get(ticket)
    assert found is not None
    return found.state


def test_a_row_has_the_columns_of_the_table_but_for_the_request() -> None:
    assert set(TicketRow._fields) == {column.name for column in tables.tickets.columns} - {"request"}
    assert {*OPEN_STATES, *ENDED_STATES} == set(TicketState)


async def test_a_ticket_comes_back_equal_and_its_request_byte_for_byte(store: Store) -> None:
    request = '{"utterance": "订单在哪里 \\u0000", "payload": {"n": 0.1234567890123456789012}}'
    assert await put(store, row(), request=request) == [True]
    assert await store.tickets.get("t1") == row()
    assert await store.tickets.get("t2") is None
    ((taken, text),) = await store.tickets.claim(claim_of(), 2000)
    assert text == request
    assert taken == row(state=TicketState.CLAIMED, n_claims=1, claim_id="c1", claimed_by="worker", claimed_until=3000)
    assert await store.tickets.get("t1") == taken


async def test_the_oldest_waiting_are_claimed_first_and_those_of_one_millisecond_as_they_came(store: Store) -> None:
    await put(store, row("z", created_at=5), row("c", created_at=3), row("a", created_at=5), row("b", created_at=4))
    assert await claimed(store, limit=3) == ["c", "b", "z"]
    assert await claimed(store, claim_id="c2") == ["a"]
    assert await claimed(store, claim_id="c3") == []


async def test_a_claim_gets_only_its_namespace_and_its_intents(store: Store) -> None:
    await put(store, row("a", namespace="other"), row("b", intent="refund"), row("c"), row("d", intent="greet"))
    assert await claimed(store, intents=("refund", "greet"), claim_id="c1") == ["b", "d"]
    assert await claimed(store, claim_id="c2") == ["c"]
    assert await claimed(store, namespace="other", claim_id="c3") == ["a"]


async def test_long_requests_come_in_smaller_numbers_but_one_always_comes(store: Store) -> None:
    await put(store, *(row(name) for name in "abcd"), request="x" * 100)
    assert await claimed(store, claim_id="c1", max_chars=10) == ["a"]
    assert await claimed(store, claim_id="c2", max_chars=200) == ["b", "c"]


async def test_workers_that_claim_at_once_never_get_the_same(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    async with open_store(url) as one, open_store(url) as other:
        await put(one, *(row(f"{n:03}", created_at=n) for n in range(60)))
        claims = [claimed(each, claim_id=f"c{n}", limit=7) for n, each in enumerate([one, other] * 5)]
        taken = [ticket for tickets in await asyncio.gather(*claims) for ticket in tickets]
    assert sorted(taken) == [f"{n:03}" for n in range(60)]


async def test_an_expired_ticket_is_never_handed_out(store: Store) -> None:
    await put(store, row("a", expires_at=2000), row("b", expires_at=2001))
    assert await claimed(store, now_ms=2000) == ["b"]
    assert await store.tickets.due(2000) == ["default"]
    assert await store.tickets.expire("default", 2000, MAX_CLAIMS, 10) == 1
    assert await store.tickets.get("a") == row("a", expires_at=2000, state=TicketState.EXPIRED, settled_at=2000)
    assert await store.tickets.due(2000) == []


async def test_a_claim_that_runs_out_leaves_its_ticket_waiting_in_its_old_place(store: Store) -> None:
    await put(store, row("a", created_at=1), row("b", created_at=2))
    assert await claimed(store, limit=1) == ["a"]
    assert await claimed(store, claim_id="c2", now_ms=2999, limit=1) == ["b"]
    assert await claimed(store, claim_id="c3", now_ms=3000) == ["a", "b"]


async def test_after_the_last_claim_that_runs_out_a_ticket_is_given_up(store: Store) -> None:
    await put(store, row())
    for n in range(MAX_CLAIMS):
        assert await claimed(store, claim_id=f"c{n}", now_ms=2000 + n, until_ms=2001 + n) == ["t1"]
    assert await claimed(store, claim_id="more", now_ms=2100) == []
    found = await store.tickets.get("t1")
    assert found == row(
        state=TicketState.GIVEN_UP, n_claims=MAX_CLAIMS, claim_id=None, claimed_by="worker", settled_at=2100
    )


async def test_a_claimed_ticket_outlives_its_time_but_not_its_claim(store: Store) -> None:
    await put(store, row("a", expires_at=2100), row("b", expires_at=2100))
    await claimed(store)
    assert await store.tickets.expire("default", 2999, MAX_CLAIMS, 10) == 0
    assert (await settle(store, ticket="a", now_ms=2999)).state is TicketState.SETTLED
    assert await store.tickets.expire("default", 3000, MAX_CLAIMS, 10) == 1
    assert await state(store, "b") is TicketState.EXPIRED


async def test_expiry_stays_within_its_namespace_and_its_limit(store: Store) -> None:
    names = [f"t{n}" for n in range(5)]
    await put(store, *(row(name, expires_at=2000) for name in names), row("x", namespace="other", expires_at=2000))
    assert await store.tickets.due(2000) == ["default", "other"]
    assert [await store.tickets.expire("default", 2000, MAX_CLAIMS, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert await store.tickets.due(2000) == ["other"]


@pytest.mark.parametrize(("status", "wanted"), [("settled", TicketState.SETTLED), ("given_up", TicketState.GIVEN_UP)])
async def test_a_settlement_ends_a_ticket_and_doing_it_again_changes_nothing(
    store: Store, status: str, wanted: TicketState
) -> None:
    await put(store, row())
    await claimed(store)
    first = await settle(store, status)
    assert (first.state, first.settled_at, first.claimed_until, first.note) == (wanted, 2500, None, f"it is {status}")
    assert await settle(store, status, now_ms=9999) == first
    assert await store.tickets.get("t1") == first
    for other in {"settled", "given_up", "returned"} - {status}:
        with pytest.raises(ConflictError, match=f"'t1' is {wanted}"):
            await settle(store, other)
    assert await claimed(store, claim_id="c2", now_ms=9000) == []


async def test_a_returned_ticket_waits_in_its_old_place_and_the_claim_does_not_count(store: Store) -> None:
    await put(store, row("t1", created_at=1), row("t2", created_at=2))
    await claimed(store, limit=1)
    returned = await settle(store, "returned")
    assert (returned.state, returned.n_claims, returned.settled_at) == (TicketState.WAITING, 0, None)
    assert await settle(store, "returned") == returned
    with pytest.raises(ConflictError):
        await settle(store, "settled")
    assert await claimed(store, claim_id="c2", until_ms=4000) == ["t1", "t2"]
    with pytest.raises(ConflictError):
        await settle(store, "returned")


async def test_a_ticket_returned_after_its_time_expires(store: Store) -> None:
    await put(store, row(expires_at=2400))
    await claimed(store)
    assert await settle(store, "returned") == await settle(store, "returned", now_ms=2900)
    assert await state(store) is TicketState.EXPIRED


@pytest.mark.parametrize("status", ["settled", "returned", "given_up"])
async def test_only_the_claim_that_holds_a_ticket_settles_it(store: Store, status: str) -> None:
    await put(store, row())
    with pytest.raises(ConflictError):
        await settle(store, status)
    await claimed(store)
    with pytest.raises(ConflictError):
        await settle(store, status, claim_id="c2")
    with pytest.raises(ConflictError):
        await settle(store, status, now_ms=3000)
    assert (await settle(store, now_ms=2999)).state is TicketState.SETTLED


async def test_settling_what_is_not_there_is_none(store: Store) -> None:
    request = SettleRequest(claim_id="c1", status="settled")
    assert await store.tickets.settle("t1", request, 2000, MAX_CLAIMS) is None


async def test_a_full_namespace_takes_no_more_until_one_of_its_tickets_ends(store: Store) -> None:
    assert await put(store, row("a"), row("b", expires_at=2600), row("c"), max_open=2) == [True, True, False]
    assert await put(store, row("d", namespace="other"), max_open=2) == [True]
    await claimed(store, limit=1)
    assert await put(store, row("e"), max_open=2) == [False]
    await settle(store, "returned", ticket="a")
    assert await put(store, row("e"), max_open=2) == [False]
    await claimed(store, limit=1, claim_id="c2")
    await settle(store, ticket="a", claim_id="c2")
    assert await put(store, row("e"), row("f"), max_open=2) == [True, False]
    await store.tickets.expire("default", 2600, MAX_CLAIMS, 10)
    assert await put(store, row("g"), row("h"), max_open=2) == [True, False]


async def test_of_many_that_come_at_once_exactly_as_many_as_fit_are_taken(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    async with open_store(url) as store:
        taken = await asyncio.gather(*(store.tickets.put(row(f"{n:04}"), "{}", 300) for n in range(700)))
        assert taken == [n < 300 for n in range(700)]
    async with open_store(url) as store:
        assert await store.tickets.counts(TicketFilter()) == TicketCounts(300, 0, 1000)
        assert await put(store, row("more"), max_open=300) == [False]


async def test_a_refused_settlement_leaves_the_count_of_open_tickets_right(store: Store) -> None:
    await put(store, row("a"), row("b", expires_at=3000), max_open=2)
    await claimed(store)
    for _ in range(3):
        with pytest.raises(ConflictError):
            await settle(store, ticket="b", now_ms=3000)
    assert await put(store, row("c"), max_open=1) == [False]
    assert await put(store, row("c"), row("d"), max_open=2) == [False, False]


async def test_a_ticket_that_cannot_be_held_keeps_no_other_out(store: Store) -> None:
    names = ["a", "b\ud800", "c"]
    found = await asyncio.gather(*(put(store, row(name), max_open=3) for name in names), return_exceptions=True)
    assert [found[0], found[2]] == [[True], [True]]
    assert isinstance(found[1], ValueError)
    assert await put(store, row("d"), row("e"), max_open=3) == [True, False]


async def test_a_put_whose_caller_left_is_finished_and_the_next_one_works(store: Store) -> None:
    leaving = asyncio.create_task(store.tickets.put(row("a"), "{}", 10))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await put(store, row("b")) == [True]
    assert await state(store, "a") is TicketState.WAITING


async def test_pages_come_by_id_and_hold_what_is_asked_for(store: Store) -> None:
    rows = [
        row(f"{n:02}", namespace="x" if n % 2 else "y", intent="i" if n % 3 else "j", created_at=100 - n)
        for n in range(20)
    ]
    await put(store, *rows)
    await claimed(store, namespace="x", limit=4)
    everything = await store.tickets.page(TicketFilter(), "", 100)
    assert [each.ticket for each in everything] == [each.ticket for each in rows]
    for wanted in [
        TicketFilter(namespaces=frozenset({"x"})),
        TicketFilter(namespaces=frozenset({"x", "y"}), intent="j"),
        TicketFilter(state=TicketState.CLAIMED),
        TicketFilter(namespaces=frozenset({"y"}), state=TicketState.WAITING, intent="i"),
        TicketFilter(namespaces=frozenset()),
    ]:
        got: list[TicketRow] = []
        while page := await store.tickets.page(wanted, got[-1].ticket if got else "", 3):
            assert len(page) <= 3
            got += page
        assert got == [
            each
            for each in everything
            if (wanted.namespaces is None or each.namespace in wanted.namespaces)
            and wanted.state in (None, each.state)
            and wanted.intent in (None, each.intent)
        ]
        of_it = wanted._replace(state=None)
        near = [each for each in await store.tickets.page(of_it, "", 100) if each.state in OPEN_STATES]
        waiting = [each.created_at for each in near if each.state is TicketState.WAITING]
        assert await store.tickets.counts(wanted) == (
            len(waiting),
            len(near) - len(waiting),
            min(waiting, default=None),
        )


async def test_only_tickets_that_ended_long_ago_are_forgotten_some_at_a_time(store: Store) -> None:
    await put(store, row("open"), *(row(f"t{n}", expires_at=2000) for n in range(5)), row("late", expires_at=2100))
    await store.tickets.expire("default", 2000, MAX_CLAIMS, 10)
    await store.tickets.expire("default", 2100, MAX_CLAIMS, 10)
    assert [await store.tickets.forget(2001, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert [each.ticket for each in await store.tickets.page(TicketFilter(), "", 10)] == ["late", "open"]


def plan(path: Path, query: Select[Any]) -> str:
    text = str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(each[3] for each in connection.execute(f"EXPLAIN QUERY PLAN {text}"))


async def test_claiming_and_counting_go_through_the_index_without_sorting(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    oldest = plan(path, oldest_query(claim_of(), 2000))
    assert "USING INDEX tickets_open (state=? AND namespace=?)" in oldest
    assert "TEMP B-TREE" not in oldest
    assert "USING COVERING INDEX tickets_open" in plan(path, n_open_query("default"))
    assert "USING COVERING INDEX tickets_open" in plan(path, counts_query(TicketFilter(frozenset({"default"}))))
    assert "USING INDEX" in plan(path, page_query(TicketFilter(), "a", 10))
    assert "SCAN" not in plan(path, page_query(TicketFilter(state=TicketState.WAITING), "a", 10))

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from models.card import AgentCard, FallbackForm, FallbackForms, Price, Probe, RateLimit, Retry
from models.ports import StoredCard
from router.stores.open import Store
from tests.router.stores.samples import card

FULL = card(
    namespace="prod/commerce",
    display_name="Örders 订单",
    labels={"tenant": "acme"},
    retry=Retry(max_attempts=2),
    probe=Probe(path="/ping"),
    allowed_sources=[],
    rate_limit=RateLimit(max_calls=3),
    fallback=FallbackForms(full=FallbackForm(message_internal="down", message_user="later")),
    price=Price(per_call_usd=0.1),
    a2a={"name": "x", "skills": [{"n": 1e300, "deep": [None, True, 10**30]}]},
)


@pytest.mark.parametrize("stored", [card(), FULL, AgentCard(agent_id="bare")])
async def test_a_card_comes_back_equal(store: Store, stored: AgentCard) -> None:
    await store.cards.put_card(stored)
    assert await store.cards.load_cards() == [StoredCard(stored, "api")]


async def test_putting_replaces_the_card_with_the_same_key_only(store: Store) -> None:
    await store.cards.put_card(card(version="1.0.0"))
    await store.cards.put_card(card(version="2.0.0"))
    await store.cards.put_card(card(version="1.0.0", owner="someone"))
    assert [(stored.card.version, stored.card.owner) for stored in await store.cards.load_cards()] == [
        ("1.0.0", "someone"),
        ("2.0.0", ""),
    ]


async def test_cards_from_files_are_replaced_as_a_whole_and_those_from_the_api_stay(store: Store) -> None:
    await store.cards.put_card(card("api"))
    await store.cards.replace_file_cards([card("a"), card("b")])
    await store.cards.replace_file_cards([card("b"), card("c")])
    assert [(stored.card.agent_id, stored.source) for stored in await store.cards.load_cards()] == [
        ("api", "api"),
        ("b", "file"),
        ("c", "file"),
    ]
    await store.cards.replace_file_cards([])
    assert [stored.card.agent_id for stored in await store.cards.load_cards()] == ["api"]


async def test_a_file_card_does_not_displace_an_api_card_with_its_key(store: Store) -> None:
    await store.cards.replace_file_cards([card(owner="file")])
    await store.cards.put_card(card(owner="api"))
    await store.cards.replace_file_cards([card(owner="file")])
    assert await store.cards.load_cards() == [StoredCard(card(owner="api"), "api")]


async def test_deleting_forgets_the_named_cards(store: Store) -> None:
    await store.cards.replace_file_cards([card("a"), card("b"), card("c")])
    await store.cards.delete_cards([card("a").key, card("c").key, ("default", "never", "1.0.0")])
    await store.cards.delete_cards([])
    assert [stored.card.agent_id for stored in await store.cards.load_cards()] == ["b"]


async def test_a_card_that_no_longer_validates_is_logged_left_out_and_kept(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.cards.put_card(card("good"))
    await store.cards.put_card(card("bad"))
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("UPDATE cards SET body = '{\"agent_id\": 7}' WHERE agent_id = 'bad'")
    assert [stored.card.agent_id for stored in await store.cards.load_cards()] == ["good"]
    assert "default/bad 1.0.0" in caplog.text
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("SELECT count(*) FROM cards").fetchone() == (2,)


async def test_cards_put_at_once_are_all_stored(store: Store) -> None:
    await asyncio.gather(*(store.cards.put_card(card(f"agent{n}")) for n in range(30)))
    assert len(await store.cards.load_cards()) == 30

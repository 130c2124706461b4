from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from models.ports import Embedded, VectorStore
from router.card_vectors import CardVectors
from router.registry import Registry
from router.stores.open import Store, open_store
from tests.builders import FakeClock, capability, card
from tests.router.memory_store import CountingEmbedder, MemoryStore, pool_of

TEXTS = ["where is my parcel", "cancel my order", "我的快递到哪了"]
DEFAULT = ("default",)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}", clock=FakeClock()) as opened:
        yield opened


async def vectors_of(embedder: CountingEmbedder, store: VectorStore, texts: Sequence[str]) -> Mapping[str, Embedded]:
    """What a new process with this encoder gets."""
    with pool_of(embedder) as pool:
        return await CardVectors(pool, store).of(texts)


async def start(embedder: CountingEmbedder, store: Store, cards: int | None = None) -> Registry:
    """A registry as after a start of the process, with cards from a file or the stored ones."""
    files = None if cards is None else [card(f"agent_{n}", capability("track", [f"text {n}"])) for n in range(cards)]
    with pool_of(embedder) as pool:
        registry = Registry(CardVectors(pool, store.vectors), store.cards, store.policies, FakeClock())
        await registry.start(files, None)
        return registry


async def test_each_text_is_embedded_once(store: Store) -> None:
    embedder = CountingEmbedder()
    with pool_of(embedder) as pool:
        vectors = CardVectors(pool, store.vectors)
        first = await vectors.of(TEXTS)
        again = await vectors.of(TEXTS)
    assert first == again == {text: CountingEmbedder().embed(text) for text in TEXTS}
    assert sorted(embedder.asked) == sorted(TEXTS)


async def test_a_restart_embeds_nothing_again(store: Store) -> None:
    before = await vectors_of(CountingEmbedder(), store.vectors, TEXTS)
    restarted = CountingEmbedder()
    assert await vectors_of(restarted, store.vectors, TEXTS) == before
    assert restarted.asked == []


async def test_a_restart_embeds_only_what_is_new(store: Store) -> None:
    await vectors_of(CountingEmbedder(), store.vectors, TEXTS)
    restarted = CountingEmbedder()
    found = await vectors_of(restarted, store.vectors, [*TEXTS, "one more"])
    assert restarted.asked == ["one more"]
    assert set(found) == {*TEXTS, "one more"}


async def test_another_encoder_embeds_all_anew_and_never_sees_the_vectors_of_the_first(store: Store) -> None:
    first = await vectors_of(CountingEmbedder("one"), store.vectors, TEXTS)
    other = CountingEmbedder("two", turn=7)
    second = await vectors_of(other, store.vectors, TEXTS)
    assert sorted(other.asked) == sorted(TEXTS)
    assert all(first[text].vector != second[text].vector for text in TEXTS)
    assert await vectors_of(CountingEmbedder("one"), store.vectors, TEXTS) == first


async def test_what_no_card_says_any_more_is_forgotten_in_memory_and_kept_in_the_store(store: Store) -> None:
    embedder = CountingEmbedder()
    with pool_of(embedder) as pool:
        vectors = CardVectors(pool, store.vectors)
        await vectors.of(["a", "b"])
        assert set(await vectors.of(["b"])) == {"b"}
        assert set(await vectors.of(["a", "b"])) == {"a", "b"}
    assert sorted(embedder.asked) == ["a", "b"]


async def test_nothing_is_asked_of_anyone_for_no_texts() -> None:
    embedder = CountingEmbedder()
    assert await vectors_of(embedder, MemoryStore(), []) == {}
    assert embedder.asked == []


async def test_the_unknown_share_outlives_a_restart(store: Store) -> None:
    await vectors_of(CountingEmbedder(), store.vectors, TEXTS)
    found = await vectors_of(CountingEmbedder(), store.vectors, TEXTS)
    assert [found[text].unknown_share for text in TEXTS] == [0.0, 0.0, 1.0]


async def test_restarted_with_the_same_encoder_the_index_is_the_same_and_nothing_is_embedded(store: Store) -> None:
    first, second = CountingEmbedder(), CountingEmbedder()
    before = await start(first, store, cards=40)
    after = await start(second, store)
    assert len(first.asked) == 40
    assert second.asked == []
    query = CountingEmbedder().embed("text 7").vector
    expected = before.snapshot.scope(DEFAULT).neighbours(query, 5)
    assert after.snapshot.scope(DEFAULT).neighbours(query, 5) == expected


async def test_restarted_with_another_encoder_every_text_is_embedded_before_there_is_a_snapshot(store: Store) -> None:
    await start(CountingEmbedder("one"), store, cards=40)
    other = CountingEmbedder("two", turn=7)
    registry = await start(other, store)
    assert len(other.asked) == 40
    snapshot = registry.snapshot
    assert (snapshot.encoder_id, snapshot.index.n_rows) == ("two", 40)
    for number in range(40):
        # every row is one of the second encoder's: its own vector of the text finds an identical row
        [found] = snapshot.scope(DEFAULT).neighbours(other.embed(f"text {number}").vector, 1)
        assert found.similarity == 1.0
    [strange] = snapshot.scope(DEFAULT).neighbours(CountingEmbedder("one").embed("text 0").vector, 1)
    assert strange.similarity < 0.99

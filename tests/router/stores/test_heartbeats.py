from __future__ import annotations

from pathlib import Path

from models.ports import StoredHeartbeat
from router.stores.open import Store, open_store
from tests.router.stores.samples import url_of


def beat(happened_at: int, version: str = "1.0.0", digest: str = "a", agent_id: str = "orders") -> StoredHeartbeat:
    return StoredHeartbeat("default", agent_id, version, digest * 64, happened_at)


async def test_nothing_was_heard_at_first(store: Store) -> None:
    await store.heartbeats.save([])
    assert await store.heartbeats.load() == []


async def test_the_last_sign_of_life_of_each_version_is_kept(store: Store) -> None:
    await store.heartbeats.save([beat(1000), beat(1000, "2.0.0"), beat(5, agent_id="desk")])
    await store.heartbeats.save([beat(2000, digest="b"), beat(3000, digest="c")])
    assert await store.heartbeats.load() == [
        beat(5, agent_id="desk"),
        beat(3000, digest="c"),
        beat(1000, "2.0.0"),
    ]


async def test_an_earlier_sign_of_life_takes_nothing_back(store: Store) -> None:
    await store.heartbeats.save([beat(3000, digest="b")])
    await store.heartbeats.save([beat(2000, digest="a")])
    assert await store.heartbeats.load() == [beat(3000, digest="b")]


async def test_signs_of_life_outlive_the_process(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    async with open_store(url) as store:
        await store.heartbeats.save([beat(3000)])
    async with open_store(url) as store:
        assert await store.heartbeats.load() == [beat(3000)]

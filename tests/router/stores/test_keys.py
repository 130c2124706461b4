from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from models.errors import ConflictError, StoreError
from models.key import Key
from router.stores.open import Store


def key(name: str = "shop", key_id: str = "a" * 16, created_at: int = 1) -> Key:
    return Key(
        key_id=key_id,
        name=name,
        secret_sha256="b" * 64,
        permissions=frozenset({"user:erase", "router:read"}),
        namespaces=frozenset({"prod/commerce"}),
        callers=None,
        created_at=created_at,
    )


async def test_a_key_comes_back_equal(store: Store) -> None:
    await store.keys.add_key(key())
    assert await store.keys.load_keys() == [key()]


async def test_an_empty_set_is_not_the_same_as_none(store: Store) -> None:
    nowhere = key().model_copy(update={"namespaces": frozenset(), "callers": frozenset()})
    await store.keys.add_key(nowhere)
    assert await store.keys.load_keys() == [nowhere]


async def test_a_name_is_taken_until_its_key_is_revoked(store: Store) -> None:
    await store.keys.add_key(key())
    with pytest.raises(ConflictError, match="'shop' exists"):
        await store.keys.add_key(key(key_id="c" * 16))
    assert await store.keys.revoke_key("shop", 5)
    await store.keys.add_key(key(key_id="c" * 16, created_at=2))
    assert [(found.key_id[0], found.revoked_at) for found in await store.keys.load_keys()] == [("a", 5), ("c", None)]


async def test_of_two_keys_of_one_name_made_at_once_one_is_stored(store: Store) -> None:
    made = await asyncio.gather(
        *(store.keys.add_key(key(key_id=f"{n:016x}")) for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, ConflictError) for outcome in made) == 4
    assert len(await store.keys.load_keys()) == 1


async def test_revoking_says_whether_there_was_a_valid_key(store: Store) -> None:
    assert not await store.keys.revoke_key("shop", 5)
    await store.keys.add_key(key())
    assert await store.keys.revoke_key("shop", 5)
    assert not await store.keys.revoke_key("shop", 6)
    assert [found.revoked_at for found in await store.keys.load_keys()] == [5]


@pytest.mark.parametrize("permissions", ["not JSON", "7", '["a b"]', "[[]]"])
async def test_an_unreadable_key_is_an_error_rather_than_no_key(store: Store, tmp_path: Path, permissions: str) -> None:
    await store.keys.add_key(key())
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("UPDATE keys SET permissions = ?", (permissions,))
    with pytest.raises(StoreError, match="'shop' cannot be read"):
        await store.keys.load_keys()

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from models.errors import StoreError
from models.key import Key
from router.keys import KeyRing, create_key
from tests.router.stores.samples import FakeClock


class ListKeys:
    """A `KeyStore` in memory that counts its reads and can be told to fail."""

    def __init__(self, *keys: Key) -> None:
        self.keys = list(keys)
        self.n_reads = 0
        self.is_failing = False
        self.was_read = asyncio.Event()

    async def load_keys(self) -> Sequence[Key]:
        self.n_reads += 1
        self.was_read.set()
        await asyncio.sleep(0)
        if self.is_failing:
            raise StoreError("the disk is gone")
        return list(self.keys)

    async def add_key(self, key: Key) -> None:
        self.keys.append(key)

    async def revoke_key(self, name: str, at_ms: int) -> bool:
        self.keys = [key.model_copy(update={"revoked_at": at_ms}) for key in self.keys]
        return True


def made(name: str = "shop") -> tuple[Key, str]:
    return create_key(name, ["user:erase"], None, None, 1)


async def ring_of(store: ListKeys, clock: FakeClock | None = None) -> KeyRing:
    ring = KeyRing(clock=clock or FakeClock())
    await ring.refresh(store)
    return ring


def test_a_token_holds_the_key_id_and_256_random_bits_that_the_key_does_not() -> None:
    key, token = create_key("shop", ["a"], ["prod"], ["agent"], 7)
    _, key_id, secret = token.split("_")
    assert (key.key_id, len(secret)) == (key_id, 64)
    assert secret not in key.model_dump_json()
    assert (key.permissions, key.namespaces, key.callers) == (
        frozenset({"a"}),
        frozenset({"prod"}),
        frozenset({"agent"}),
    )
    assert made()[1] != made()[1]


def test_a_key_with_an_invalid_field_is_not_made() -> None:
    with pytest.raises(ValidationError):
        create_key("shop", ["two words"], None, None, 1)


async def test_a_token_finds_its_key() -> None:
    (key, token), (other, other_token) = made(), made("other")
    ring = await ring_of(ListKeys(key, other))
    assert ring.authenticate(token) == key
    assert ring.authenticate(other_token) == other


async def test_a_wrong_secret_a_foreign_id_and_a_revoked_key_are_refused() -> None:
    (key, token), (other, other_token) = made(), made("other")
    ring = await ring_of(ListKeys(key, other.model_copy(update={"revoked_at": 5})))
    assert ring.authenticate(f"ar_{key.key_id}_{'0' * 64}") is None
    assert ring.authenticate(f"ar_{key.key_id}_{other_token.split('_')[2]}") is None
    assert ring.authenticate(f"ar_{'0' * 16}_{token.split('_')[2]}") is None
    assert ring.authenticate(other_token) is None


@given(st.text() | st.from_regex(r"ar_[0-9a-f]{16}_[0-9a-f]{64}\n?") | st.text(st.characters(categories=["Cs"])))
def test_no_text_is_an_error(token: str) -> None:
    key, right = made()
    ring = KeyRing()
    assert ring.authenticate(token) is None
    asyncio.run(ring.refresh(ListKeys(key)))
    for text in (token, right + token, token + right):
        assert (ring.authenticate(text) is None) == (text != right)


@pytest.mark.parametrize("change", [str.upper, lambda t: t + "\n", lambda t: " " + t, lambda t: t[:-1], lambda t: ""])
async def test_a_token_is_taken_only_as_it_was_given(change: object) -> None:
    key, token = made()
    ring = await ring_of(ListKeys(key))
    assert callable(change)
    assert ring.authenticate(change(token)) is None


async def test_keys_are_enforced_once_there_was_one_and_revoking_the_last_does_not_end_it() -> None:
    store = ListKeys()
    ring = await ring_of(store)
    assert not ring.enforced
    await store.add_key(made()[0])
    await ring.refresh(store)
    assert ring.enforced
    await store.revoke_key("shop", 5)
    await ring.refresh(store)
    assert ring.enforced


async def test_keys_are_enforced_until_the_store_was_read() -> None:
    ring = KeyRing()
    store = ListKeys()
    store.is_failing = True
    assert ring.enforced
    with pytest.raises(StoreError):
        await ring.refresh(store)
    assert ring.enforced


async def test_a_failed_refresh_keeps_the_old_ring() -> None:
    key, token = made()
    store = ListKeys(key)
    ring = await ring_of(store)
    store.is_failing = True
    with pytest.raises(StoreError):
        await ring.refresh(store)
    assert ring.authenticate(token) == key


async def test_run_goes_on_after_an_error_and_logs_it_once(caplog: pytest.LogCaptureFixture) -> None:
    key, token = made()
    store = ListKeys()
    ring = KeyRing(refresh_ms=1)
    store.is_failing = True
    task = asyncio.create_task(ring.run(store))
    while store.n_reads < 4:
        store.was_read.clear()
        await store.was_read.wait()
    store.is_failing = False
    store.keys.append(key)
    for _ in range(2):
        store.was_read.clear()
        await store.was_read.wait()
    assert ring.authenticate(token) == key
    task.cancel()
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


async def test_a_key_made_a_moment_ago_works_at_once_for_all_who_present_it() -> None:
    store = ListKeys()
    ring = await ring_of(store)
    key, token = made()
    await store.add_key(key)
    assert ring.authenticate(token) is None
    assert await asyncio.gather(*(ring.authenticate_fresh(token, store) for _ in range(10))) == [key] * 10
    assert store.n_reads == 2


async def test_guessed_ids_read_the_store_once_in_a_hundred_milliseconds() -> None:
    clock = FakeClock()
    store = ListKeys(made()[0])
    ring = await ring_of(store, clock)
    guesses = [made()[1] for _ in range(20)]
    assert await asyncio.gather(*(ring.authenticate_fresh(guess, store) for guess in guesses)) == [None] * 20
    assert store.n_reads == 2
    clock.ms += 100
    assert await ring.authenticate_fresh(guesses[0], store) is None
    assert store.n_reads == 3


async def test_a_key_made_just_after_a_forced_read_waits_for_the_next_one() -> None:
    clock = FakeClock()
    store = ListKeys(made()[0])
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        clock.ms += seconds * 1000

    ring = KeyRing(clock=clock, sleep=sleep)
    await ring.refresh(store)
    for _ in range(2):
        key, token = made()
        await store.add_key(key)
        assert await ring.authenticate_fresh(token, store) == key
        clock.ms += 40
    assert waited == [pytest.approx(0.06)]
    assert store.n_reads == 3


async def test_known_ids_and_malformed_tokens_never_read_the_store() -> None:
    key, token = made()
    store = ListKeys(key)
    ring = await ring_of(store)
    assert await ring.authenticate_fresh(token, store) == key
    assert await ring.authenticate_fresh(f"ar_{key.key_id}_{'0' * 64}", store) is None
    assert await ring.authenticate_fresh("ü\ud800", store) is None
    assert store.n_reads == 1


async def test_an_unknown_key_is_refused_while_the_store_cannot_be_read() -> None:
    key, token = made()
    store = ListKeys(key)
    ring = await ring_of(store)
    store.is_failing = True
    assert await ring.authenticate_fresh(made()[1], store) is None
    assert await ring.authenticate_fresh(token, store) == key

from __future__ import annotations

from models.ports import Embedded
from router.stores.open import Store


def embedded(n: int) -> Embedded:
    return Embedded(vector=n.to_bytes(8, "little") * 48, unknown_share=n / 10_000)


async def test_vectors_come_back_byte_for_byte_by_encoder_and_digest(store: Store) -> None:
    await store.vectors.save_vectors("e1", {"a": embedded(1), "b": embedded(2)})
    await store.vectors.save_vectors("e2", {"a": embedded(3)})
    assert await store.vectors.load_vectors("e1", ["b", "a", "a", "missing"]) == {"a": embedded(1), "b": embedded(2)}
    assert await store.vectors.load_vectors("e2", ["a", "b"]) == {"a": embedded(3)}
    assert await store.vectors.load_vectors("e1", []) == {}


async def test_vectors_already_there_stay(store: Store) -> None:
    await store.vectors.save_vectors("e1", {"a": embedded(1)})
    await store.vectors.save_vectors("e1", {"a": embedded(2), "b": embedded(2)})
    await store.vectors.save_vectors("e1", {})
    assert await store.vectors.load_vectors("e1", ["a", "b"]) == {"a": embedded(1), "b": embedded(2)}


async def test_more_digests_than_one_query_takes_are_all_found(store: Store) -> None:
    many = {f"digest{n}": embedded(n) for n in range(2500)}
    await store.vectors.save_vectors("e1", many)
    assert await store.vectors.load_vectors("e1", list(many)) == many

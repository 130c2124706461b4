from __future__ import annotations

import asyncio

from router.stores.open import Store


async def test_there_is_no_policy_at_first(store: Store) -> None:
    assert await store.policies.load_policy() is None


async def test_the_newest_policy_is_loaded_with_its_generation(store: Store) -> None:
    assert await store.policies.save_policy('{"a": 1}', 1) == 1
    assert await store.policies.save_policy('{"a": 2}', 2) == 2
    assert await store.policies.load_policy() == (2, '{"a": 2}')


async def test_policies_saved_at_once_get_different_generations(store: Store) -> None:
    made = await asyncio.gather(*(store.policies.save_policy("{}", n) for n in range(10)))
    assert sorted(made) == list(range(1, 11))


async def test_earlier_policies_are_found_by_their_generation_and_by_what_came_after(store: Store) -> None:
    assert await store.policies.policy_before(1) is None
    for number in (1, 2, 3):
        await store.policies.save_policy(f'{{"a": {number}}}', number)
    assert await store.policies.policy_of(2) == '{"a": 2}'
    assert await store.policies.policy_of(0) is None
    assert await store.policies.policy_of(4) is None
    assert await store.policies.policy_before(3) == (2, '{"a": 2}')
    assert await store.policies.policy_before(1) is None

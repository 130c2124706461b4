"""A store that is there already, to work on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.policy import Policy
    from router.stores.open import Store


@asynccontextmanager
async def existing_store(url: str) -> AsyncIterator[Store]:
    """The open store, brought to the newest schema.

    Raises:
        StoreError: there is none, or it cannot be opened.
    """
    from router.stores.open import open_store
    from router.stores.sqlite import existing_file

    await asyncio.to_thread(existing_file, url)
    async with open_store(url) as store:
        yield store


async def stored_policy(store: Store) -> Policy:
    """The newest policy of a store; the defaults where it has none.

    Raises:
        StoreError: it is not one of this release.
    """
    from pydantic import ValidationError

    from models.errors import StoreError
    from models.policy import Policy

    found = await store.policies.load_policy()
    try:
        return Policy() if found is None else Policy.model_validate_json(found[1])
    except ValidationError as error:
        raise StoreError(f"the stored policy is not one of this release, put another: {error}") from None

"""The application in this process, spoken to without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import Receive, Scope, Send

from intent.dummy_embedder import DummyEmbedder
from models.ports import Embedder
from models.settings import Settings
from router.app import create_app
from router.keys import create_key
from router.running import Parts


@asynccontextmanager
async def speaking(
    folder: Path, *, embedder: Embedder | None = None, **fields: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Parts]]:
    """A client and what it speaks to.

    Args:
        folder: where the store lies.
        embedder: None takes the dummy one.
        fields: of the settings.
    """
    settings = Settings(store=f"sqlite:///{folder / 'store.db'}", **fields)
    app = create_app(settings, embedder=embedder or DummyEmbedder())
    async with app.router.lifespan_context(app) as state:
        assert state is not None

        async def stateful(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "state": dict(state)}, receive, send)

        transport = httpx.ASGITransport(app=stateful, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://router") as client:
            yield client, state["parts"]


async def keyed(
    parts: Parts, permissions: Mapping[str, Sequence[str]], namespaces: Mapping[str, Sequence[str]] | None = None
) -> dict[str, dict[str, str]]:
    """The header of each of some new keys, by name.

    Args:
        parts: what the keys are for.
        permissions: of each key.
        namespaces: of keys that do not reach all of them; None: of none.
    """
    headers = {}
    for name, granted in permissions.items():
        key, token = create_key(name, granted, (namespaces or {}).get(name), None, 1000)
        await parts["store"].keys.add_key(key)
        headers[name] = {"Authorization": f"Bearer {token}"}
    await parts["keys"].refresh(parts["store"].keys)
    return headers

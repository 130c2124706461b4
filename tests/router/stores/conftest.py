from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from router.stores.open import Store, open_store
from tests.router.stores.samples import FakeClock, url_of


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(url_of(tmp_path / "store.db"), clock=FakeClock()) as opened:
        yield opened

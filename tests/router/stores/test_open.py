from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from models.errors import StoreError
from router.stores.open import open_store
from tests.router.stores.samples import ROOT, card, url_of
from tests.router.waiting import eventually

PUT_AND_DIE = """
import asyncio, os, signal, sys
from router.stores.open import open_store
from tests.router.stores.samples import card, decision, event

async def main() -> None:
    async with open_store(sys.argv[1]) as store:
        await store.cards.put_card(card())
        await store.records.append([event(), decision()])
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""

LEAVE_OPEN = """
import asyncio, sys
from router.stores.open import open_store

async def main() -> None:
    async with open_store(sys.argv[1]) as store:
        await asyncio.gather(*(store.cards.load_cards() for _ in range(8)))
        raise KeyboardInterrupt

asyncio.run(main())
"""


async def test_a_closed_store_leaves_no_thread_and_refuses_work(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    before = {thread for thread in threading.enumerate() if "_connection_worker" in thread.name}
    async with open_store(url) as store:
        await store.cards.put_card(card())
        await store.cards.load_cards()
    # a worker answers the close before it ends
    await eventually(lambda: {t for t in threading.enumerate() if "_connection_worker" in t.name} <= before)
    with pytest.raises(StoreError, match="closed"):
        await store.cards.load_cards()
    await store.close()


async def test_what_was_stored_is_there_after_opening_again(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    async with open_store(url) as store:
        await store.cards.put_card(card())
    async with open_store(url) as store:
        assert [stored.card for stored in await store.cards.load_cards()] == [card()]


async def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", PUT_AND_DIE, url, cwd=ROOT)
    assert await child.wait() == -9
    async with open_store(url) as store:
        assert [stored.card for stored in await store.cards.load_cards()] == [card()]
        assert len(await store.records.trace("t1", 10)) == 1
        assert await store.records.decision("d1") is not None


def test_a_process_that_fails_with_the_store_open_still_exits(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    child = subprocess.run(
        [sys.executable, "-c", LEAVE_OPEN, url], timeout=60, check=False, capture_output=True, cwd=ROOT
    )
    assert b"KeyboardInterrupt" in child.stderr

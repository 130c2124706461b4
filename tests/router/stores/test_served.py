from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.errors import StoreError
from models.settings import Settings
from router.running import running
from router.stores.backup import backup, restore
from router.stores.open import open_store
from router.stores.served import served
from tests.router.memory_store import CountingEmbedder
from tests.router.stores.samples import ROOT, card, url_of

HOLD = """
import sys
from router.stores.served import served

with served(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(url: str) -> subprocess.Popen[str]:
    """A process that holds a store until its input ends."""
    made = subprocess.Popen(
        [sys.executable, "-c", HOLD, url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert made.stdout is not None
    assert made.stdout.readline() == "held\n"
    return made


def test_one_process_holds_a_store_and_the_next_one_after_it_ended(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    with holder(url) as other:
        for _ in range(2):
            told = rf"in use by another process \({other.pid}\): stop the service first"
            with pytest.raises(StoreError, match=told), served(url):
                pass
        other.communicate()
    with served(url):
        assert (tmp_path / "store.db.lock").read_text() == f"{os.getpid()}\n"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_held_is_free(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    with holder(url) as other:
        other.send_signal(signal.SIGKILL)
    assert (tmp_path / "store.db.lock").exists()
    with served(url):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_the_same_by_whatever_link_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    with served(url_of(tmp_path / "store.db")):
        with pytest.raises(StoreError, match="in use"), served(url_of(tmp_path / "link.db")):
            pass
        with served(url_of(tmp_path / "other.db")):
            pass


@pytest.mark.parametrize(("place", "told"), [("none/store.db", "create its folder"), ("file/store.db", "name a file")])
def test_where_nothing_can_be_held_it_is_said(tmp_path: Path, place: str, told: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=f"cannot be opened .*{told}"), served(url_of(tmp_path / place)):
        pass


async def test_a_second_service_on_a_store_is_refused_and_the_command_line_is_not(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    settings = Settings(store=url, watch=False, classifier=False)
    async with running(settings, embedder=CountingEmbedder()):
        with pytest.raises(StoreError, match="in use"):
            async with running(settings, embedder=CountingEmbedder()):
                pass
        async with open_store(url) as beside:
            await beside.cards.put_card(card("orders"))
    async with running(settings, embedder=CountingEmbedder()):
        pass


async def test_what_is_served_is_not_replaced_by_a_backup(tmp_path: Path) -> None:
    url = url_of(tmp_path / "store.db")
    async with open_store(url) as store:
        await store.cards.put_card(card("orders"))
    await backup(url, tmp_path / "copy.db")
    shutil.move(tmp_path / "store.db", tmp_path / "moved.db")
    # before it has opened its file even
    with served(url):
        with pytest.raises(StoreError, match=r"in use by another process .*: stop the service first"):
            await restore(tmp_path / "copy.db", url)
        assert not await asyncio.to_thread((tmp_path / "store.db").exists)
    await restore(tmp_path / "copy.db", url)
    assert await asyncio.to_thread((tmp_path / "store.db").exists)

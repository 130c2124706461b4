from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from models.errors import RouterError
from router.cli import scratch as module
from router.cli.scratch import scratch
from router.permit import OPEN
from router.readiness import Readiness
from tests.builders import request
from tests.service.server import SHOP, SHOP_NAMESPACE


def test_a_router_is_ready_and_its_store_goes_with_it() -> None:
    store, body = asyncio.run(used())
    assert b"rental_desk" in body
    assert not store.parent.exists()


async def used() -> tuple[Path, bytes]:
    async with scratch([SHOP / "cards.yaml"], None) as parts:
        asked = request(intent="cancel_booking", namespace=SHOP_NAMESPACE)
        _, body = await parts["service"].route(asked, OPEN)
        return Path(parts["settings"].store.removeprefix("sqlite:///")), body


async def test_cards_that_never_load_end_the_command_with_what_is_wrong() -> None:
    readiness = Readiness()
    readiness.report("cards", "StoreError: the disk is full")
    with pytest.raises(RouterError, match="the cards cannot be loaded: StoreError: the disk is full"):
        await module._started(readiness)


async def test_another_problem_is_no_reason_to_end() -> None:
    readiness = Readiness()
    readiness.report("policy", "line 3")
    waiting = asyncio.create_task(module._started(readiness))
    await asyncio.sleep(0)
    readiness.ready.set()
    await asyncio.wait_for(waiting, 30)

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from models.errors import ConflictError, InvalidPayloadError
from models.events import RepeatRow
from router.permit import OPEN
from router.repeats import FORGET_S, KEPT_MS, Repeats
from tests.builders import capability, card, request
from tests.service_builders import Desk, service_of

BODY = {"intent": "echo"}


@pytest.fixture
def desk() -> Desk:
    return service_of([card("a", capability("echo", ["do echo"]))])


async def once(
    desk: Desk, repeats: Repeats, key: str = "k", body: Any = None, caller: str = "web"
) -> tuple[bytes, bool]:
    """The answer under a key; the journal is written meanwhile."""
    asked = BODY if body is None else body

    async def decide() -> Any:
        return await desk.service.route(request(None, **asked), OPEN)

    task = asyncio.ensure_future(repeats.once(caller, key, asked, decide))
    while not task.done():
        await asyncio.sleep(0)
        await desk.journal.flush(1000)
    return task.result()


def n_decisions(desk: Desk) -> int:
    return len(desk.records.decisions)


async def test_the_same_key_and_body_get_the_same_decision(desk: Desk) -> None:
    repeats = Repeats(desk.journal, desk.records, desk.clock)
    first, again = await once(desk, repeats), await once(desk, repeats)
    assert (first[1], again[1]) == (False, True)
    assert first[0] == again[0]
    assert n_decisions(desk) == 1


async def test_requests_at_the_same_instant_are_decided_once(desk: Desk) -> None:
    repeats = Repeats(desk.journal, desk.records, desk.clock)
    answers = await asyncio.gather(*(once(desk, repeats) for _ in range(20)))
    assert len({body for body, _ in answers}) == 1
    assert sorted(is_repeat for _, is_repeat in answers) == [False, *[True] * 19]
    assert n_decisions(desk) == 1


async def test_it_holds_after_a_restart(desk: Desk) -> None:
    first = await once(desk, Repeats(desk.journal, desk.records, desk.clock))
    again = await once(desk, Repeats(desk.journal, desk.records, desk.clock))
    assert again == (first[0], True)


async def test_the_order_of_members_makes_no_other_body(desk: Desk) -> None:
    repeats = Repeats(desk.journal, desk.records, desk.clock)
    await once(desk, repeats, body={"intent": "echo", "namespace": "default"})
    assert (await once(desk, repeats, body={"namespace": "default", "intent": "echo"}))[1]


async def test_another_body_under_the_key_is_a_conflict(desk: Desk) -> None:
    repeats = Repeats(desk.journal, desk.records, desk.clock)
    await once(desk, repeats)
    with pytest.raises(ConflictError, match="'k' came with another body"):
        await once(desk, repeats, body={"intent": "other"})
    assert n_decisions(desk) == 1


async def test_keys_are_their_callers_own(desk: Desk) -> None:
    repeats = Repeats(desk.journal, desk.records, desk.clock)
    one, other = await once(desk, repeats), await once(desk, repeats, caller="app")
    assert not other[1]
    assert one[0] != other[0]


async def test_a_key_is_free_again_after_a_day(desk: Desk) -> None:
    repeats = Repeats(desk.journal, desk.records, desk.clock)
    await once(desk, repeats)
    desk.clock.ms += KEPT_MS
    assert not (await once(desk, repeats))[1]
    assert (await once(desk, repeats))[1]


async def test_a_request_that_ends_in_an_error_leaves_its_key_free(desk: Desk) -> None:
    repeats = Repeats(desk.journal, desk.records, desk.clock)
    with pytest.raises(InvalidPayloadError):
        await once(desk, repeats, body={"intent": "echo", "payload": 1})
    assert not (await once(desk, repeats))[1]


async def test_keys_are_forgotten_after_a_day(desk: Desk) -> None:
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)
        desk.clock.ms += KEPT_MS + 1
        if len(naps) == 2:
            raise asyncio.CancelledError

    repeats = Repeats(desk.journal, desk.records, desk.clock, sleep=sleep)
    await once(desk, repeats)
    with pytest.raises(asyncio.CancelledError):
        await repeats.run()
    assert not any(isinstance(row, RepeatRow) for row in desk.records.rows)
    assert naps == [FORGET_S, FORGET_S]

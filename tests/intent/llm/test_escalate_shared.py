"""Escalation over time: deadlines, cancelling, the cache, shared calls and the breaker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from intent.llm.breaker import BreakerState
from intent.llm.escalated import Escalated, EscalationStatus, Origin
from intent.llm.prompt import IntentText
from tests.llm_server import Asked, Reply, fails, says, silent
from tests.llm_world import CANCEL, CANDIDATES, world_of
from tests.router.waiting import eventually

# time


@pytest.mark.parametrize("script", [silent, lambda asked: replace(CANCEL(asked), headers={"content-length": "9999"})])
async def test_a_deadline_is_never_exceeded(script: Callable[[Asked], Reply]) -> None:
    async with world_of(script) as world:
        began = time.monotonic()
        found = await world.ask(remaining_ms=300.0)
        took_s = time.monotonic() - began
        assert (found.intent, found.status) == (None, EscalationStatus.LLM_TIMEOUT)
        assert 0.25 <= took_s < 3.0


async def test_the_operators_time_bounds_a_request_that_has_more() -> None:
    async with world_of(silent, timeout_ms=300.0) as world:
        began = time.monotonic()
        assert await world.status() is EscalationStatus.LLM_TIMEOUT
        assert time.monotonic() - began < 3.0


async def test_an_answer_that_came_too_late_serves_the_next_request() -> None:
    gate = asyncio.Event()
    async with world_of(lambda asked: replace(CANCEL(asked), gate=gate)) as world:
        assert await world.status(remaining_ms=250.0) is EscalationStatus.LLM_TIMEOUT
        gate.set()
        found = await world.ask()
        assert (found.intent, world.n_asked) == ("cancel_order", 1)
        assert found.origin in (Origin.SHARED, Origin.CACHE)


async def test_requests_short_of_time_do_not_open_the_breaker() -> None:
    gate = asyncio.Event()
    async with world_of(lambda asked: replace(CANCEL(asked), gate=gate)) as world:
        texts = ["a", "b", "c"]
        found = await asyncio.gather(*(world.status(text, remaining_ms=250.0) for text in texts))
        assert found == [EscalationStatus.LLM_TIMEOUT] * 3
        gate.set()
        assert [await world.status(text) for text in texts] == [EscalationStatus.CHOSEN] * 3
        assert world.breaker.state is BreakerState.CLOSED


async def test_cancelling_a_request_ends_its_call() -> None:
    async with world_of(silent) as world:
        task = asyncio.create_task(world.ask())
        await eventually(lambda: world.n_asked == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: world.server.n_lost == 1)
        assert world.breaker.state is BreakerState.CLOSED
        world.server.script = CANCEL
        assert await world.status() is EscalationStatus.CHOSEN


async def test_cancelling_a_probe_at_once_leaves_nothing_behind() -> None:
    async with world_of(max_in_flight=1) as world:
        await world.trip()
        world.clock.advance(1000)
        task = asyncio.create_task(world.ask())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: world.breaker.state is BreakerState.OPEN)
        assert await world.status() is EscalationStatus.CHOSEN


async def test_closing_ends_calls_that_nobody_waits_for() -> None:
    async with world_of(silent) as world:
        assert await world.status(remaining_ms=250.0) is EscalationStatus.LLM_TIMEOUT
        async with world.escalation:
            pass
        await eventually(lambda: world.server.n_lost == 1)


async def test_closing_is_a_status_for_those_who_wait() -> None:
    async with world_of(silent) as world:
        waiting = [asyncio.create_task(world.ask()) for _ in range(2)]
        await eventually(lambda: world.n_asked == 1)
        async with world.escalation:
            pass
        found = await asyncio.gather(*waiting)
        assert {(each.status, each.detail) for each in found} == {(EscalationStatus.LLM_ERROR, "llm_unreachable")}


# the cache, and sharing


async def test_what_was_answered_is_not_asked_again() -> None:
    async with world_of() as world:
        await world.ask()
        assert await world.ask() == Escalated("cancel_order", EscalationStatus.CHOSEN, Origin.CACHE)
        assert await world.ask(candidates=CANDIDATES[::-1], remaining_ms=0.0) == await world.ask()
        assert world.n_asked == 1


async def test_that_nothing_fits_is_remembered_too() -> None:
    async with world_of(lambda _: says('{"choice": "none"}')) as world:
        await world.ask()
        assert await world.ask() == Escalated(None, EscalationStatus.NONE, Origin.CACHE)


async def test_other_texts_candidates_or_cards_are_asked_anew() -> None:
    changed = (IntentText("cancel_order", "cancels an order", ("another example",)), *CANDIDATES[1:])
    async with world_of() as world:
        await world.ask()
        await world.ask("something else")
        await world.ask(candidates=CANDIDATES[:2])
        await world.ask(candidates=changed)
        assert world.n_asked == 4


async def test_answers_grow_old_and_few() -> None:
    async with world_of(cache_ttl_ms=1000.0, cache_entries=2) as world:
        await world.ask("a")
        world.clock.advance(999)
        assert (await world.ask("a")).origin is Origin.CACHE
        world.clock.advance(1)
        assert (await world.ask("a")).origin is Origin.CALL
        await world.ask("b")
        await world.ask("a")
        await world.ask("c")
        assert (await world.ask("a")).origin is Origin.CACHE
        assert (await world.ask("b")).origin is Origin.CALL


@pytest.mark.parametrize("script", [lambda _: says("prose"), lambda _: fails(422)])
async def test_what_was_no_answer_is_asked_again(script: Callable[[Asked], Reply]) -> None:
    async with world_of(script) as world:
        await world.ask()
        world.server.script = CANCEL
        assert (await world.ask()).intent == "cancel_order"


async def test_identical_questions_at_once_share_one_call() -> None:
    gate = asyncio.Event()
    async with world_of(lambda asked: replace(CANCEL(asked), gate=gate)) as world:
        tasks = [asyncio.create_task(world.ask()) for _ in range(20)]
        await eventually(lambda: world.n_asked == 1)
        gate.set()
        found = await asyncio.gather(*tasks)
        assert world.n_asked == 1
        assert {each.intent for each in found} == {"cancel_order"}
        assert sorted(each.origin for each in found) == [Origin.CALL, *[Origin.SHARED] * 19]
        assert sum(each.n_tokens for each in found) == 100


async def test_one_that_is_cancelled_does_not_take_the_others_with_it() -> None:
    gate = asyncio.Event()
    async with world_of(lambda asked: replace(CANCEL(asked), gate=gate)) as world:
        first, second, third = (asyncio.create_task(world.ask()) for _ in range(3))
        await eventually(lambda: world.n_asked == 1)
        first.cancel()
        third.cancel()
        await asyncio.wait([first, third])
        gate.set()
        assert (await second).intent == "cancel_order"
        assert world.n_asked == 1


async def test_each_waits_for_as_long_as_it_can() -> None:
    gate = asyncio.Event()
    async with world_of(lambda asked: replace(CANCEL(asked), gate=gate)) as world:
        patient = asyncio.create_task(world.ask())
        assert await world.status(remaining_ms=250.0) is EscalationStatus.LLM_TIMEOUT
        gate.set()
        assert (await patient).intent == "cancel_order"


async def test_an_error_is_shared_too_and_counts_once() -> None:
    gate = asyncio.Event()
    async with world_of(lambda _: Reply(b"", status=500, gate=gate)) as world:
        tasks = [asyncio.create_task(world.status()) for _ in range(5)]
        await eventually(lambda: world.n_asked == 1)
        gate.set()
        assert await asyncio.gather(*tasks) == [EscalationStatus.LLM_ERROR] * 5
        assert world.breaker.state is BreakerState.CLOSED


# the breaker


async def test_the_breaker_opens_and_recovers() -> None:
    async with world_of() as world:
        await world.trip()
        n_asked = world.n_asked
        assert await world.status() is EscalationStatus.SKIPPED_BREAKER
        assert world.n_asked == n_asked
        world.clock.advance(1000)
        assert await world.status() is EscalationStatus.CHOSEN
        assert world.breaker.state is BreakerState.CLOSED


async def test_a_model_that_is_too_slow_opens_it() -> None:
    async with world_of(silent, timeout_ms=250.0) as world:
        for text in ("a", "b"):
            assert await world.status(text) is EscalationStatus.LLM_TIMEOUT
        await eventually(lambda: world.breaker.state is BreakerState.OPEN)


async def test_one_request_alone_probes() -> None:
    gate = asyncio.Event()
    async with world_of(lambda asked: replace(CANCEL(asked), gate=gate)) as world:
        await world.trip()
        world.clock.advance(1000)
        tasks = [asyncio.create_task(world.status(f"text {number}")) for number in range(5)]
        await eventually(lambda: world.n_asked == 3)
        gate.set()
        found = await asyncio.gather(*tasks)
        assert sorted(found) == [EscalationStatus.CHOSEN, *[EscalationStatus.SKIPPED_BREAKER] * 4]


async def test_a_probe_that_is_cancelled_makes_room_for_the_next() -> None:
    async with world_of(silent) as world:
        await world.trip()
        world.clock.advance(1000)
        probe = asyncio.create_task(world.ask())
        await eventually(lambda: world.n_asked == 3)
        probe.cancel()
        await eventually(lambda: world.breaker.state is BreakerState.OPEN)
        world.server.script = CANCEL
        assert await world.status("another") is EscalationStatus.CHOSEN


async def test_retry_after_is_honoured() -> None:
    async with world_of(lambda _: fails(429, {"retry-after": "30"})) as world:
        found = await world.ask()
        assert (found.status, found.detail, found.n_tokens) == (EscalationStatus.LLM_ERROR, "llm_busy", 0)
        world.server.script = CANCEL
        world.clock.advance(29_999)
        assert await world.status() is EscalationStatus.SKIPPED_BREAKER
        world.clock.advance(1)
        assert await world.status() is EscalationStatus.CHOSEN
        assert world.n_asked == 2


@pytest.mark.parametrize("script", [lambda _: fails(400), lambda _: fails(422), lambda _: says("prose")])
async def test_no_caller_can_open_it_by_what_he_writes(script: Callable[[Asked], Reply]) -> None:
    async with world_of(script) as world:
        for number in range(10):
            await world.ask(f"text {number}")
        assert world.breaker.state is BreakerState.CLOSED


async def test_an_open_breaker_uses_nothing_up_and_the_cache_still_answers() -> None:
    async with world_of(calls_per_minute=4) as world:
        await world.ask("known")
        await world.trip()
        for _ in range(10):
            assert await world.status() is EscalationStatus.SKIPPED_BREAKER
        assert (await world.ask("known")).origin is Origin.CACHE
        world.clock.advance(1000)
        assert await world.status() is EscalationStatus.CHOSEN

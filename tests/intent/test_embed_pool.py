from __future__ import annotations

import asyncio
import threading

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from models.errors import OverloadedError
from models.ports import Embedded
from tests.router.memory_store import CountingEmbedder, WaitingEmbedder

MINUTE = 60_000.0


class NotingEmbedder(DummyEmbedder):
    """Notes the threads it runs on."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def embed(self, text: str) -> Embedded:
        self.threads.add(threading.current_thread().name)
        return super().embed(text)


class BrokenEmbedder(DummyEmbedder):
    """Raises."""

    def embed(self, text: str) -> Embedded:
        raise RuntimeError("the graph is broken")


async def test_an_utterance_gets_the_encoders_vector() -> None:
    with EmbedPool(DummyEmbedder()) as pool:
        assert await pool.embed("where is my parcel", wait_ms=MINUTE) == DummyEmbedder().embed("where is my parcel")
        assert pool.n_waiting == 0


async def test_card_texts_get_theirs_whatever_their_number() -> None:
    texts = [f"text {number}" for number in range(100)]
    embedder = CountingEmbedder()
    with EmbedPool(embedder) as pool:
        found = await pool.embed_all(texts)
    assert found == {text: CountingEmbedder().embed(text) for text in texts}
    assert embedder.asked == texts


async def test_no_card_texts_need_no_encoder() -> None:
    embedder = CountingEmbedder()
    with EmbedPool(embedder) as pool:
        assert await pool.embed_all([]) == {}
    assert embedder.asked == []


async def test_nothing_is_encoded_on_the_event_loop_and_cards_not_on_the_threads_of_utterances() -> None:
    utterances, cards = NotingEmbedder(), NotingEmbedder()
    with EmbedPool(utterances) as pool:
        await pool.embed("a", wait_ms=MINUTE)
    with EmbedPool(cards) as pool:
        await pool.embed_all(["a"])
    assert len(utterances.threads) == len(cards.threads) == 1
    here = {threading.current_thread().name}
    assert utterances.threads.isdisjoint(cards.threads | here)
    assert cards.threads.isdisjoint(here)


async def test_what_is_made_of_a_vector_is_made_in_the_thread_of_the_encoder() -> None:
    embedder = NotingEmbedder()
    with EmbedPool(embedder, n_threads=1) as pool:
        embedded, thread = await pool.embed_and("a", lambda _: threading.current_thread().name, wait_ms=MINUTE)
        assert embedded == DummyEmbedder().embed("a")
        assert {thread} == embedder.threads
        with pytest.raises(ZeroDivisionError):
            await pool.embed_and("a", lambda found: 1 / len(found.vector[:0]), wait_ms=MINUTE)
        assert pool.n_waiting == 0


async def test_utterances_do_not_queue_behind_card_texts() -> None:
    class Cards(WaitingEmbedder):
        def embed(self, text: str) -> Embedded:
            return super().embed(text) if text.startswith("card") else DummyEmbedder().embed(text)

    with Cards() as embedder, EmbedPool(embedder, n_threads=1) as pool:
        cards = asyncio.create_task(pool.embed_all([f"card {number}" for number in range(100)]))
        await asyncio.to_thread(embedder.begun.acquire)
        assert await pool.embed("hello", wait_ms=MINUTE) == DummyEmbedder().embed("hello")
        assert not cards.done()
        embedder.may_end.set()
        assert len(await cards) == 100


async def test_an_encoder_that_takes_too_long_is_a_timeout() -> None:
    with WaitingEmbedder() as embedder, EmbedPool(embedder) as pool:
        with pytest.raises(TimeoutError):
            await pool.embed("slow", wait_ms=5)
        assert pool.n_waiting == 0
        embedder.may_end.set()


@pytest.mark.parametrize("wait_ms", [0.0, -1.0])
async def test_no_time_left_is_a_timeout(wait_ms: float) -> None:
    with WaitingEmbedder() as embedder, EmbedPool(embedder) as pool:
        with pytest.raises(TimeoutError):
            await pool.embed("late", wait_ms=wait_ms)
        embedder.may_end.set()


async def test_a_full_queue_refuses_at_once_and_takes_texts_again_when_it_is_shorter() -> None:
    with WaitingEmbedder() as embedder, EmbedPool(embedder, n_threads=1, max_waiting=3) as pool:
        waiting = [asyncio.create_task(pool.embed(f"text {number}", wait_ms=MINUTE)) for number in range(3)]
        await asyncio.to_thread(embedder.begun.acquire)
        assert pool.n_waiting == 3
        with pytest.raises(OverloadedError, match="3 texts wait for the encoder") as caught:
            await pool.embed("one too many", wait_ms=MINUTE)
        assert caught.value.retry_after_ms == 1000
        embedder.may_end.set()
        await asyncio.gather(*waiting)
        assert pool.n_waiting == 0
        assert await pool.embed("now", wait_ms=MINUTE) == DummyEmbedder().embed("now")


async def test_a_caller_that_gives_up_makes_room() -> None:
    with WaitingEmbedder() as embedder, EmbedPool(embedder, n_threads=1, max_waiting=1) as pool:
        caller = asyncio.create_task(pool.embed("a", wait_ms=MINUTE))
        await asyncio.to_thread(embedder.begun.acquire)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert pool.n_waiting == 0
        embedder.may_end.set()


async def test_an_error_of_the_encoder_reaches_the_caller() -> None:
    with EmbedPool(BrokenEmbedder()) as pool:
        with pytest.raises(RuntimeError, match="the graph is broken"):
            await pool.embed("a", wait_ms=MINUTE)
        with pytest.raises(RuntimeError, match="the graph is broken"):
            await pool.embed_all(["a"])
        assert pool.n_waiting == 0


async def test_leaving_drops_what_has_not_begun_and_waits_for_what_has() -> None:
    with WaitingEmbedder() as embedder:
        pool = EmbedPool(embedder, n_threads=1)
        first, *others = (asyncio.create_task(pool.embed(f"text {number}", wait_ms=MINUTE)) for number in range(3))
        await asyncio.to_thread(embedder.begun.acquire)
        # in a thread, since it blocks
        leaving = asyncio.create_task(asyncio.to_thread(pool.__exit__, None, None, None))
        dropped = await asyncio.gather(*others, return_exceptions=True)
        assert [type(answer) for answer in dropped] == [asyncio.CancelledError, asyncio.CancelledError]
        assert not leaving.done()
        embedder.may_end.set()
        assert await first == DummyEmbedder().embed("text 0")
        await leaving

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from intent.heads import Heads
from intent.model_folder import Origin, load_heads, save_heads
from intent.rules import Rules
from models.policy import Confidence
from models.reading import Reading
from router.generation_archive import NO_HEADS, GenerationArchive, packed
from router.replay_intake import Given, ReplayIntake, is_hurried
from router.replay_world import World
from router.replayed import DifferentError, NotReplayableError
from router.sealed_inputs import sealed_reading
from router.snapshot import Snapshot
from router.stores.open import Store, open_store
from tests.builders import FakeClock, card, policy_of, snapshot_of
from tests.intent.fitted import BOTH, heads_of
from tests.router.replay_history import altered

SAID = "could you cancel the order that i have placed"
DEFAULT = ("default",)


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Heads:
    folder = tmp_path_factory.mktemp("model")
    save_heads(heads_of(BOTH), folder, Origin(encoder_id="dummy-64"))
    return load_heads(folder)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Store, World, EmbedPool]]:
    async with open_store(f"sqlite:///{folder}/store.db") as store:
        with EmbedPool(DummyEmbedder(), n_threads=1) as pool:
            yield store, World(store.generations, store.vectors, pool), pool


async def archived(store: Store, heads: Heads | None = None) -> Snapshot:
    """A snapshot of the shop whose parts are in the archive, with these classifiers."""
    archive, snapshot = GenerationArchive(store.generations, FakeClock(), "dummy-64"), snapshot_of([BOTH])
    await archive.keep_snapshot(snapshot, [BOTH])
    await archive.keep_heads(heads)
    return snapshot


async def test_a_snapshot_is_made_again_and_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, world, _):
        known = await archived(store)
        again = await world.snapshot(known.digests)
        assert (again.cards, again.policy, again.intents) == (known.cards, known.policy, known.intents)
        assert again.index.digest() == known.index.digest()
        assert await world.snapshot(known.digests) is again


async def test_only_the_last_few_snapshots_are_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, world, _):
        archive = GenerationArchive(store.generations, FakeClock(), "dummy-64")
        made = []
        for number in range(6):
            snapshot = snapshot_of([card("a", weight=float(number))], policy_of())
            await archive.keep_snapshot(snapshot, [card("a", weight=float(number))])
            made.append((snapshot.digests, await world.snapshot(snapshot.digests)))
        again = [await world.snapshot(digests) is kept for digests, kept in reversed(made)]
        assert again == [True] * 4 + [False] * 2


async def test_classifiers_are_made_again_and_read_alike(tmp_path: Path, heads: Heads) -> None:
    async with opened(tmp_path) as (store, world, _):
        snapshot = await archived(store, heads)
        cascade = await world.cascade(heads.digest)
        verdict = cascade.by_words(SAID, snapshot.scope(DEFAULT), Confidence(), alone=True)
        assert verdict.found[0].intent == "cancel_order"
        assert await world.cascade(heads.digest) is cascade
        assert (await world.cascade(NO_HEADS)).heads is None


async def test_classifiers_that_are_gone_or_altered_are_told_once_it_is_looked_again(
    tmp_path: Path, heads: Heads
) -> None:
    async with opened(tmp_path) as (store, world, _):
        await archived(store, heads)
        known = await world.cascade(heads.digest)
        other = replace(heads, early=heads.early / 2, digest="")
        body = packed(replace(other, digest=_digest_of(other, tmp_path)), "dummy-64")
        altered(tmp_path / "store.db", "UPDATE generations SET body = ? WHERE kind = 'classifier'", body)
        assert await world.cascade(heads.digest) is known
        world.look_again()
        with pytest.raises(DifferentError, match="altered") as caught:
            await world.cascade(heads.digest)
        assert caught.value.part == "classifier"
        altered(tmp_path / "store.db", "DELETE FROM generations WHERE kind = 'classifier'")
        with pytest.raises(NotReplayableError, match="classifiers"):
            await world.cascade(heads.digest)


def _digest_of(heads: Heads, folder: Path) -> str:
    return save_heads(heads, folder / "other", Origin(encoder_id="dummy-64")).digest


async def read(store: Store, world: World, pool: EmbedPool, heads: Heads, given: Given, text: str = SAID) -> Reading:
    snapshot = await archived(store, heads)
    intake = ReplayIntake(pool, await world.cascade(heads.digest), given)
    return await intake.read(
        text, snapshot.scope(DEFAULT), rules=Rules(()), namespace="default", thresholds=Confidence(), wait_ms=0.0
    )


def given_of(reading: Reading) -> Given:
    return Given(reading, orjson.loads(orjson.dumps(sealed_reading(reading))))


SEALED = Reading(SAID, "en", certainty="sure", intent="x", confidence=0.5, source="lexical")  # type: ignore[arg-type]


async def test_an_utterance_is_read_again_whatever_time_there_was_and_has_to_come_out_the_same(
    tmp_path: Path, heads: Heads
) -> None:
    async with opened(tmp_path) as (store, world, pool):
        with pytest.raises(DifferentError) as caught:
            await read(store, world, pool, heads, given_of(SEALED))
        assert caught.value.part == "reading"
        assert "intent is 'cancel_order', was 'x'" in caught.value.detail
        now = await _taken_from(store, world, pool, heads)
        given = given_of(now)
        assert sealed_reading(await read(store, world, pool, heads, given)) == sealed_reading(now)
        assert given.is_read
        bent = given_of(replace(now, confidence=now.confidence * (1 + 1e-15) + 1e-16))
        with pytest.raises(DifferentError, match="confidence"):
            await read(store, world, pool, heads, bent)


async def _taken_from(store: Store, world: World, pool: EmbedPool, heads: Heads) -> Reading:
    """What the classifiers read now, without anything to compare it with."""
    snapshot = await archived(store, heads)
    intake: Any = super(ReplayIntake, ReplayIntake(pool, await world.cascade(heads.digest), given_of(SEALED)))
    found: Reading = await intake.read(
        SAID, snapshot.scope(DEFAULT), rules=Rules(()), namespace="default", thresholds=Confidence(), wait_ms=9e9
    )
    return found


async def test_what_was_not_read_in_time_is_not_read_in_time_again(tmp_path: Path, heads: Heads) -> None:
    async with opened(tmp_path) as (store, world, pool):
        with pytest.raises(TimeoutError):
            await read(store, world, pool, heads, Given(None, None))


async def test_what_cannot_be_read_again_is_taken_and_never_read_for_other_intents(
    tmp_path: Path, heads: Heads
) -> None:
    async with opened(tmp_path) as (store, world, pool):
        given = Given(SEALED, {}, "no text is kept")
        assert await read(store, world, pool, heads, given) is SEALED
        assert not given.is_read
        intake = ReplayIntake(pool, await world.cascade(heads.digest), given)
        with pytest.raises(NotReplayableError, match="no text is kept"):
            await intake.reread(SEALED, (await archived(store)).scope(DEFAULT))


def test_a_reading_that_lacked_time_says_so() -> None:
    assert not is_hurried(None)
    assert not is_hurried({"degraded": ["encoder: too many unknown tokens"]})
    assert is_hurried({"degraded": ["parts: no time to read them"]})

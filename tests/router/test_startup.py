from __future__ import annotations

from collections.abc import Callable

import pytest

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from models.card import AgentCard
from models.policy import Policy
from router.card_vectors import CardVectors
from router.classifier import Classifier
from router.readiness import Readiness
from router.registry import Registry
from router.startup import Start, example
from tests.builders import FakeClock, card, policy_of
from tests.intent.fitted import BOTH
from tests.router.memory_store import CountingEmbedder, MemoryStore, pool_of


class World:
    """What a start brings up."""

    def __init__(self, pool: EmbedPool, store: MemoryStore | None = None, timeout_s: float = 60.0) -> None:
        self.store = store or MemoryStore()
        vectors = CardVectors(pool, self.store)
        self.pool = pool
        self.cascade = Cascade(Calibration())
        self.readiness = Readiness()
        self.registry = Registry(vectors, self.store, self.store, FakeClock())
        self.classifier = Classifier(self.registry, vectors, self.cascade, folder=None, timeout_s=timeout_s)

    async def start(
        self,
        cards: tuple[AgentCard, ...] | None,
        policy: Policy | None = None,
        *,
        classifies: bool = True,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        classifier = self.classifier if classifies else None
        await Start(self.registry, classifier, self.pool, self.readiness, on_ready).run(cards, policy)


async def test_it_is_ready_only_after_the_first_classifiers() -> None:
    seen: list[tuple[int, bool]] = []
    with pool_of() as pool:
        world = World(pool)
        await world.start(
            (BOTH,), on_ready=lambda: seen.append((world.cascade.generation, world.readiness.ready.is_set()))
        )
    assert seen == [(1, True)]
    assert not world.cascade.wants_neighbours(world.registry.snapshot.scope(("default",)))
    assert world.readiness.problems == {}


async def test_a_failed_fit_is_shown_and_it_is_ready_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    with pool_of() as pool:
        world = World(pool, timeout_s=0.001)
        await world.start((BOTH,))
        scope = world.registry.snapshot.scope(("default",))
        # the nearest texts decide
        assert world.cascade.wants_neighbours(scope)
        [nearest] = scope.neighbours(DummyEmbedder().embed("where is my parcel now").vector, 1)
        assert nearest.intent == "track_parcel"
    assert world.readiness.ready.is_set()
    assert list(world.readiness.problems) == ["classifier"]
    assert "took longer" in caplog.text


async def test_without_a_classifier_nothing_is_fitted() -> None:
    with pool_of() as pool:
        world = World(pool)
        await world.start((BOTH,), classifies=False)
    assert (world.cascade.generation, world.readiness.ready.is_set()) == (0, True)


async def test_the_encoder_is_warm_before_it_is_ready() -> None:
    embedder = CountingEmbedder()
    with pool_of(embedder) as pool:
        world = World(pool)
        asked: list[str] = []
        await world.start((card("a"),), on_ready=lambda: asked.extend(embedder.asked))
    assert asked[0] == "please ask a"
    assert len(asked) > 3
    assert len(set(asked[1:])) == 1


async def test_without_cards_given_or_stored_the_example_is_served() -> None:
    cards, shipped = example()
    with pool_of() as pool:
        world = World(pool)
        await world.start(None, classifies=False)
        assert {known.key for known in world.registry.snapshot.cards} == {known.key for known in cards}
        assert world.registry.snapshot.policy == shipped


async def test_no_cards_from_files_are_no_cards() -> None:
    with pool_of() as pool:
        world = World(pool)
        await world.start(())
        assert world.registry.snapshot.cards == ()
    assert (world.cascade.generation, world.readiness.ready.is_set()) == (1, True)


async def test_a_given_policy_holds_from_the_first_decision_on() -> None:
    hiding = policy_of(hide_denied=True)
    seen: list[Policy] = []
    with pool_of() as pool:
        world = World(pool)
        await world.start(
            (card("a"),), hiding, classifies=False, on_ready=lambda: seen.append(world.registry.snapshot.policy)
        )
    assert seen == [hiding]


async def test_a_start_that_failed_can_be_run_again() -> None:
    store = MemoryStore()
    with pool_of() as pool:
        world = World(pool, store)
        store.is_failing = True
        with pytest.raises(Exception, match="the disk is full"):
            await world.start((card("a"),), policy_of(hide_denied=True), classifies=False)
        assert not world.readiness.ready.is_set()
        store.is_failing = False
        await world.start((card("a"),), policy_of(hide_denied=True), classifies=False)
    assert world.readiness.ready.is_set()

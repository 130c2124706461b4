"""The composition root: every part is built here, from settings, by plain constructors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TypedDict
from zoneinfo import ZoneInfo

from threadpoolctl import threadpool_limits

from intent.embed_pool import EmbedPool
from models.card import AgentCard
from models.policy import Policy
from models.ports import Clock, Embedder
from models.settings import Settings
from router.card_files import read_card_files
from router.card_vectors import CardVectors
from router.classifier import Classifier
from router.clock import SystemClock
from router.decide import Decider
from router.generation_archive import GenerationArchive, archive_of
from router.goals import Goals
from router.journal import Journal
from router.keys import KeyRing
from router.live_parts import LiveParts, keep_up, live_parts
from router.policy_file import read_policy
from router.promotion import Lanes
from router.promotion_parts import PromotionParts, keep_following, promotions_of
from router.random_ids import random_ids
from router.readiness import Readiness
from router.reading_parts import cascade_of, classifier_of, encoder_of, escalation_of
from router.recorder import Recorder
from router.registry import Registry
from router.replay import Replayer, replayer_of
from router.retention import Retention
from router.service import Ids, RouteService
from router.startup import Start
from router.stores.open import Store, open_store
from router.stores.served import served
from router.supervisor import Supervisor
from router.watch import watch_cards, watch_policy

log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Parts(TypedDict):
    """What is running; the HTTP edge and the command line find all they need here."""

    settings: Settings
    store: Store
    registry: Registry
    service: RouteService
    live: LiveParts
    promotion: PromotionParts
    journal: Journal
    keys: KeyRing
    pool: EmbedPool
    readiness: Readiness
    clock: Clock
    replayer: Replayer


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    on_ready: Callable[[], None] | None = None,
) -> AsyncIterator[Parts]:
    """Open everything, and close it again in the reverse order.

    Files that cannot be used end the start with their error. Embedding the cards goes on in the background:
    `readiness.ready` is set when decisions can be made.

    Args:
        settings: how to run.
        embedder: the encoder; None takes the bundled one.
        clock: the time; None takes the system's.
        ids: ids and seeds; None takes random ones.
        on_ready: called once decisions can be made.

    Raises:
        ConfigError: a card or policy file is wrong.
        EncoderError: the encoder's files are missing or altered.
        ModelError: the folder of trained classifiers cannot be used.
        StoreError: the store cannot be opened, or another process serves it.
    """
    clock, readiness = clock or SystemClock(), Readiness()
    async with AsyncExitStack() as stack:
        stack.enter_context(_one_thread())
        encoder = await asyncio.to_thread(encoder_of, settings) if embedder is None else embedder
        cards, policy = await asyncio.to_thread(_files, settings)
        store = await _store(settings, clock, stack)
        pool = stack.enter_context(_pool(settings, encoder))
        keys, journal = await _keys(settings, store, clock), _journal(settings, store, clock, stack)
        supervisor = await stack.enter_async_context(Supervisor(readiness))
        vectors, ids = CardVectors(pool, store.vectors), ids or random_ids(clock)
        registry, cascade = Registry(vectors, store.cards, store.policies, clock), await cascade_of(settings, encoder)
        archive = await archive_of(store.generations, clock, registry, cascade, vectors.encoder_id)
        classifier = classifier_of(settings, registry, vectors, cascade, archive.keep_heads)
        live = await live_parts(registry, store, journal, clock, ids.new, stack)
        promotion = await promotions_of(
            settings, cascade, pool, registry, store, journal, live, clock, ids, readiness, archive.keep_heads
        )
        service = await _service(settings, registry, store, journal, archive, live, promotion, clock, ids, stack)
        start = partial(Start(registry, classifier, pool, readiness, on_ready).run, cards, policy)
        _start_work(supervisor, journal, keys, store, start)
        _follow(classifier, promotion, archive, settings, registry, readiness, supervisor)
        keep_up(live, settings, registry, journal, clock, ids.new, readiness, supervisor)
        _forget(store, registry, clock, readiness, supervisor)
        yield {
            "settings": settings,
            "store": store,
            "registry": registry,
            "service": service,
            "live": live,
            "promotion": promotion,
            "journal": journal,
            "keys": keys,
            "pool": pool,
            "readiness": readiness,
            "clock": clock,
            "replayer": replayer_of(store, pool, inline_rows=settings.inline_index_rows),
        }


async def _store(settings: Settings, clock: Clock, stack: AsyncExitStack) -> Store:
    """The store, held as long as it is served."""
    stack.enter_context(served(settings.store))
    return await stack.enter_async_context(open_store(settings.store, clock=clock))


async def _keys(settings: Settings, store: Store, clock: Clock) -> KeyRing:
    keys = KeyRing(refresh_ms=settings.keys_refresh_ms, clock=clock)
    await keys.refresh(store.keys)
    return keys


def _start_work(
    supervisor: Supervisor, journal: Journal, keys: KeyRing, store: Store, start: Callable[[], Awaitable[None]]
) -> None:
    supervisor.start("journal", journal.run)
    supervisor.start("keys", lambda: keys.run(store.keys))
    supervisor.start("cards", start)


async def _decider(settings: Settings, lanes: Lanes, live: LiveParts, clock: Clock, stack: AsyncExitStack) -> Decider:
    zone = ZoneInfo(settings.time_zone)
    escalation = await escalation_of(settings, stack, clock)
    return Decider(lanes.own, escalation, live.picker, live.live.sessions, clock, zone, lanes)


async def _service(
    settings: Settings,
    registry: Registry,
    store: Store,
    journal: Journal,
    archive: GenerationArchive,
    live: LiveParts,
    promotion: PromotionParts,
    clock: Clock,
    ids: Ids,
    stack: AsyncExitStack,
) -> RouteService:
    decider = await _decider(settings, promotion.lanes, live, clock, stack)
    key = await store.retention.redaction_key()
    recorder = Recorder(journal, zone=settings.time_zone, archived=archive.classifier, redaction_key=key)
    goals, opened = Goals(store.records), live.live.opened
    return RouteService(registry, decider, goals, recorder, opened, clock, ids, offer=promotion.shadow.offer)


def _one_thread() -> threadpool_limits:
    """Products of a matrix and a vector are one thread's work: a second one would spin longer than it helps."""
    return threadpool_limits(1, user_api="blas")


def _follow(
    classifier: Classifier | None,
    promotion: PromotionParts,
    archive: GenerationArchive,
    settings: Settings,
    registry: Registry,
    readiness: Readiness,
    supervisor: Supervisor,
) -> None:
    """Classifiers follow the cards and the promotions, cards and policy their files, the archive all of them."""
    keep_following(promotion, supervisor)
    supervisor.start("generations", archive.run)
    if classifier is not None:
        fitting = classifier

        async def follow() -> None:
            await readiness.ready.wait()  # the start sees to the first ones
            await fitting.run(readiness)

        supervisor.start("classifier", follow)
    if settings.watch:
        _watch(settings, registry, readiness, supervisor)


def _forget(store: Store, registry: Registry, clock: Clock, readiness: Readiness, supervisor: Supervisor) -> None:
    """What has reached its age is dropped."""
    retention = Retention(store.retention, store.generations.forget, lambda: registry.snapshot.policy.retention, clock)

    async def work() -> None:
        await readiness.ready.wait()  # there is no policy before
        await retention.run()

    supervisor.start("retention", work)


def _files(settings: Settings) -> tuple[tuple[AgentCard, ...] | None, Policy | None]:
    """The cards and the policy of the files that the settings name."""
    policy = read_policy(settings.policy) if settings.policy else None
    if not settings.cards:
        return None, policy
    found = read_card_files(settings.cards)
    for warning in found.warnings:
        log.warning("%s", warning)
    return found.cards, policy


def _pool(settings: Settings, encoder: Embedder) -> EmbedPool:
    return EmbedPool(encoder, n_threads=settings.embed_threads, max_waiting=settings.max_embed_queue)


def _journal(settings: Settings, store: Store, clock: Clock, stack: AsyncExitStack) -> Journal:
    journal = Journal(
        store.records,
        max_rows=settings.journal_rows,
        batch=settings.journal_batch,
        wait_ms=settings.journal_wait_ms,
        clock=clock,
    )
    stack.push_async_callback(journal.aclose)
    return journal


def _watch(settings: Settings, registry: Registry, readiness: Readiness, supervisor: Supervisor) -> None:
    if settings.cards:
        registry.files_watched = True
        supervisor.start("watch cards", lambda: watch_cards(settings.cards, registry, readiness))
    policy = settings.policy
    if policy is not None:
        supervisor.start("watch policy", lambda: watch_policy(policy, registry, readiness))

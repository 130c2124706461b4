"""The composition root: every part is built here, from settings, by plain constructors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import TypedDict
from zoneinfo import ZoneInfo

import numpy as np
from threadpoolctl import threadpool_limits

from intent.embed_pool import EmbedPool
from intent.intake import Intake
from models.card import AgentCard
from models.policy import Policy
from models.ports import Clock, Embedder
from models.settings import Settings
from router.card_files import read_card_files
from router.card_vectors import CardVectors
from router.classifier import Classifier
from router.clock import SystemClock
from router.decide import Decider
from router.degrade_queue import DegradeQueue
from router.goals import Goals
from router.journal import Journal
from router.keys import KeyRing
from router.live.admission import Admission
from router.live.beats import Beats
from router.live.live import Live
from router.live.probe_hosts import ProbeHosts
from router.live.prober import Prober
from router.live.upkeep import Upkeep
from router.pick import Picker
from router.policy_file import read_policy
from router.random_ids import random_ids
from router.readiness import Readiness
from router.reading_parts import cascade_of, classifier_of, encoder_of, escalation_of
from router.recorder import Recorder
from router.registry import Registry
from router.repeats import Repeats
from router.service import Ids, RouteService
from router.settlement import Settlement
from router.startup import Start
from router.stores.open import Store, open_store
from router.supervisor import Supervisor
from router.watch import watch_cards, watch_policy

log = logging.getLogger(__name__)

_MAX_CALLERS = 100_000

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Parts(TypedDict):
    """What is running; the HTTP edge and the command line find all they need here."""

    settings: Settings
    store: Store
    registry: Registry
    service: RouteService
    settlement: Settlement
    repeats: Repeats
    live: Live
    beats: Beats
    queue: DegradeQueue
    journal: Journal
    keys: KeyRing
    pool: EmbedPool
    readiness: Readiness
    clock: Clock


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
        StoreError: the store cannot be opened.
    """
    clock = clock or SystemClock()
    readiness = Readiness()
    async with AsyncExitStack() as stack:
        stack.enter_context(_one_thread())
        encoder = await asyncio.to_thread(encoder_of, settings) if embedder is None else embedder
        cards, policy = await asyncio.to_thread(_files, settings)
        store = await stack.enter_async_context(open_store(settings.store, clock=clock))
        pool = stack.enter_context(_pool(settings, encoder))
        keys = KeyRing(refresh_ms=settings.keys_refresh_ms, clock=clock)
        await keys.refresh(store.keys)
        journal = _journal(settings, store, clock, stack)
        supervisor = await stack.enter_async_context(Supervisor(readiness))
        vectors = CardVectors(pool, store.vectors)
        registry = Registry(vectors, store.cards, store.policies, clock)
        cascade = await cascade_of(settings, encoder)
        classifier = classifier_of(settings, registry, vectors, cascade)
        intake = Intake(pool, cascade, inline_rows=settings.inline_index_rows)
        ids = ids or random_ids(clock)
        live = await _live(store)
        beats = await _beats(live, registry, store, clock, stack)
        queue = DegradeQueue(store.tickets, lambda: registry.snapshot.policy, clock, ids.new)
        picker = Picker(Admission(live, clock), live, queue, clock)
        escalation = await escalation_of(settings, stack, clock)
        decider = Decider(intake, escalation, picker, live.sessions, clock, ZoneInfo(settings.time_zone))
        goals, recorder = Goals(store.records), Recorder(journal)
        service = RouteService(registry, decider, goals, recorder, clock, ids)
        settlement = Settlement(registry, live, journal, clock)
        supervisor.start("journal", journal.run)
        supervisor.start("keys", lambda: keys.run(store.keys))
        start = Start(registry, classifier, pool, readiness, on_ready)
        supervisor.start("cards", lambda: start.run(cards, policy))
        _follow(classifier, readiness, supervisor)
        _watch(settings, registry, readiness, supervisor)
        _keep_up(live, beats, queue, journal, readiness, supervisor, clock, ids)
        _probe(settings, registry, live, readiness, supervisor, clock)
        yield {
            "settings": settings,
            "store": store,
            "registry": registry,
            "service": service,
            "settlement": settlement,
            "repeats": Repeats(journal, clock),
            "live": live,
            "beats": beats,
            "queue": queue,
            "journal": journal,
            "keys": keys,
            "pool": pool,
            "readiness": readiness,
            "clock": clock,
        }


async def _live(store: Store) -> Live:
    live = Live(Random())
    live.posting.update(await store.records.known_callers(_MAX_CALLERS))
    return live


async def _beats(live: Live, registry: Registry, store: Store, clock: Clock, stack: AsyncExitStack) -> Beats:
    beats = Beats(live.health, store.heartbeats, clock)
    await beats.load()
    registry.on_swap = lambda snapshot: beats.follow(snapshot.digest_of)
    stack.push_async_callback(beats.save)
    return beats


def _keep_up(
    live: Live,
    beats: Beats,
    queue: DegradeQueue,
    journal: Journal,
    readiness: Readiness,
    supervisor: Supervisor,
    clock: Clock,
    ids: Ids,
) -> None:
    upkeep = Upkeep(live, journal, clock, ids.new)

    async def sweep() -> None:
        await readiness.ready.wait()  # the policy says when a ticket is given up
        await queue.run()

    supervisor.start("live state", upkeep.run)
    supervisor.start("heartbeats", beats.run)
    supervisor.start("queue", sweep)


def _probe(
    settings: Settings, registry: Registry, live: Live, readiness: Readiness, supervisor: Supervisor, clock: Clock
) -> None:
    hosts = ProbeHosts(settings.probe_hosts)
    prober = Prober(lambda: registry.snapshot.cards, live.health, hosts, clock, np.random.default_rng())

    async def probe() -> None:
        await readiness.ready.wait()
        await prober.run()

    supervisor.start("probes", probe)


def _one_thread() -> threadpool_limits:
    """Products of a matrix and a vector are one thread's work: a second one would spin longer than it helps."""
    return threadpool_limits(1, user_api="blas")


def _follow(classifier: Classifier | None, readiness: Readiness, supervisor: Supervisor) -> None:
    if classifier is None:
        return

    async def follow() -> None:
        await readiness.ready.wait()  # the start sees to the first ones
        await classifier.run(readiness)

    supervisor.start("classifier", follow)


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
    if not settings.watch:
        return
    if settings.cards:
        registry.files_watched = True
        supervisor.start("watch cards", lambda: watch_cards(settings.cards, registry, readiness))
    policy = settings.policy
    if policy is not None:
        supervisor.start("watch policy", lambda: watch_policy(policy, registry, readiness))

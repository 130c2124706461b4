"""Building live state and what keeps it up; part of the composition root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random

import numpy as np

from feedback.learner import Learner
from models.ports import Clock
from models.settings import Settings
from router.degrade_queue import DegradeQueue
from router.journal import Journal
from router.learning import Learning
from router.live.admission import Admission
from router.live.beats import Beats
from router.live.live import Live
from router.live.probe_hosts import ProbeHosts
from router.live.prober import Prober
from router.live.upkeep import Upkeep
from router.pick import Picker
from router.readiness import Readiness
from router.registry import Registry
from router.repeats import Repeats
from router.reviews import Corrections
from router.settlement import Settlement
from router.stores.open import Store
from router.supervisor import Supervisor
from router.weight_keeper import WeightKeeper

MAX_CALLERS = 100_000
"""So many callers that have posted outcomes are known at the start; others are when they post again."""


@dataclass(frozen=True, slots=True)
class LiveParts:
    """What decisions and outcomes share."""

    live: Live
    beats: Beats
    queue: DegradeQueue
    learning: Learning
    keeper: WeightKeeper
    picker: Picker
    settlement: Settlement
    repeats: Repeats


async def live_parts(
    registry: Registry,
    store: Store,
    journal: Journal,
    clock: Clock,
    new_id: Callable[[], str],
    stack: AsyncExitStack,
) -> LiveParts:
    """Build them; what an earlier run has stored is taken up."""
    live = Live(Random())
    learning = Learning(Learner())
    learning.load(*await store.weights.load())
    live.posting.update(await store.records.known_callers(MAX_CALLERS))
    beats = Beats(live.health, store.heartbeats, clock)
    await beats.load()
    registry.on_swap.append(lambda snapshot: beats.follow(snapshot.digest_of))
    registry.on_swap.append(learning.follow)
    stack.push_async_callback(beats.save)
    queue = DegradeQueue(store.tickets, lambda: registry.snapshot.policy, clock, new_id)
    corrections = Corrections(new_id, await store.retention.redaction_key())
    return LiveParts(
        live,
        beats,
        queue,
        learning,
        WeightKeeper(learning, store.weights, journal, lambda: registry.snapshot.policy, clock),
        Picker(Admission(live, clock), live, learning, queue, clock),
        Settlement(registry, live, learning, corrections, journal, clock),
        Repeats(journal, store.records, clock),
    )


def keep_up(
    parts: LiveParts,
    settings: Settings,
    registry: Registry,
    journal: Journal,
    clock: Clock,
    new_id: Callable[[], str],
    readiness: Readiness,
    supervisor: Supervisor,
) -> None:
    """Start what runs beside the requests."""
    prober = Prober(
        lambda: registry.snapshot.cards,
        parts.live.health,
        ProbeHosts(settings.probe_hosts),
        clock,
        np.random.default_rng(),
    )

    def once_ready(work: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            await readiness.ready.wait()  # there are no cards and no policy before
            await work()

        return run

    upkeep = Upkeep(parts.live, lambda: registry.snapshot, journal, clock, new_id)
    supervisor.start("weights", once_ready(parts.keeper.run))
    supervisor.start("live state", once_ready(upkeep.run))
    supervisor.start("heartbeats", parts.beats.run)
    supervisor.start("repeats", parts.repeats.run)
    supervisor.start("queue", once_ready(parts.queue.run))
    supervisor.start("probes", once_ready(prober.run))

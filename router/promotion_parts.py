"""What promotions need in a running service; part of the composition root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from intent.cascade import Cascade
from intent.embed_pool import EmbedPool
from intent.heads import Heads
from intent.intake import Intake
from models.ports import Clock
from models.settings import Settings
from router.journal import Journal
from router.live_parts import LiveParts
from router.promotion import Lanes
from router.promotion_files import models_folder
from router.promotion_follow import Follower
from router.promotion_shadow import Shadow
from router.readiness import Readiness
from router.reading_parts import heads_of
from router.registry import Registry
from router.service import Ids
from router.stores.open import Store
from router.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class PromotionParts:
    """Who reads what, what a candidate reads beside it, and what follows the store.

    Attributes:
        models: the folder of the copies of model folders.
        new_id: ids of traces.
    """

    lanes: Lanes
    shadow: Shadow
    follower: Follower
    models: Path
    new_id: Callable[[], str]


async def promotions_of(
    settings: Settings,
    cascade: Cascade,
    pool: EmbedPool,
    registry: Registry,
    store: Store,
    journal: Journal,
    live: LiveParts,
    clock: Clock,
    ids: Ids,
    readiness: Readiness,
    keep: Callable[[Heads], Awaitable[None]],
) -> PromotionParts:
    """Build them; what is in force by the store is taken up."""
    models = models_folder(settings.store)
    heads = await heads_of(settings, pool.embedder.encoder_id)
    lanes = Lanes(Intake(pool, cascade, inline_rows=settings.inline_index_rows), heads)
    live.learning.raised_floor = lanes.floor_now
    follower = Follower(
        store.promotions,
        lanes,
        models,
        pool.embedder.encoder_id,
        lambda: registry.snapshot.policy.learning.reward,
        journal,
        clock,
        ids.new,
        readiness,
        is_model_named=settings.model is not None,
        keep=keep,
    )
    await follower.begin()
    return PromotionParts(lanes, Shadow(lanes, live.picker, pool, journal, clock), follower, models, ids.new)


def keep_following(parts: PromotionParts, supervisor: Supervisor) -> None:
    """Start what runs beside the requests."""
    supervisor.start("promotion", parts.follower.run)
    supervisor.start("shadow", parts.shadow.run)

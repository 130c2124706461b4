"""Follower: a running service does what the promotions in the store say, and takes back what drops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from feedback.promote import LIMITS, InForce, Limits, in_force, taken_back
from intent.heads import Heads
from models.errors import ConflictError, ModelError, RouterError
from models.learning_policy import RewardPolicy
from models.ports import Clock
from models.promotion import Change, Promotion, PromotionStage, PromotionStore
from router.journal import Journal
from router.promotion import Lane, Lanes
from router.promotion_files import kept_model
from router.promotion_steps import change_rows
from router.promotion_watch import CandidateWatch, Seen
from router.readiness import Readiness

log = logging.getLogger(__name__)

POLL_S = 2.0
_PART = "promotion"
_NONE = InForce(None, None)


async def _nowhere(_heads: Heads) -> None:
    pass


class Follower:
    """Reads the promotions every few seconds, off the event loop where that takes long.

    Attributes:
        now: those that have an effect, as they were read last.
        watch: of the one that is watched; None where none is.
    """

    def __init__(
        self,
        store: PromotionStore,
        lanes: Lanes,
        models: Path,
        encoder_id: str,
        policy: Callable[[], RewardPolicy],
        journal: Journal,
        clock: Clock,
        new_id: Callable[[], str],
        readiness: Readiness,
        *,
        is_model_named: bool = False,
        keep: Callable[[Heads], Awaitable[None]] = _nowhere,
        limits: Limits = LIMITS,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Wire it up.

        Args:
            store: where promotions are.
            lanes: where their classifiers go.
            models: the folder of their copies.
            encoder_id: of the encoder that serves.
            policy: what an outcome is worth now.
            journal: takes the events.
            clock: the time.
            new_id: ids of traces.
            readiness: shows what cannot be followed.
            is_model_named: whether the settings name a model: it stays in force, whatever is full.
            keep: awaited with the classifiers of a promotion before anything is read by them.
            limits: k, h, and for how long a full one is watched.
            sleep: waits that many seconds; tests pass one that does not.
        """
        self.now = _NONE
        self.watch: CandidateWatch | None = None
        self.limits = limits
        self._store = store
        self._lanes = lanes
        self._models = models
        self._encoder_id = encoder_id
        self._policy = policy
        self._journal = journal
        self._clock = clock
        self._new_id = new_id
        self._readiness = readiness
        self._is_model_named = is_model_named
        self._keep = keep
        self._sleep = sleep
        self._known: dict[int, Lane] = {}
        self._problem = ""
        self._turn, self._watching = asyncio.Lock(), asyncio.Lock()

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._readiness.ready.wait()
        while True:
            await self.follow()
            await self._sleep(POLL_S)

    async def begin(self) -> None:
        """Put in force what the store says, before the first decision; an error is logged and shown."""
        try:
            await self.take_up()
        except RouterError as error:
            self._report(str(error))

    async def follow(self) -> None:
        """Read the store, and do what it says; an error is logged and shown, and what was in force stays so."""
        async with self._watching:
            try:
                await self.take_up()
                await self._watch()
            except RouterError as error:
                self._report(str(error))

    async def take_up(self) -> None:
        """Put in force what the store says.

        Raises:
            StoreError: it cannot be read.
        """
        async with self._turn:
            await self._take_up()

    async def _take_up(self) -> None:
        promotions = await self._store.load()
        now = in_force(promotions)
        if now == self.now and not self._problem:
            return
        full, candidate = await self._lane(now.full, is_full=True), await self._lane(now.candidate)
        is_canary = now.candidate is not None and now.candidate.stage is PromotionStage.CANARY
        self._lanes.put(
            full=full,
            canary=candidate if is_canary else None,
            share=self.limits.canary_share,
            shadow=None if is_canary else candidate,
        )
        self._tell(now)
        self._tell_ended(promotions, now)
        self._known = {key: lane for key, lane in self._known.items() if lane in (full, candidate)}
        self.now = now
        self._begin_watch()

    def _begin_watch(self) -> Promotion | None:
        """The promotion that is watched; its watch is there as soon as it has an effect, and gone when it has none."""
        watched = next((each for each in (self.now.candidate, self.now.full) if each and each.body.is_watched), None)
        if watched is None:
            self.watch = None
        elif self.watch is None or self.watch.promotion_id != watched.promotion_id:
            self.watch = CandidateWatch(watched, self.limits)
        return watched

    async def _lane(self, promotion: Promotion | None, *, is_full: bool = False) -> Lane | None:
        """The lane of a promotion; None where it has none here."""
        if promotion is None or (is_full and self._is_model_named):
            return None
        lane = self._known.get(promotion.promotion_id)
        if lane is not None:
            return lane
        try:
            model = await asyncio.to_thread(kept_model, promotion, self._models, self._encoder_id)
        except ModelError as error:
            self._report(f"promotion {promotion.promotion_id} is not followed: {error}")
            return None
        cascade = self._lanes.own.cascade.beside()
        await self._keep(model.heads)
        cascade.use(model.heads)
        lane = Lane(self._lanes.own.beside(cascade), promotion.promotion_id, model.success)
        self._known[promotion.promotion_id] = lane
        return lane

    def _tell(self, now: InForce) -> None:
        """Log what is new; clear the problem that is none any more."""
        loaded = all(
            each is None or each.promotion_id in self._known or (each is now.full and self._is_model_named)
            for each in now
        )
        if loaded and self._problem:
            self._problem = ""
            self._readiness.clear(_PART)
        for before, after in zip(self.now, now, strict=True):
            if after is None or (before is not None and before.stage is after.stage and before.digest == after.digest):
                continue
            if after is now.full and self._is_model_named:
                log.warning(
                    "promotion %d is full, but the model that the settings name stays in force: start without it",
                    after.promotion_id,
                )
            elif after.promotion_id in self._known:
                generation = self._known[after.promotion_id].intake.cascade.generation
                log.info("promotion %d: %s, classifier generation %d", after.promotion_id, after.stage, generation)

    def _tell_ended(self, promotions: Sequence[Promotion], now: InForce) -> None:
        """Log what had an effect and has none any more: what it was, how it ended, and what reads in its place."""
        kept = {each.promotion_id for each in now if each is not None}
        last = {each.promotion_id: each for each in promotions}
        for before in self.now:
            if before is None or before.promotion_id in kept:
                continue
            after = last.get(before.promotion_id, before)
            step, instead = after.body.history[-1], self._instead(before, now)
            log.info(
                "promotion %d of %s, in the stage %s, is over (%s by %s: %s): %s",
                before.promotion_id, before.folder, before.stage, after.stage, step.by, step.why, instead,
            )  # fmt: skip

    def _instead(self, ended: Promotion, now: InForce) -> str:
        """What reads where a promotion did, in words."""
        if ended.stage is PromotionStage.SHADOW:
            return "it had no effect, and the classifiers in force stay"
        if self._is_model_named:
            return "utterances are read by the model that the settings name"
        if now.full is None:
            return "utterances are read by the classifiers of the cards, or of the settings"
        return f"utterances are read by promotion {now.full.promotion_id}"

    async def _watch(self) -> None:
        """Look at the outcomes of the one that is watched; take it back, or end the watch."""
        watched, watch = self._begin_watch(), self.watch
        if watched is None or watch is None:
            return
        await watch.catch_up(self._store, watched, self._policy())
        if watch.seen.has_alarm:
            await self._take_back(watched, watch.seen)
        elif watch.seen.n_since_full >= self.limits.watched_outcomes:
            unwatched = watched.body.model_copy(update={"is_watched": False})
            after = watched.model_copy(update={"body": unwatched, "updated_at": watched.updated_at + 1})
            if await self._store.change([Change(watched, after)]):
                log.info("promotion %d has proved itself and is no longer watched", watched.promotion_id)
            await self.take_up()

    async def _take_back(self, watched: Promotion, seen: Seen) -> None:
        why = f"the mean reward of {seen.n_outcomes} outcomes is {seen.mean or 0.0:.3f}"
        why += f", before it was {seen.mean_before:.3f}"
        now_ms = int(self._clock.now_ms())
        try:
            changes = taken_back(await self._store.load(), now_ms, "service", why, alarmed=watched.promotion_id)
        except ConflictError:
            changes = []  # somebody was faster
        if changes and await self._store.change(changes):
            log.warning("promotion %d is rolled back: %s", watched.promotion_id, why)
            self._journal.put(change_rows(changes, self._new_id(), self._new_id()[16:], now_ms, ""))
        self.watch = None
        await self.take_up()

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            log.error("%s", problem)
        self._problem = problem
        self._readiness.report(_PART, problem)

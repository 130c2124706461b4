"""CandidateWatch: the outcomes of a candidate as the store has them, and whether they have dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from feedback.attribution import Charge, Party
from feedback.drop_watch import Watch, baseline_of, worth
from feedback.promote import LIMITS, Limits
from feedback.reward import reward
from models.learning_policy import RewardPolicy
from models.outcome import Outcome
from models.promotion import Baseline, Cursor, Promotion, PromotionStore, ReadOutcome

_PAGE = 500
_BASELINE_SPAN = 20_000
"""Of so many outcomes, the newest, a baseline is made."""

_CLOCKS_DIFFER_MS = 60_000
"""Verdicts of another process may bear an instant that was passed already."""


def judged(told: ReadOutcome, policy: RewardPolicy) -> float | None:
    """What an outcome says of the reading that led to it, 0..1; None where it says nothing."""
    try:
        outcome, party = Outcome.model_validate_json(told.body), Party(told.charged)
    except ValueError:
        return None  # of another release, or erased
    return worth(told.corrected, told.intent, reward(outcome, Charge(party, failed=False), told.slice_ms, policy))


async def baseline(store: PromotionStore, in_force: int | None, policy: RewardPolicy) -> Baseline:
    """The rewards of the classifiers in force, over the newest outcomes.

    Args:
        store: has the outcomes.
        in_force: the promotion that brought those classifiers; None where none did.
        policy: what an outcome is worth.
    """
    rewards: dict[str, float | None] = {}
    after = max(0, await store.newest_outcome() - _BASELINE_SPAN)
    while True:
        page, last = await store.outcomes(after, _PAGE)
        rewards.update((told.decision_id, judged(told, policy)) for told in page if told.promotion_id == in_force)
        if last == after:
            return baseline_of([each for each in rewards.values() if each is not None])
        after = last


class Seen(NamedTuple):
    """How a watch stands.

    Attributes:
        n_outcomes: decisions that count, since it had an effect.
        n_since_full: the same since it is full.
        mean: of their rewards; None where there are none.
        mean_before: of the classifiers before.
        level: the sum C, of which no caller's outcomes make up more than they may.
        threshold: h, as it holds; above it the alarm is raised.
        has_alarm: whether C ever was above it.
    """

    n_outcomes: int
    n_since_full: int
    mean: float | None
    mean_before: float
    level: float
    threshold: float
    has_alarm: bool


class CandidateWatch:
    """Reads the outcomes of one promotion as they come; an amended one takes the place of what it amends.

    A correction counts from its acceptance on, however late that is.

    Attributes:
        seen: how it stands, as of the last time it caught up.

    Args:
        promotion: in the stage `canary` or `full`, with a baseline.
        limits: k and h.
    """

    def __init__(self, promotion: Promotion, limits: Limits = LIMITS) -> None:
        body = promotion.body
        if body.baseline is None or body.after is None:
            raise ValueError(f"promotion {promotion.promotion_id} has had no effect yet: there is nothing to watch")
        self.promotion_id = promotion.promotion_id
        self._mean_before = body.baseline.mean
        self._watch = Watch(body.baseline, slack=limits.slack, threshold=limits.threshold)
        self._after = body.after
        self._decided: Cursor = (0, "")
        self._since_full: dict[str, None] = {}
        self.seen = self._look()

    async def catch_up(self, store: PromotionStore, promotion: Promotion, policy: RewardPolicy) -> None:
        """Take what has come since the last time.

        Args:
            store: has the outcomes.
            promotion: as it is now.
            policy: what an outcome is worth.
        """
        full_after = promotion.body.full_after
        while True:
            page, last = await store.outcomes(self._after, _PAGE)
            if last == self._after:
                break
            self.seen = await asyncio.to_thread(self._take, page, full_after, policy)
            self._after = last
        decided: Cursor = (max(0, self._decided[0] - _CLOCKS_DIFFER_MS), "")
        while True:
            page, following = await store.corrected(promotion.created_at, decided, _PAGE)
            if following == decided:
                break
            self.seen = await asyncio.to_thread(self._take, page, full_after, policy)
            decided = following
        self._decided = max(self._decided, decided)

    def _take(self, page: Sequence[ReadOutcome], full_after: int | None, policy: RewardPolicy) -> Seen:
        for told in page:
            if told.promotion_id != self.promotion_id:
                continue
            value = judged(told, policy)
            self._watch.tell(told.decision_id, value, told.caller)
            if full_after is not None and told.sequence > full_after and value is not None:
                self._since_full[told.decision_id] = None
        return self._look()

    def _look(self) -> Seen:
        watch = self._watch
        n_since_full, threshold = len(self._since_full), watch.threshold
        return Seen(watch.n, n_since_full, watch.mean, self._mean_before, watch.level, threshold, watch.has_alarm)

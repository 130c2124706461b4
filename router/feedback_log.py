"""The feedback log: recorded decisions and their outcomes, streamed out of a store for offline analysis."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Protocol

from feedback.log_entry import LogEntry
from models.learning_policy import RewardPolicy
from router.logged_decision import Logged, OlderFormatError, Rewarder, read_record
from router.stores.feedback_log import LogQuery, RecordedDecision

PAGE = 250
"""Decisions that are held at once while reading."""


class Pages(Protocol):
    """Where recorded decisions come from."""

    async def page(self, query: LogQuery, after: tuple[int, str] | None, limit: int) -> Sequence[RecordedDecision]:
        """At most `limit` decisions after the one of that time and id; fewer than that are the last ones."""


async def logged(
    pages: Pages, query: LogQuery, rewards: RewardPolicy | None = None, unread: Counter[str] | None = None
) -> AsyncIterator[Logged]:
    """Recorded decisions that named an agent, one after another; no more than a page of them is held at once.

    Args:
        pages: where they come from.
        query: which, and in what order.
        rewards: how outcomes become rewards; None takes the policy as shipped.
        unread: counts the records that cannot be taken: `older_format`, those of before records held all that a
            decision is made from, and `unreadable`, those that are not as this release writes them.
    """
    from feedback.reward import reward

    rewarder = partial(reward, policy=rewards or RewardPolicy())
    counted = Counter() if unread is None else unread
    after: tuple[int, str] | None = None
    while True:
        rows = await pages.page(query, after, PAGE)
        # off the event loop, as a service may be the one that reads
        for one in await asyncio.to_thread(_taken, rows, rewarder, counted):
            yield one
        if len(rows) < PAGE:
            return
        after = (rows[-1].decision.happened_at, rows[-1].decision.decision_id)


async def entries(
    pages: Pages, query: LogQuery, rewards: RewardPolicy | None = None, unread: Counter[str] | None = None
) -> AsyncIterator[LogEntry]:
    """The same as `logged`, without what decisions were made from."""
    async for one in logged(pages, query, rewards, unread):
        yield one.entry


def _taken(rows: Sequence[RecordedDecision], reward: Rewarder, unread: Counter[str]) -> list[Logged]:
    found = []
    for row in rows:
        try:
            found.append(read_record(row.decision, row.outcomes, reward))
        except OlderFormatError:
            unread["older_format"] += 1
        except (ValueError, TypeError, LookupError, AttributeError):
            # a record may be of any release, or erased
            unread["unreadable"] += 1
    return found

"""SqlTrainingLog: what decisions, outcomes and corrections teach, page by page, of a store that is there already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, exists, func, or_, select

from models.ports import StoredCard
from router.clock import SystemClock
from router.stores.cards import SqlCards
from router.stores.database import Database
from router.stores.feedback_log import LogQuery, RecordedDecision, SqlFeedbackLog
from router.stores.opened import opened
from router.stores.sqlite import existing_file
from router.stores.tables import decisions, outcomes, reviews

Cursor = tuple[int, str]
"""Instant (epoch, milliseconds) and id of the last row that was read."""

START: Cursor = (-1, "")

_NEWEST_FIRST = LogQuery(newest_first=True)


class SettledDecision(NamedTuple):
    """A decision that named an agent, whose first attempt has an outcome, and that nobody has corrected.

    Attributes:
        caller: name of the key that asked; "" while keys are off.
        asker: in whose name it was asked.
        request: JSON text, as is `answer`.
        outcome: the newest of the first attempt, JSON text.
        charged: whom it was charged to.
    """

    decision_id: str
    caller: str
    asker: str
    intent: str
    request: str
    answer: str
    happened_at: int
    outcome: str
    charged: str

    @property
    def cursor(self) -> Cursor:
        """To read on behind it."""
        return (self.happened_at, self.decision_id)


class AcceptedCorrection(NamedTuple):
    """A correction that may become a training example.

    Attributes:
        asker: in whose name the decision was asked.
        text: the utterance; None where none is kept.
        intent: the one that was read.
        decided_at: epoch, milliseconds.
        caller: name of the key that asked; None where the decision is gone, "" while keys were off.
    """

    review_id: str
    decision_id: str
    asker: str
    text: str | None
    intent: str | None
    correct_intent: str
    decided_at: int
    caller: str | None

    @property
    def cursor(self) -> Cursor:
        """To read on behind it."""
        return (self.decided_at, self.review_id)


_DECIDED_AT = func.coalesce(reviews.c.decided_at, reviews.c.created_at)


class SqlTrainingLog:
    """Reads only; a service may write meanwhile."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cards = SqlCards(database, SystemClock())
        self._feedback = SqlFeedbackLog(database)

    async def cards(self) -> Sequence[StoredCard]:
        """All stored cards by key."""
        return await self._cards.load_cards()

    async def n_decisions(self) -> int:
        """How many decisions are recorded."""
        query = select(func.count()).select_from(decisions)
        return await self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    async def settled(self, after: Cursor, limit: int) -> Sequence[SettledDecision]:
        """At most `limit` behind the cursor, oldest first."""
        query = settled_query(after, limit)

        def work(connection: Connection) -> list[SettledDecision]:
            return [SettledDecision._make(row) for row in connection.execute(query)]

        return await self._database.read(work)

    async def accepted(self, after: Cursor, limit: int) -> Sequence[AcceptedCorrection]:
        """At most `limit` behind the cursor, in the order in which they were accepted."""
        query = accepted_query(after, limit)

        def work(connection: Connection) -> list[AcceptedCorrection]:
            return [AcceptedCorrection._make(row) for row in connection.execute(query)]

        return await self._database.read(work)

    async def recorded(self, before: Cursor | None, limit: int) -> Sequence[RecordedDecision]:
        """At most `limit` decisions that named an agent, newest first, of each attempt the newest outcome.

        Args:
            before: that of the last one of the page before; None begins.
            limit: at least 1; fewer decisions than that are the last ones.
        """
        return await self._feedback.page(_NEWEST_FIRST, before, limit)

    async def n_orphans(self) -> int:
        """Outcomes charged to an agent whose decision has no record any more."""
        query = (
            select(func.count())
            .select_from(outcomes)
            .where(outcomes.c.charged == "agent", ~exists().where(decisions.c.decision_id == outcomes.c.decision_id))
        )
        return await self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    async def policy(self) -> bytes | None:
        """JSON text of the policy that was in force last; None where none is kept."""
        return next(iter((await self._feedback.policies()).values()), None)


@asynccontextmanager
async def open_training_log(url: str) -> AsyncIterator[SqlTrainingLog]:
    """Open the store that `url` names, brought to the newest schema if need be.

    Raises:
        StoreError: there is none, or it cannot be opened.
    """
    await asyncio.to_thread(existing_file, url)
    async with opened(url) as database:
        yield SqlTrainingLog(database)


def settled_query(after: Cursor, limit: int) -> Select[Any]:
    """A page of decisions along the index by time, each with its outcome through that by decision."""
    newest = (
        select(func.max(outcomes.c.sequence))
        .where(outcomes.c.decision_id == decisions.c.decision_id, outcomes.c.attempt == 1)
        .correlate(decisions)
        .scalar_subquery()
    )
    columns = (decisions.c[name] for name in SettledDecision._fields[:-2])
    return (
        select(*columns, outcomes.c.body, outcomes.c.charged)
        .join(outcomes, outcomes.c.sequence == newest)
        .where(
            _behind(decisions.c.happened_at, decisions.c.decision_id, after),
            decisions.c.action == "invoke",
            decisions.c.intent.is_not(None),
            ~exists().where(reviews.c.decision_id == decisions.c.decision_id),
        )
        .order_by(decisions.c.happened_at, decisions.c.decision_id)
        .limit(limit)
    )


def accepted_query(after: Cursor, limit: int) -> Select[Any]:
    """A page of accepted corrections."""
    return (
        select(
            reviews.c.review_id,
            reviews.c.decision_id,
            reviews.c.caller,
            reviews.c.text,
            reviews.c.intent,
            reviews.c.correct_intent,
            _DECIDED_AT,
            decisions.c.caller,
        )
        .join(decisions, decisions.c.decision_id == reviews.c.decision_id, isouter=True)
        .where(reviews.c.state == "accepted", _behind(_DECIDED_AT, reviews.c.review_id, after))
        .order_by(_DECIDED_AT, reviews.c.review_id)
        .limit(limit)
    )


def _behind(instant: Any, name: Any, after: Cursor) -> Any:
    at_ms, last = after
    return and_(instant >= at_ms, or_(instant > at_ms, name > last))

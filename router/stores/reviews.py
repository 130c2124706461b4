"""SqlReviews: corrections and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, insert, or_, select, update

from models.errors import ConflictError
from models.events import ReviewRow
from models.review import ReviewFilter, ReviewState, StoredReview, Verdict
from router.stores.database import Database
from router.stores.tables import meta, reviews

MAX_WAITING = 200
"""So many corrections of one caller wait at most; what it sends beyond is counted and not kept."""

N_REFUSED = "reviews_refused"
"""Name of the count in `meta`."""

_WAITING, _ACCEPTED, _REJECTED = (str(state) for state in ReviewState)
_COLUMNS = tuple(reviews.c[name] for name in StoredReview._fields[:-1])


class SqlReviews:
    """A `ReviewStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, wanted: ReviewFilter, after: str, limit: int) -> Sequence[StoredReview]:
        """Corrections with an id greater than `after`, in the order of their ids."""
        query = page_query(wanted, after, limit)
        return await self._database.read(lambda connection: _with_agreement(connection, query))

    async def n_waiting(self, wanted: ReviewFilter) -> int:
        """How many wait, whatever `wanted.state`."""
        waiting = [reviews.c.state == _WAITING, *_of(wanted._replace(state=None))]
        query = select(func.count()).select_from(reviews).where(*waiting)
        return await self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    async def n_refused(self) -> int:
        """How many were not kept, as too many of their caller waited."""
        return await self._database.read(_n_refused)

    async def get(self, review_id: str) -> StoredReview | None:
        """One correction."""
        return await self._database.read(lambda connection: _one(connection, review_id))

    async def decide(self, review_id: str, verdict: Verdict, decided_by: str, at_ms: int) -> StoredReview | None:
        """The correction after the verdict; None where there is none.

        The same verdict again changes nothing. One that is accepted takes the place of those of its decision and caller
        that were accepted before: they count as rejected.

        Raises:
            ConflictError: it has got the other verdict before.
        """

        def work(connection: Connection) -> StoredReview | None:
            row = _one(connection, review_id)
            if row is None or row.state is verdict:
                return row
            if row.state is not ReviewState.WAITING:
                raise ConflictError(f"the correction {review_id!r} is {row.state} already, which stays")
            said = {"decided_at": at_ms, "decided_by": decided_by}
            if verdict is ReviewState.ACCEPTED:
                earlier = and_(_by(row.decision_id, row.caller), reviews.c.state == _ACCEPTED)
                connection.execute(update(reviews).where(earlier).values(state=_REJECTED, **said))
            change = update(reviews).where(reviews.c.review_id == review_id)
            connection.execute(change.values(state=str(verdict), **said))
            return _one(connection, review_id)

        return await self._database.write(work)


def put_reviews(connection: Connection, rows: Iterable[ReviewRow]) -> None:
    """Take corrections, in the order given: the last one of a decision and caller is the one that waits."""
    n_refused = 0
    for row in rows:
        own = _by(row.decision_id, row.caller)
        connection.execute(delete(reviews).where(own, reviews.c.state == _WAITING))
        decided = select(func.count()).where(own, reviews.c.correct_intent == row.correct_intent)
        if not row.correct_intent or connection.execute(decided).scalar_one():
            continue
        if connection.execute(n_waiting_query(row.caller)).scalar_one() >= MAX_WAITING:
            n_refused += 1
        else:
            connection.execute(insert(reviews), row._asdict())
    if n_refused:
        total = {"name": N_REFUSED, "value": str(_n_refused(connection) + n_refused)}
        connection.execute(delete(meta).where(meta.c.name == N_REFUSED))
        connection.execute(insert(meta), total)


def page_query(wanted: ReviewFilter, after: str, limit: int) -> Select[Any]:
    """A page of corrections by id."""
    query = select(*_COLUMNS).where(reviews.c.review_id > after, *_of(wanted))
    return query.order_by(reviews.c.review_id).limit(limit)


def n_waiting_query(caller: str) -> Select[Any]:
    """How many of a caller wait, through their index."""
    return select(func.count()).where(reviews.c.caller == caller, reviews.c.state == _WAITING)


def agreement_query(review_ids: Sequence[str]) -> Select[Any]:
    """(id, other callers who say the same of the same text), of those where there are any."""
    other = reviews.alias("other")
    is_same = and_(
        other.c.correct_intent == reviews.c.correct_intent,
        other.c.namespace == reviews.c.namespace,
        other.c.text == reviews.c.text,
        other.c.caller != reviews.c.caller,
        other.c.state != _REJECTED,
    )
    return (
        select(reviews.c.review_id, func.count(other.c.caller.distinct()))
        .join(other, is_same)
        .where(reviews.c.review_id.in_(review_ids))
        .group_by(reviews.c.review_id)
    )


def _by(decision_id: str, caller: str) -> ColumnElement[bool]:
    return and_(reviews.c.decision_id == decision_id, reviews.c.caller == caller)


def _of(wanted: ReviewFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.namespaces is not None:
        conditions.append(reviews.c.namespace.in_(wanted.namespaces))
    if wanted.state is not None:
        conditions.append(reviews.c.state == str(wanted.state))
    if wanted.intent is not None:
        conditions.append(or_(reviews.c.intent == wanted.intent, reviews.c.correct_intent == wanted.intent))
    if wanted.caller is not None:
        conditions.append(reviews.c.caller == wanted.caller)
    return conditions


def _one(connection: Connection, review_id: str) -> StoredReview | None:
    found = _with_agreement(connection, select(*_COLUMNS).where(reviews.c.review_id == review_id))
    return found[0] if found else None


def _with_agreement(connection: Connection, query: Select[Any]) -> list[StoredReview]:
    rows = [StoredReview._make((*row, 0)) for row in connection.execute(query)]
    known = agreement_query([row.review_id for row in rows])
    agree = {row[0]: row[1] for row in connection.execute(known)} if rows else {}
    return [row._replace(state=ReviewState(row.state), n_agree=agree.get(row.review_id, 0)) for row in rows]


def _n_refused(connection: Connection) -> int:
    found = connection.execute(select(meta.c.value).where(meta.c.name == N_REFUSED)).scalar_one_or_none()
    return int(found or 0)

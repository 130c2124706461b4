"""SqlPromotions: promotions, what their candidates read in the shadow, and the outcomes that judge them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from pydantic import ValidationError
from sqlalchemy import Connection, Label, Row, Select, and_, func, insert, or_, select, update

from models.errors import ConflictError, StoreError
from models.events import OutcomeRow, ShadowRow
from models.promotion import Change, Cursor, Promotion, PromotionBody, ReadOutcome
from router.stores.database import Database
from router.stores.tables import decisions, outcomes, promotions, reviews, shadows

_ACTIVE = ("shadow", "canary")
_RECORD = (
    *(decisions.c[name] for name in ("namespace", "intent", "request", "answer", "inputs", "asker")),
    decisions.c.caller.label("key"),
)
_TOLD = (outcomes.c.sequence, *(outcomes.c[name] for name in OutcomeRow._fields))
_ACCEPTED, _WAITS = "accepted", "waiting"


def _meant(state: str, name: str) -> Label[Any]:
    """The intent that was meant by the newest correction in a state."""
    said = reviews.alias("said")
    return (
        select(said.c.correct_intent)
        .where(said.c.decision_id == decisions.c.decision_id, said.c.state == state)
        .order_by(func.coalesce(said.c.decided_at, said.c.created_at).desc(), said.c.review_id.desc())
        .limit(1)
        .correlate(decisions)
        .scalar_subquery()
        .label(name)
    )


_CORRECTED, _WAITING = _meant(_ACCEPTED, "corrected"), _meant(_WAITS, "waiting")


class SqlPromotions:
    """A `PromotionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> Sequence[Promotion]:
        """All of them, oldest first.

        Raises:
            StoreError: where one cannot be read.
        """
        query = select(promotions).order_by(promotions.c.promotion_id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_promotion(row) for row in rows]

    async def add(self, promotion: Promotion) -> Promotion:
        """Store a new one; with its id.

        Raises:
            ConflictError: where another candidate is on its way.
        """
        active = select(promotions.c.promotion_id).where(promotions.c.stage.in_(_ACTIVE))

        def work(connection: Connection) -> int | None:
            if connection.execute(active).first() is not None:
                return None
            made = connection.execute(insert(promotions).values(_values(promotion)))
            (promotion_id,) = made.inserted_primary_key or (0,)
            return int(promotion_id)

        promotion_id = await self._database.write(work)
        if promotion_id is None:
            raise ConflictError("another candidate is on its way: see GET /promotion")
        return promotion.model_copy(update={"promotion_id": promotion_id})

    async def change(self, changes: Sequence[Change]) -> bool:
        """Make all changes, or none where one of the promotions is no longer as it was before."""

        def work(connection: Connection) -> bool:
            stages = select(promotions.c.promotion_id, promotions.c.stage, promotions.c.updated_at)
            known = {row[0]: (row[1], row[2]) for row in connection.execute(stages)}
            wanted = {each.before.promotion_id: (each.before.stage, each.before.updated_at) for each in changes}
            if any(known.get(promotion_id) != state for promotion_id, state in wanted.items()):
                return False
            for each in changes:
                is_it = promotions.c.promotion_id == each.before.promotion_id
                connection.execute(update(promotions).where(is_it).values(_values(each.after)))
            return True

        return await self._database.write(work)

    async def newest_outcome(self) -> int:
        """Number of the newest outcome; 0 where there is none."""
        query = select(func.max(outcomes.c.sequence))
        return await self._database.read(lambda connection: connection.execute(query).scalar_one() or 0)

    async def outcomes(self, after: int, limit: int) -> tuple[Sequence[ReadOutcome], int]:
        """Outcomes among the next `limit` with a number > `after`, in order; the number to go on from.

        Those that judge no reading are left out: of later attempts, of given intents, of agents that the caller chose
        by itself, and those whose decision is not kept.
        """
        query = outcomes_query(after, limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        found = await asyncio.to_thread(_judging, rows)
        return found, rows[-1][0] if rows else after

    async def shadows(
        self, promotion_id: int, after: str, limit: int
    ) -> Sequence[tuple[ShadowRow, ReadOutcome | None]]:
        """At most `limit` shadows of a promotion with their newest outcomes, of decisions with an id > `after`."""
        columns = (shadows.c[name] for name in ShadowRow._fields)
        page = (
            select(*columns)
            .where(shadows.c.promotion_id == promotion_id, shadows.c.decision_id > after)
            .order_by(shadows.c.decision_id)
            .limit(limit)
        )

        def work(connection: Connection) -> tuple[list[ShadowRow], Sequence[Row[Any]]]:
            found = [ShadowRow._make(row) for row in connection.execute(page)]
            named = outcomes.c.decision_id.in_([row.decision_id for row in found])
            told = _outcomes().where(named, outcomes.c.attempt == 1).order_by(outcomes.c.sequence)
            return found, connection.execute(told).all()

        found, told = await self._database.read(work)
        newest = {each.decision_id: each for each in await asyncio.to_thread(_judging, told)}
        return [(row, newest.get(row.decision_id)) for row in found]

    async def corrected(self, since_ms: int, after: Cursor, limit: int) -> tuple[Sequence[ReadOutcome], Cursor]:
        """Newest outcomes of decisions with one of the next `limit` accepted corrections; the place to go on from.

        Only corrections made at `since_ms` (epoch) or later; in the order of their acceptance.
        """
        query = corrected_query(since_ms, after, limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        found = await asyncio.to_thread(_judging, rows)
        return found, (rows[-1].decided_at, rows[-1].review_id) if rows else after

    async def n_shadows(self, promotion_id: int) -> int:
        """How many shadows it has."""
        query = select(func.count()).select_from(shadows).where(shadows.c.promotion_id == promotion_id)
        return await self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    async def encoder_id(self) -> str | None:
        """The encoder of the newest decision; None where there is none."""
        query = select(decisions.c.inputs).order_by(decisions.c.happened_at.desc()).limit(1)
        inputs = await self._database.read(lambda connection: connection.execute(query).scalar_one_or_none())
        found = _object(inputs or "").get("encoder_id")
        return found if isinstance(found, str) else None


def _outcomes() -> Select[Any]:
    query = select(*_TOLD, *_RECORD, _CORRECTED, _WAITING)
    return query.join(decisions, decisions.c.decision_id == outcomes.c.decision_id)


def outcomes_query(after: int, limit: int) -> Select[Any]:
    """The next outcomes along the primary key; those without a kept decision too, so that the page ends somewhere."""
    joined = outcomes.outerjoin(decisions, decisions.c.decision_id == outcomes.c.decision_id)
    query = select(*_TOLD, *_RECORD, _CORRECTED).select_from(joined).where(outcomes.c.sequence > after)
    return query.order_by(outcomes.c.sequence).limit(limit)


def corrected_query(since_ms: int, after: Cursor, limit: int) -> Select[Any]:
    """The next accepted corrections, each with the newest outcome; through the index by state and time."""
    newest = (
        select(func.max(outcomes.c.sequence))
        .where(outcomes.c.decision_id == reviews.c.decision_id, outcomes.c.attempt == 1)
        .correlate(reviews)
        .scalar_subquery()
    )
    decided_at, review_id = reviews.c.decided_at, reviews.c.review_id
    is_behind = or_(decided_at > after[0], and_(decided_at == after[0], review_id > after[1]))
    joined = reviews.join(outcomes, outcomes.c.sequence == newest).join(
        decisions, decisions.c.decision_id == reviews.c.decision_id
    )
    return (
        select(*_TOLD, *_RECORD, _CORRECTED, decided_at, review_id)
        .select_from(joined)
        .where(reviews.c.state == _ACCEPTED, reviews.c.created_at >= since_ms, is_behind)
        .order_by(decided_at, review_id)
        .limit(limit)
    )


def _judging(rows: Iterable[Row[Any]]) -> list[ReadOutcome]:
    return [found for found in map(_read_outcome, rows) if found is not None]


def _read_outcome(row: Row[Any]) -> ReadOutcome | None:
    if row.attempt != 1 or row.answer is None:
        return None
    request, inputs = _object(row.request), _object(row.inputs)
    if request.get("intent") is not None or request.get("caller_choice") is not None:
        return None
    plan = _object(row.answer).get("plan") or []
    return ReadOutcome(
        sequence=row.sequence,
        decision_id=row.decision_id,
        namespace=row.namespace,
        body=row.body,
        charged=row.charged,
        intent=row.intent,
        slice_ms=plan[0]["timeout_ms"] if plan else 0,
        promotion_id=inputs.get("promotion_id"),
        received_at=row.received_at,
        caller=row.key or row.asker,
        corrected=row.corrected,
        waiting=row._mapping.get("waiting"),
    )


def _object(text: str) -> dict[str, Any]:
    """What a record holds; nothing where it was erased."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _values(promotion: Promotion) -> dict[str, Any]:
    return {
        "folder": promotion.folder,
        "digest": promotion.digest,
        "stage": str(promotion.stage),
        "body": promotion.body.model_dump_json(),
        "created_at": promotion.created_at,
        "updated_at": promotion.updated_at,
    }


def _promotion(row: Row[Any]) -> Promotion:
    try:
        return Promotion(**{**row._asdict(), "body": PromotionBody.model_validate_json(row.body)})
    except ValidationError as error:
        raise StoreError(f"the stored promotion {row.promotion_id} cannot be read: {error}") from error

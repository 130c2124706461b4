"""Subjects: what is kept of a caller or a session is shown to it, and erased."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from feedback.learner import Learner
from models.events import EVIDENCE_UNIT, WeightRow
from models.key import ADMIN
from models.learning_policy import LearningPolicy
from models.ports import Clock, WeightStore
from models.subject import Erased, Subject, SubjectRecord, SubjectStore
from router.journal import Journal
from router.live.live import Live
from router.live.open_decisions import OpenDecision
from router.permit import Grants

BATCH = 200
"""Decisions that are erased in one write."""

ERASE_MS = 20_000.0
"""The longest that one call erases; it is called again where that was not enough."""

MAX_SUMS = 10_000
"""Rows of usage, and of evidence, that an export holds at most."""

MAX_CHARS = 8 * 1024 * 1024
"""An export ends a page after so much text."""

FLUSH_MS = 5000.0


class Subjects:
    """Exports and erases; a key without `router:admin` reaches what was asked with it alone.

    Args:
        store: the tables.
        weights: where snapshots of the weights are.
        learner: what is learned, in memory.
        rules: of learning: as far as they let a caller's word count for others, it stays.
        clock: the time.
        journal: has rows on their way to the store.
        live: holds decisions and sessions in memory; None where no service runs here.
    """

    def __init__(
        self,
        store: SubjectStore,
        weights: WeightStore,
        learner: Learner,
        rules: LearningPolicy,
        clock: Clock,
        journal: Journal,
        live: Live | None,
    ) -> None:
        self._store = store
        self._weights = weights
        self._learner = learner
        self._rules = rules
        self._clock = clock
        self._journal = journal
        self._live = live

    async def export(self, name: str, grants: Grants, *, after: str = "", limit: int = 50) -> dict[str, Any]:
        """A page of what is kept, as a JSON value; sums stand on the first page alone.

        Args:
            name: of a caller (its key or its agent id) or a session.
            grants: of who asks.
            after: the `next` of the page before; "" begins.
            limit: at most so many decisions.

        Raises:
            StoreError: what is on its way to the store cannot be written.
        """
        subject = subject_of(name, grants)
        await self._journal.flush(FLUSH_MS)
        records = await self._store.records(subject, after, limit + 1)
        taken: list[SubjectRecord] = []
        n_chars = 0
        for record in records[:limit]:
            n_chars += sum(map(len, (record.decision.request, record.decision.answer, record.decision.inputs)))
            if taken and n_chars > MAX_CHARS:
                break
            taken.append(record)
        page: dict[str, Any] = {
            "subject": name,
            "decisions": [shown(record) for record in taken],
            "usage": [],
            "evidence": [],
            "truncated": False,
            "next": taken[-1].decision.decision_id if len(taken) < len(records) else None,
        }
        if not after and subject.is_whole:
            sums = await self._store.sums(subject, MAX_SUMS + 1)
            page["usage"] = [row._asdict() for row in sums.usage[:MAX_SUMS]]
            page["evidence"] = [_evidence(row) for row in sums.evidence[:MAX_SUMS]]
            page["truncated"] = max(len(sums.usage), len(sums.evidence)) > MAX_SUMS
        return page

    async def erase(self, name: str, grants: Grants, *, until_ms: float = ERASE_MS) -> tuple[Erased, bool]:
        """Erase all that is kept; how many rows that were, and whether all is done.

        Args:
            name: of a caller or a session.
            grants: of who asks.
            until_ms: the time after which the rest is left to another call, in milliseconds.

        Raises:
            StoreError: the store does not do it; what was erased is.
        """
        subject = subject_of(name, grants)
        ends_ms = self._clock.monotonic_ms() + until_ms
        at_ms = int(self._clock.now_ms())
        total = Erased()
        while True:
            self._forget(subject)
            await self._journal.flush(FLUSH_MS)
            erased = await self._store.erase_records(subject, at_ms, BATCH)
            total = total.plus(erased)
            if not erased.decisions:
                break
            if self._clock.monotonic_ms() > ends_ms:
                return total, False
        if subject.is_whole:
            total = total.plus(await self._erase_name(subject, at_ms))
        await self._store.give_back()
        return total, True

    async def _erase_name(self, subject: Subject, at_ms: int) -> Erased:
        learnt = self._learner.forget_caller(subject.name, self._rules, at_ms)
        if learnt.rows:
            self._journal.put(learnt.rows)
            await self._journal.flush(FLUSH_MS)
        erased = await self._store.erase_name(subject)
        for snapshot in await self._weights.snapshots():
            found = await self._weights.snapshot(snapshot.version, 0)
            if found is None:
                continue
            body = await asyncio.to_thread(without_caller, found.body, subject.name, self._rules)
            if body is not None:
                await self._store.rewrite_snapshot(snapshot.version, body)
        return erased

    def _forget(self, subject: Subject) -> None:
        """What of it is in memory."""
        if self._live is not None:
            self._live.opened.forget(_among(subject))
            self._live.sessions.forget(subject.name, subject.key)
            if subject.is_whole:
                self._live.posting.discard(subject.name)


def subject_of(name: str, grants: Grants) -> Subject:
    """What of a name a key reaches: all with `router:admin` and while keys are off, else what was asked with it.

    >>> subject_of("s-1", Grants("web", frozenset()))
    Subject(name='s-1', key='web')
    """
    return Subject(name, None if grants.has(ADMIN) else grants.caller)


def without_caller(snapshot: bytes, caller: str, rules: LearningPolicy) -> bytes | None:
    """A snapshot of the weights in which a caller has no name; None where it has none anyway."""
    learner = Learner()
    try:
        learner.restore(snapshot, 0)
    except ValueError:
        return None
    return learner.snapshot() if learner.forget_caller(caller, rules, 0).rows else None


def shown(record: SubjectRecord) -> dict[str, Any]:
    """A record with all that hangs on it, as a JSON value."""
    row = record.decision._asdict()
    json_texts = {name: orjson.Fragment(row.pop(name)) for name in ("request", "answer", "inputs")}
    return {
        **row,
        **json_texts,
        "outcomes": [
            {**each._asdict(), "body": orjson.Fragment(each.body), "learnt": _fragment(each.learnt)}
            for each in record.outcomes
        ],
        "reviews": [review._asdict() for review in record.reviews],
        "events": [{**event._asdict(), "payload": orjson.Fragment(event.payload)} for event in record.events],
        "tickets": [{**row._asdict(), "request": orjson.Fragment(request)} for row, request in record.tickets],
    }


def _evidence(row: WeightRow) -> dict[str, Any]:
    counts = {"n_outcomes": row.n / EVIDENCE_UNIT, "rewards": row.s / EVIDENCE_UNIT}
    return {**{name: getattr(row, name) for name in row._fields[:-2]}, **counts}


def _fragment(text: str | None) -> orjson.Fragment | None:
    return None if text is None else orjson.Fragment(text)


def _among(subject: Subject) -> Callable[[OpenDecision], bool]:
    def is_its(opened: OpenDecision) -> bool:
        is_named = subject.name in (opened.session_id, opened.caller, opened.key)
        return is_named and subject.key in (None, opened.key)

    return is_its

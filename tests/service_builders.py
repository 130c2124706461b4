"""A RouteService with all its parts in memory, and an encoder whose similarities a test can choose."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from math import sqrt
from random import Random
from typing import Any

import numpy as np

from feedback.learner import Learner
from feedback.success_heads import SuccessHeads
from feedback.success_slates import Slates
from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from intent.heads import Heads
from intent.intake import Intake
from intent.llm.breaker import LlmBreaker
from intent.llm.escalate import Escalation
from models.candidate import Candidate
from models.card import AgentCard
from models.deadline import Deadline
from models.decision import RouteDecision
from models.events import DecisionRow, EventRow, GoalRow, OutcomeRow, RepeatRow, Row, SpanRow, UsageQuery, UsageRow
from models.language_model import LanguageModel
from models.policy import Policy
from models.ports import Embedded, Embedder
from models.request import RouteRequest
from router.case import Case
from router.decide import Decider
from router.degrade_queue import DegradeQueue
from router.goals import Goals
from router.journal import Journal
from router.learning import Learning
from router.live.admission import Admission
from router.live.live import Live
from router.permit import OPEN, Grants, namespaces_of
from router.pick import Picker
from router.promotion import Lanes
from router.recorder import Recorder
from router.registry import Registry
from router.reviews import Corrections
from router.service import Ids, RouteService
from router.settlement import Settlement
from router.snapshot import Snapshot
from router.spans import events_of
from tests.builders import START_MS, FakeClock, snapshot_of


class MemoryRecords:
    """A `RecordStore` that is a list."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @property
    def decisions(self) -> list[DecisionRow]:
        return [row for row in self.rows if isinstance(row, DecisionRow)]

    @property
    def audit(self) -> list[EventRow]:
        rows = (row.row if isinstance(row, SpanRow) else row for row in self.rows)
        return [event for row in rows if isinstance(row, EventRow) for event in events_of(row)]

    @property
    def goals(self) -> list[GoalRow]:
        return [row for row in self.rows if isinstance(row, GoalRow)]

    async def append(self, rows: Sequence[Row]) -> None:
        self.rows.extend(rows)

    async def decision(self, decision_id: str) -> DecisionRow | None:
        return next((row for row in self.decisions if row.decision_id == decision_id), None)

    async def trace(self, trace_id: str, limit: int) -> Sequence[tuple[int, EventRow]]:
        return [(number, row) for number, row in enumerate(self.audit) if row.trace_id == trace_id][:limit]

    async def events(self, from_ms: int, to_ms: int, after: int, limit: int) -> Sequence[tuple[int, EventRow]]:
        raise NotImplementedError

    async def goal(self, namespace: str, task_id: str) -> str | None:
        return next((row.goal_hash for row in self.goals if row[:2] == (namespace, task_id)), None)

    async def outcomes_of(self, decision_id: str) -> Sequence[OutcomeRow]:
        return [row for row in self.rows if isinstance(row, OutcomeRow) and row.decision_id == decision_id]

    async def known_callers(self, limit: int) -> Sequence[str]:
        return sorted({row.caller for row in self.rows if isinstance(row, OutcomeRow)})[:limit]

    async def repeat(self, caller: str, idempotency_key: str) -> RepeatRow | None:
        repeats = (row for row in self.rows if isinstance(row, RepeatRow))
        return next((row for row in repeats if row[:2] == (caller, idempotency_key)), None)

    async def forget_repeats(self, before_ms: int) -> int:
        kept = [row for row in self.rows if not isinstance(row, RepeatRow) or row.created_at >= before_ms]
        n_gone = len(self.rows) - len(kept)
        self.rows[:] = kept
        return n_gone

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        raise NotImplementedError


class NearEmbedder:
    """An encoder to which every text of a table has a chosen cosine from all texts outside it."""

    encoder_id = "near"
    languages = None

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self.dim = len(cosines) + 1
        self._cosines = dict(cosines)
        self._axes = {text: axis for axis, text in enumerate(cosines, start=1)}

    def embed(self, text: str) -> Embedded:
        vector = np.zeros(self.dim, dtype="<f4")
        cosine = self._cosines.get(text, 1.0)
        vector[0] = cosine
        if text in self._axes:
            vector[self._axes[text]] = sqrt(1 - cosine**2)
        return Embedded(vector.tobytes(), 0.0)


class FixedRegistry(Registry):
    """A registry whose cards do not change."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot


@dataclass
class Desk:
    """A service and the parts that tests look into."""

    service: RouteService
    snapshot: Snapshot
    journal: Journal
    records: MemoryRecords
    clock: FakeClock
    live: Live
    settlement: Settlement
    learning: Learning

    async def sent(
        self, request: RouteRequest, grants: Grants = OPEN, *, explain: bool = False, deadline_ms: float | None = None
    ) -> tuple[RouteDecision, bytes]:
        """The decision and its JSON; its rows are in `records` afterwards, also where an error came instead."""
        try:
            return await self.service.route(request, grants, explain=explain, deadline_ms=deadline_ms)
        finally:
            await self.journal.flush(1000)

    async def route(self, request: RouteRequest, grants: Grants = OPEN, **how: Any) -> RouteDecision:
        """The decision alone."""
        decision, _ = await self.sent(request, grants, **how)
        return decision


def counted_ids(seed: int = 7) -> Ids:
    """Ids 1, 2, 3, … and always the same seed."""
    numbers = count(1)
    return Ids(new=lambda: f"{next(numbers):016x}" * 2, seed=lambda: seed)


def service_of(
    cards: Iterable[AgentCard],
    policy: Policy | None = None,
    *,
    embedder: Embedder | None = None,
    clock: FakeClock | None = None,
    records: MemoryRecords | None = None,
    model: LanguageModel | None = None,
    heads: Heads | None = None,
    success: SuccessHeads | None = None,
    queue: DegradeQueue | None = None,
    seed: int = 7,
) -> Desk:
    """A service over these cards; None stands for the shipped policy, the dummy encoder, a new clock and store.

    Unless a `model` is given, no language model is asked; without `heads` the nearest texts decide; without `success`
    no success heads are asked.
    """
    encoder = DummyEmbedder() if embedder is None else embedder
    clock, records = clock or FakeClock(), records or MemoryRecords()
    snapshot = snapshot_of(cards, policy, encoder)
    cascade = Cascade(Calibration())
    cascade.use(heads)
    journal = Journal(records, max_rows=1000, batch=1000, wait_ms=1, clock=clock)
    live = Live(Random(seed))
    live.health.follow(snapshot.digest_of, clock.monotonic_ms())
    registry, learning = FixedRegistry(snapshot), learning_of(snapshot)
    intake = Intake(EmbedPool(encoder, n_threads=1), cascade)
    service = RouteService(
        registry,
        Decider(
            intake,
            Escalation(model, clock, LlmBreaker(clock)),
            Picker(Admission(live, clock), live, learning, queue, clock),
            live.sessions,
            clock,
            lanes=Lanes(intake, None if success is None else Slates(success)),
        ),
        Goals(records),
        Recorder(journal),
        live.opened,
        clock,
        counted_ids(seed),
    )
    settlement = Settlement(registry, live, learning, Corrections(counted_ids().new, b""), journal, clock)
    return Desk(service, snapshot, journal, records, clock, live, settlement, learning)


def learning_of(snapshot: Snapshot) -> Learning:
    """A learner that knows nothing but these cards."""
    learning = Learning(Learner())
    learning.follow(snapshot)
    return learning


def case_of(
    request: RouteRequest, snapshot: Snapshot, grants: Grants = OPEN, *, remaining_ms: float = 19_800, **fields: Any
) -> Case:
    """A case at its start."""
    values: dict[str, Any] = {
        "policy": snapshot.policy.of(request.namespace),
        "namespaces": namespaces_of(request, snapshot.policy, grants),
        "deadline": Deadline(START_MS + remaining_ms + 200),
        "decision_id": "d-1",
        "trace_id": request.trace_id or "t-1",
        "span_id": "s-1",
        "started_ms": START_MS,
        "now_ms": START_MS,
        "checked_ms": START_MS,
        "seed": 7,
        "explain": False,
    }
    return Case(request=request, grants=grants, snapshot=snapshot, **{**values, **fields})


def key_grants(*permissions: str, caller: str = "key", **fields: Any) -> Grants:
    """What a key with these permissions grants."""
    return Grants(caller, frozenset(permissions), **fields)


def exact(body: bytes | str) -> Any:
    """JSON with every number at its full value."""
    return json.loads(body, parse_float=Decimal)


def timeless(decision: RouteDecision) -> RouteDecision:
    """A decision without its ids and timings."""
    plan = [step.model_copy(update={"idempotency_key": ""}) for step in decision.plan]
    blank = {"decision_id": "", "trace_id": "", "span_id": "", "elapsed_ms": 0.0, "plan": plan}
    return decision.model_copy(update=blank)


def named(candidates: Iterable[Candidate]) -> list[str]:
    """Their agents, in order."""
    return [candidate.agent_id for candidate in candidates]

"""A router in this process over a clock and a record store of the caller's: decisions, outcomes, live state."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from feedback.learner import Learner
from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.dummy_embedder import DummyEmbedder
from intent.embed_pool import EmbedPool
from intent.intake import Intake
from intent.llm.breaker import LlmBreaker
from intent.llm.escalate import Escalation
from models.card import AgentCard
from models.decision import Attempt, RouteDecision
from models.errors import RequestError
from models.events import DecisionRow, EventRow, OutcomeRow, RepeatRow, Row, UsageQuery, UsageRow
from models.outcome import Outcome, Receipt
from models.policy import Policy
from models.ports import Clock, RecordStore
from models.request import RouteRequest
from router.assemble import Generations, assemble, texts_of
from router.case import Case
from router.decide import Decider
from router.goals import Goals
from router.journal import Journal
from router.learning import Learning
from router.live.admission import Admission
from router.live.asker import Asker
from router.live.live import Live
from router.live.open_decisions import OpenDecision
from router.live.upkeep import Upkeep
from router.permit import OPEN
from router.pick import Picker
from router.recorder import Recorder
from router.registry import Registry
from router.reviews import Corrections
from router.service import Ids, RouteService
from router.settlement import Settlement
from router.snapshot import Entry, Snapshot
from router.standing import OverQuota, Standing

START_MS = 1_700_000_000_000.0
_FLUSH_MS = 60_000


@dataclass
class SteppedClock:
    """A clock that stands still until it is moved."""

    ms: float = START_MS

    def now_ms(self) -> float:
        """The same as the steady one."""
        return self.ms

    def monotonic_ms(self) -> float:
        """Where it was put."""
        return self.ms


class NoRecords:
    """A `RecordStore` that keeps nothing: what is left of writing is the making of the rows."""

    def __init__(self) -> None:
        self.n_rows = 0

    async def append(self, rows: Sequence[Row]) -> None:
        """Count them."""
        self.n_rows += len(rows)

    async def decision(self, decision_id: str) -> DecisionRow | None:
        """None."""

    async def trace(self, trace_id: str, limit: int) -> Sequence[tuple[int, EventRow]]:
        """Nothing."""
        return ()

    async def events(self, from_ms: int, to_ms: int, after: int, limit: int) -> Sequence[tuple[int, EventRow]]:
        """Nothing."""
        return ()

    async def goal(self, namespace: str, task_id: str) -> str | None:
        """None."""

    async def outcomes_of(self, decision_id: str) -> Sequence[OutcomeRow]:
        """Nothing."""
        return ()

    async def known_callers(self, limit: int) -> Sequence[str]:
        """Nobody."""
        return ()

    async def repeat(self, caller: str, idempotency_key: str) -> RepeatRow | None:
        """None."""

    async def forget_repeats(self, before_ms: int) -> int:
        """None were there."""
        return 0

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        """Nothing."""
        return ()


class NoAdmission(Admission):
    """Live state left out: every agent is as if nothing were known of it, and nothing is taken."""

    def figures(self, entries: Sequence[Entry], policy: Policy) -> dict[int, Standing]:
        """Fresh, all of them."""
        return {entry.number: entry.fresh for entry in entries}

    def over_quota(self, asker: Asker, policy: Policy) -> OverQuota | None:
        """Never."""

    def look(
        self, entries: Sequence[Entry], asker: Asker, policy: Policy, figures: Mapping[int, Standing]
    ) -> list[Standing]:
        """Fresh, all of them."""
        return [entry.fresh for entry in entries]

    def take(self, opened: OpenDecision, chosen: Entry, asker: Asker, policy: Policy, keep_ms: float) -> bool:
        """Nothing."""
        return False


class NoTaking(Picker):
    """A picker that does not even prepare what its decisions' outcomes would be joined to."""

    def _take(self, case: Case, steps: list[Attempt]) -> None:
        pass


class _Fixed(Registry):
    """A registry whose cards do not change."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot


@dataclass(frozen=True, slots=True)
class Desk:
    """A running router; somebody has to `flush` its journal now and then.

    Attributes:
        without_live: decides over the same cards with live state left out.
    """

    service: RouteService
    without_live: RouteService
    settlement: Settlement
    live: Live
    upkeep: Upkeep
    journal: Journal
    snapshot: Snapshot
    clock: Clock

    async def route(self, request: RouteRequest) -> RouteDecision:
        """A decision for a caller without a key."""
        return (await self.service.route(request, OPEN))[0]

    async def settle(self, outcomes: Sequence[Outcome]) -> list[Receipt | RequestError]:
        """Take outcomes, without waiting for others to share the write with."""
        settling = asyncio.ensure_future(self.settlement.settle(outcomes, OPEN))
        while not settling.done():
            await asyncio.sleep(0)
            await self.flush()
        return settling.result()

    async def flush(self) -> None:
        """Write all rows."""
        await self.journal.flush(_FLUSH_MS)


def desk_of(
    cards: Iterable[AgentCard], policy: Policy, clock: Clock, records: RecordStore | None = None, seed: int = 1
) -> Desk:
    """A router over these cards; None as store keeps no records. Its ids, seeds and jitter follow from `seed`."""
    records = NoRecords() if records is None else records
    encoder, known = DummyEmbedder(), list(cards)
    vectors = {text: encoder.embed(text) for text in texts_of(known)}
    snapshot = assemble(known, policy, vectors, encoder.encoder_id, encoder.dim, Generations(1, 1, 1))
    journal = Journal(records, max_rows=1_000_000, batch=2000, wait_ms=1, clock=clock)
    live, registry, ids, learning = Live(Random(seed)), _Fixed(snapshot), _ids(seed), Learning(Learner())
    learning.follow(snapshot)
    live.health.follow(snapshot.digest_of, clock.monotonic_ms())

    def service(picker: Picker) -> RouteService:
        intake = Intake(EmbedPool(encoder, n_threads=1), Cascade(Calibration()))
        decider = Decider(intake, Escalation(None, clock, LlmBreaker(clock)), picker, live.sessions, clock)
        return RouteService(registry, decider, Goals(records), Recorder(journal), live.opened, clock, ids)

    return Desk(
        service(Picker(Admission(live, clock), live, learning, None, clock)),
        service(NoTaking(NoAdmission(live, clock), live, learning, None, clock)),
        Settlement(registry, live, learning, Corrections(ids.new, b""), journal, clock),
        live,
        Upkeep(live, lambda: snapshot, journal, clock, ids.new),
        journal,
        snapshot,
        clock,
    )


def _ids(seed: int) -> Ids:
    numbers, draw = count(1), Random(seed)
    return Ids(new=lambda: f"{next(numbers):016x}" * 2, seed=lambda: draw.getrandbits(63))

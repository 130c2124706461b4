"""Redo: a decision made again from the sealed inputs of its record, by the code that makes any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from zoneinfo import ZoneInfo

from intent.calibrate import Calibration
from intent.cascade import Cascade
from intent.embed_pool import EmbedPool
from models.deadline import Deadline
from models.decision import RouteDecision
from models.errors import OverloadedError, RouterError, StoreError
from models.ports import RecordStore
from models.reading import Reading
from router import answers
from router.case import Case
from router.decide import Decider
from router.permit import namespaces_of
from router.pick import Picker
from router.replay_frozen import (
    FrozenAdmission,
    FrozenClock,
    FrozenEscalation,
    FrozenLearning,
    FrozenQueue,
    frozen_live,
)
from router.replay_intake import Given, ReplayIntake, ReplayLanes, check_reading, is_hurried
from router.replay_world import World
from router.replayed import DifferentError, NotReplayableError
from router.sealed_record import SealedRecord, UnreadableError
from router.snapshot import Snapshot


@dataclass(slots=True)
class Redone:
    """A decision made again.

    Attributes:
        given: what was read at the time.
        has_text: whether the record holds the request itself, and not a masked form or digests of it.
        is_encoder_same: whether the encoder at hand is that of the time.
        taken: what could not be made again, and was taken as it was sealed.
    """

    case: Case
    decision: RouteDecision
    given: Given
    has_text: bool
    is_encoder_same: bool
    taken: list[str]


class Redo:
    """Makes decisions again.

    Args:
        records: where the records of whole sentences and their parts are.
        world: makes cards, policy and classifiers of the time again.
        pool: the encoder.
        inline_rows: larger indexes are searched in a worker thread.
    """

    def __init__(self, records: RecordStore, world: World, pool: EmbedPool, *, inline_rows: int = 20_000) -> None:
        self._records = records
        self._world = world
        self._intake = partial(ReplayIntake, pool, inline_rows=inline_rows)

    def look_again(self) -> None:
        """Check the archive again, whatever was found before."""
        self._world.look_again()

    async def run(self, record: SealedRecord) -> Redone:
        """Make a decision again; the stored answer is not looked at.

        Raises:
            DifferentError: something is not what was sealed.
            NotReplayableError: something is not there any more.
            OverloadedError: too many utterances wait for the encoder.
            StoreError: the store cannot be read.
        """
        inputs = record.inputs
        snapshot = await self._snapshot(record)
        has_text = snapshot.policy.retention.utterances == "full"
        given = _given(record, has_text)
        cascade = await self._cascade(record, given)
        case = _case(record, snapshot, has_text)
        intake = self._intake(cascade=cascade, given=given)
        decider = _decider(record, case, intake)
        try:
            decision = await self._decide(record, case, decider, given, has_text)
        except (OverloadedError, StoreError):
            raise
        except RouterError as error:
            raise DifferentError("answer", f"no decision is made any more: {error}") from None
        if case.facts.read is not None and "reading" in inputs:
            check_reading(case.facts.read, given.sealed)
        taken = [name for name in ("llm", "ticket") if name in inputs]
        if given.why_taken and given.reading is not None:
            taken.insert(0, "reading")
        is_same = self._world.encoder_id == inputs["encoder_id"]
        return Redone(case, decision, given, has_text, is_same, taken)

    async def _cascade(self, record: SealedRecord, given: Given) -> Cascade:
        """The classifiers that read it; none where nothing is read again."""
        inputs = record.inputs
        if given.why_taken or given.reading is None or record.request.intent is not None:
            return Cascade(Calibration())
        at_hand = self._world.encoder_id
        if at_hand != inputs["encoder_id"]:
            raise NotReplayableError(f"it was read with the encoder {inputs['encoder_id']}, at hand is {at_hand}")
        return await self._world.cascade(inputs["digests"]["classifier"])

    async def _decide(
        self, record: SealedRecord, case: Case, decider: Decider, given: Given, has_text: bool
    ) -> RouteDecision:
        inputs = record.inputs
        if "goal" in inputs:
            return answers.goal_mismatch(case, decider.elapsed_ms(case))
        if "part_of" in inputs:
            case.reading = await self._part_reading(record, case, given)
            return await decider.decide_read(case)
        if not has_text and given.reading is not None:
            case.reading = given.reading
            return await decider.decide_read(case)
        decision = await decider.decide(case)
        parts = [await self._part(decision_id) for decision_id in inputs.get("parts", ())]
        return decision.model_copy(update={"parts": parts}) if parts else decision

    async def _part(self, decision_id: str) -> RouteDecision:
        """The decision of a further part of the sentence, out of its own record."""
        row = await self._records.decision(decision_id)
        if row is None:
            raise NotReplayableError(f"the record {decision_id} of a further part of the sentence is gone")
        try:
            return (await self.run(SealedRecord.of(row))).decision
        except UnreadableError as error:
            raise DifferentError("answer", f"the record {decision_id} of a further part: {error}") from None

    async def _part_reading(self, record: SealedRecord, case: Case, given: Given) -> Reading:
        """That of a further part, out of the whole sentence; as it was sealed where that is gone."""
        assert given.reading is not None
        whole_id, place = record.inputs["part_of"]
        row = None if given.why_taken else await self._records.decision(whole_id)
        if row is None:
            given.why_taken = given.why_taken or "the record of the whole sentence is gone"
            return given.reading
        try:
            whole = SealedRecord.of(row)
        except UnreadableError as error:
            raise DifferentError("reading", f"the record {whole_id} of the whole sentence: {error}") from None
        of_whole = _given(whole, has_text=True)
        if of_whole.why_taken:
            given.why_taken = of_whole.why_taken
            return given.reading
        cascade = await self._world.cascade(record.inputs["digests"]["classifier"])
        reading = await self._intake(cascade=cascade, given=of_whole).read(
            whole.request.utterance or "",
            case.snapshot.scope(case.namespaces),
            rules=case.snapshot.rules,
            namespace=case.request.namespace,
            thresholds=case.policy.confidence,
            wait_ms=0.0,
        )
        part: Reading = reading.parts[place]
        check_reading(part, given.sealed)
        given.is_read = True
        return part

    async def _snapshot(self, record: SealedRecord) -> Snapshot:
        digests = record.inputs["digests"]
        if "cards" not in digests:
            raise NotReplayableError("its cards and policy were never put in the archive")
        made = await self._world.snapshot(digests)
        cards, index, _, _, policy = record.inputs["generations"]
        return replace(
            made,
            cards_generation=cards,
            index_generation=index,
            policy_generation=policy,
            encoder_id=record.inputs["encoder_id"],
        )


def _given(record: SealedRecord, has_text: bool) -> Given:
    """What was read, and why it cannot be read again."""
    given = Given(record.reading, record.inputs["reading"])
    if not has_text:
        given.why_taken = "the policy has no text kept"
    elif record.request.intent is None and record.inputs["digests"].get("classifier") is None:
        given.why_taken = "its classifiers are not in the archive"
    elif is_hurried(given.sealed):
        given.why_taken = "there was no time for all of it"
    return given


def _case(record: SealedRecord, snapshot: Snapshot, has_text: bool) -> Case:
    inputs, row = record.inputs, record.row
    # a payload that is kept in another form would fit no schema
    request = record.request if has_text else record.request.model_copy(update={"payload": None})
    grants, generations = record.grants, inputs["generations"]
    return Case(
        request=request,
        grants=grants,
        snapshot=snapshot,
        policy=snapshot.policy.of(request.namespace),
        namespaces=namespaces_of(request, snapshot.policy, grants),
        deadline=Deadline(inputs["deadline_ms"], inputs["reserve_ms"]),
        decision_id=row.decision_id,
        trace_id=row.trace_id,
        span_id=inputs["span_id"],
        started_ms=0.0,
        now_ms=inputs["now_ms"],
        checked_ms=inputs["now_ms"],
        seed=inputs["seed"],
        explain="explain" in inputs,
        given_ms=inputs.get("given_ms"),
        may_refuse=False,
        classifier_generation=generations[2],
        weights_version=generations[3],
        promotion_id=inputs.get("promotion_id"),
    )


def _decider(record: SealedRecord, case: Case, intake: ReplayIntake) -> Decider:
    inputs = record.inputs
    live = frozen_live(inputs, case.session)
    clock = FrozenClock(inputs["checked_ms"], inputs["elapsed_ms"])
    admission = FrozenAdmission(inputs, record.is_partial)
    picker = Picker(admission, live, FrozenLearning(inputs, admission), FrozenQueue(inputs.get("ticket")), clock)
    lanes = ReplayLanes(intake, inputs.get("promotion_id"), inputs["generations"][2])
    zone = ZoneInfo(inputs["zone"])
    return Decider(intake, FrozenEscalation(inputs.get("llm")), picker, live.sessions, clock, zone, lanes)

"""Replayer: makes a recorded decision again from its sealed inputs, by the code that makes any, and compares."""

from __future__ import annotations

from datetime import UTC, datetime

from intent.embed_pool import EmbedPool
from models.events import DecisionRow
from models.ports import RecordStore
from router.replay_compare import check_answer, check_left_out, check_ranking
from router.replay_redo import Redo, Redone
from router.replay_world import World
from router.replayed import PARTS, DifferentError, NotReplayableError, Replayed
from router.sealed_record import SealedRecord, UnreadableError, is_of_before_seals
from router.seals import Seal, chained, holds
from router.stores.open import Store
from router.stores.seals import SqlSeals

_UNUSABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, AssertionError)
"""What sealed inputs that somebody has altered may lead to."""


def replayer_of(store: Store, pool: EmbedPool, *, inline_rows: int = 20_000) -> Replayer:
    """A replayer over a store.

    Args:
        store: open.
        pool: the encoder.
        inline_rows: larger indexes are searched in a worker thread.
    """
    world = World(store.generations, store.vectors, pool)
    return Replayer(store.records, store.seals, Redo(store.records, world, pool, inline_rows=inline_rows))


class Replayer:
    """Replays decisions.

    Args:
        records: where the records are.
        seals: where their seals are.
        redo: makes decisions again.
    """

    def __init__(self, records: RecordStore, seals: SqlSeals, redo: Redo) -> None:
        self._records = records
        self._seals = seals
        self._redo = redo

    async def replay(self, decision_id: str) -> Replayed | None:
        """Replay one decision, whatever was found right before; None where there is none.

        Raises:
            OverloadedError: too many utterances wait for the encoder.
            StoreError: the store cannot be read.
        """
        seal, before = await self._seals.seal(decision_id)
        row = await self._records.decision(decision_id)
        if row is None:
            seal, before = await self._seals.seal(decision_id)  # it may have been erased between the two looks
            if seal is None:
                return None
        self._redo.look_again()
        return await self.replay_sealed(decision_id, seal, before, row)

    async def replay_sealed(
        self, decision_id: str, seal: Seal | None, before: str, row: DecisionRow | None
    ) -> Replayed:
        """Replay a decision that was read already.

        Args:
            decision_id: of it.
            seal: None where it has none.
            before: the chain before it.
            row: the record; None where it is gone.
        """
        if seal is not None and seal.erased_at is not None and row is None:
            at = datetime.fromtimestamp(seal.erased_at / 1000, UTC).isoformat(timespec="seconds")
            return Replayed(decision_id, "erased", detail=f"erased, or dropped at its age, at {at}")
        if row is None:
            return Replayed(decision_id, "differs", "record", "the record is gone, and it is not noted as erased")
        broken = _broken(seal, before, row)
        try:
            record = SealedRecord.of(row)
        except UnreadableError as error:
            never_had = seal is None and is_of_before_seals(row, await self._seals.first_at())
            if broken is not None and not never_had:
                return Replayed(decision_id, "differs", "record", f"{broken}; {error}")
            return Replayed(decision_id, "not_replayable", detail=str(error))
        altered = record.altered()
        if altered:
            told = f"{broken or 'it does not hold together'}: {', '.join(altered)}"
            return Replayed(decision_id, "differs", altered[0], told)
        return await self._compared(record, broken)

    async def _compared(self, record: SealedRecord, broken: str | None) -> Replayed:
        decision_id = record.row.decision_id
        try:
            run = await self._redo.run(record)
            problem = _problem(run, record)
        except DifferentError as error:
            run, problem = None, error
        except NotReplayableError as error:
            if broken is not None:
                return Replayed(decision_id, "differs", "record", f"{broken}; {error}")
            return Replayed(decision_id, "not_replayable", detail=str(error))
        except _UNUSABLE as error:
            if broken is None:
                raise
            return Replayed(decision_id, "differs", "record", f"{broken}; it cannot be used: {type(error).__name__}")
        if problem is not None:
            return _differing(record, problem, broken)
        if broken is not None:
            return Replayed(decision_id, "differs", "record", broken)
        assert run is not None
        return Replayed(
            decision_id,
            "equal",
            checked=_checked(run, record),
            taken=tuple(run.taken),
            is_partial=record.is_partial,
        )


def _broken(seal: Seal | None, before: str, row: DecisionRow) -> str | None:
    if seal is None:
        return "it has no seal"
    if chained(before, seal.decision_id, seal.digest) != seal.chain:
        return "its seal does not follow from the one before it"
    if seal.erased_at is not None:
        return "it is noted as erased, and is there"
    return None if holds(seal, row) else "the record was altered after it was sealed"


def _problem(run: Redone, record: SealedRecord) -> DifferentError | None:
    """What differs first; None: nothing."""
    try:
        check_left_out(run.case, record, has_text=run.has_text)
        check_ranking(run.case, record)
        check_answer(run.decision, record, has_text=run.has_text)
    except DifferentError as error:
        return error
    return None


def _differing(record: SealedRecord, problem: DifferentError, broken: str | None) -> Replayed:
    decision_id = record.row.decision_id
    if broken is not None:
        # all that is sealed by itself is as it was: what was altered is the answer
        return Replayed(decision_id, "differs", "answer", f"{broken}; {problem.detail}")
    of_all = problem.part in ("ranking", "plan", "answer", "draws")
    if record.is_partial and of_all:
        told = f"more agents were looked at than are sealed, and without those {problem.detail}"
        return Replayed(decision_id, "not_replayable", detail=told, is_partial=True)
    return Replayed(decision_id, "differs", problem.part, problem.detail, is_partial=record.is_partial)


def _checked(run: Redone, record: SealedRecord) -> tuple[str, ...]:
    inputs = record.inputs
    left_out = set()
    if not run.is_encoder_same:
        left_out |= {"encoder", "index"}
    if not run.given.is_read:
        left_out |= {"classifier"}
    if inputs["reading"] is None or "reading" in run.taken:
        left_out |= {"reading"}
    if run.case.selection is None:
        left_out |= {"weights", "draws", "plan"}
    return tuple(part for part in PARTS if part not in left_out)

"""Steps: a candidate moved one stage on, or taken back, with its evidence and its events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedback.promote import LIMITS, Check, InForce, Limits, Move, advance, in_force, made_full, moved, taken_back
from intent.model_folder import read_manifest
from models.errors import ConflictError
from models.events import EventType, Row
from models.learning_policy import RewardPolicy
from models.ports import Clock
from models.promotion import Change, Promotion, PromotionBody, PromotionStage, PromotionStore
from router.promotion_files import examine, keep
from router.promotion_gate import proof
from router.promotion_watch import CandidateWatch, Seen, baseline
from router.spans import Step, span_row

SHADOW, CANARY, FULL = PromotionStage.SHADOW, PromotionStage.CANARY, PromotionStage.FULL
_CHANGED = "somebody else changed it at the same time: see GET /promotion, and try again"


@dataclass(frozen=True, slots=True)
class Told:
    """What became of `promote`.

    Attributes:
        promotion: as it is now; None where it is no candidate.
        figures: of the evidence, as JSON.
        changes: what was changed, nothing where it was refused.
    """

    promotion: Promotion | None
    move: Move
    figures: dict[str, Any]
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """Moves candidates on.

    Attributes:
        store: where promotions are.
        models: the folder of their copies.
        encoder_id: of the encoder that serves.
        policy: what an outcome is worth.
        by: whose doing it is.
        limits: how much evidence is needed.
    """

    store: PromotionStore
    models: Path
    encoder_id: str
    policy: RewardPolicy
    clock: Clock
    by: str
    limits: Limits = LIMITS

    async def promote(self, folder: Path) -> Told:
        """Move the model of a folder one stage on, if all evidence for it is there.

        Args:
            folder: absolute.

        Raises:
            ModelError: the folder holds no model, or cannot be copied.
            ConflictError: somebody else changed it at the same time.
        """
        digest = (await asyncio.to_thread(read_manifest, folder)).digest
        known = list(await self.store.load())
        now = in_force(known)
        if now.candidate is not None and now.candidate.digest == digest:
            step = self._to_canary if now.candidate.stage is SHADOW else self._to_full
            return await step(known, now, now.candidate)
        if now.candidate is not None:
            other = now.candidate
            told = f"promotion {other.promotion_id} of {other.folder} is in the stage {other.stage}"
            return _refused(None, Check("one_at_a_time", False, told, "end it with `agency-router rollback`"))
        if now.full is not None and now.full.digest == digest:
            check = Check("new", False, "it is in force already", "retrain first")
            return Told(now.full, Move(FULL, FULL, (check,)), {})
        return await self._to_shadow(folder)

    async def roll_back(self, why: str) -> tuple[Change, ...]:
        """Take back the newest promotion that has an effect; what was changed.

        Raises:
            ConflictError: there is nothing to take back, or somebody else changed it at the same time.
        """
        changes = taken_back(await self.store.load(), self._now_ms(), self.by, why)
        await self._change(changes)
        return tuple(changes)

    async def _to_shadow(self, folder: Path) -> Told:
        examined = await asyncio.to_thread(examine, folder, self.encoder_id)
        move = advance(None, examined.checks)
        if move.is_refused:
            return Told(None, move, {})
        await asyncio.to_thread(keep, folder, self.models, examined.digest)
        now_ms = self._now_ms()
        fresh = Promotion(
            promotion_id=0,
            folder=str(folder),
            digest=examined.digest,
            stage=SHADOW,
            created_at=now_ms,
            updated_at=now_ms - 1,
            body=PromotionBody(encoder_id=examined.encoder_id),
        )
        made = await self.store.add(moved(fresh, SHADOW, now_ms, self.by, _why(move)))
        return Told(made, move, {}, (Change(fresh, made),))

    async def _to_canary(self, known: Sequence[Promotion], now: InForce, candidate: Promotion) -> Told:
        found = await proof(self.store, candidate.promotion_id, self.policy, self.limits)
        before = await baseline(self.store, None if now.full is None else now.full.promotion_id, self.policy)
        enough = Check(
            "baseline",
            before.n >= self.limits.baseline_outcomes,
            f"{before.n} outcomes of the classifiers in force, {self.limits.baseline_outcomes} are needed",
            "post outcomes of decisions on utterances to /feedback",
        )
        checks = [*found.checks, enough]
        if now.full is not None and now.full.body.is_watched:
            told = f"promotion {now.full.promotion_id} is full, but still watched"
            checks.append(Check("previous", False, told, f"wait for {self.limits.watched_outcomes} of its outcomes"))
        move = advance(SHADOW, checks, skips_canary=found.skips_canary)
        figures = {"gate": found.figures, "baseline": before.model_dump()}
        if move.after is None or move.is_refused:
            return Told(candidate, move, figures)
        begins: dict[str, Any] = {"baseline": before, "after": await self.store.newest_outcome(), "is_watched": True}
        if move.after is FULL:
            begins["full_after"] = begins["after"]
        return await self._on(known, candidate, move, figures, **begins)

    async def _to_full(self, known: Sequence[Promotion], now: InForce, candidate: Promotion) -> Told:
        watch = CandidateWatch(candidate, self.limits)
        await watch.catch_up(self.store, candidate, self.policy)
        figures = {"canary": watch_figures(watch.seen)}
        seen, least = watch.seen, self.limits.canary_outcomes
        n = seen.n_outcomes
        enough = Check(
            "canary_outcomes", n >= least, f"{n} outcomes of the canary, {least} are needed", "wait for them"
        )
        level = f"the sum of the watch is {seen.level:.1f}, below {seen.threshold:.1f}"
        dropped = "rewards have dropped, the service takes it back by itself"
        no_drop = (
            Check("no_drop", False, dropped, "retrain; if no service runs: `agency-router rollback`")
            if seen.has_alarm
            else Check("no_drop", True, level)
        )
        move = advance(CANARY, (enough, no_drop))
        if move.is_refused:
            return Told(candidate, move, figures)
        return await self._on(known, candidate, move, figures, full_after=await self.store.newest_outcome())

    async def _on(
        self, known: Sequence[Promotion], candidate: Promotion, move: Move, figures: dict[str, Any], **body: Any
    ) -> Told:
        assert move.after is not None
        after = moved(candidate, move.after, self._now_ms(), self.by, _why(move), **body)
        changes = [Change(candidate, after)]
        if move.after is FULL:
            changes += made_full(known, after)
        await self._change(changes)
        return Told(after, move, figures, tuple(changes))

    async def _change(self, changes: Sequence[Change]) -> None:
        if not await self.store.change(changes):
            raise ConflictError(_CHANGED)

    def _now_ms(self) -> int:
        return int(self.clock.now_ms())


def watch_figures(seen: Seen) -> dict[str, Any]:
    """How the watch stands, as JSON."""
    rounded = {"level": round(seen.level, 3), "threshold": round(seen.threshold, 3)}
    return {**seen._asdict(), **rounded}


def change_rows(changes: Sequence[Change], trace_id: str, span_id: str, at_ms: int, caller: str) -> list[Row]:
    """The audit events of changes, in a trace of their own.

    Args:
        changes: at least one.
        trace_id: of the new trace.
        span_id: of its one span.
        at_ms: epoch.
        caller: name of the key that caused it; "" where none did.
    """
    steps: list[Step] = []
    for change in changes:
        last = change.after.body.history[-1]
        before = str(change.before.stage) if change.before.body.history else None
        told = {
            "promotion_id": change.after.promotion_id,
            "digest": change.after.digest,
            "before": before,
            "by": last.by,
            "why": last.why,
        }
        steps.append((EventType.STATE.value, str(change.after.stage), told, 0, 0.0))
    return [span_row(trace_id, span_id, None, "router", steps, at_ms, caller)]


def _refused(stage: PromotionStage | None, check: Check) -> Told:
    return Told(None, Move(stage, stage, (check,)), {})


def _why(move: Move) -> str:
    return "; ".join(check.told for check in move.checks)

"""Promote: the stages of new classifiers, and what each needs. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from models.errors import ConflictError
from models.promotion import Change, Promotion, PromotionStage, PromotionStep

NEXT: Mapping[PromotionStage | None, PromotionStage] = {
    None: PromotionStage.SHADOW,
    PromotionStage.SHADOW: PromotionStage.CANARY,
    PromotionStage.CANARY: PromotionStage.FULL,
}
"""The stage that follows; None is before the first."""

CANDIDATE = frozenset({PromotionStage.SHADOW, PromotionStage.CANARY})


@dataclass(frozen=True, slots=True)
class Limits:
    """How much evidence a stage needs.

    Attributes:
        gate_outcomes: decisions with a shadow and a reward, before the canary.
        gate_ess: effective sample size of the same.
        gate_support: share of the candidate's choices that were logged with enough propensity, 0..1.
        gate_changes: effective sample size of what exploration has tried of what the candidate does otherwise.
        canary_share: share of the sessions whose utterances the candidate reads.
        canary_outcomes: outcomes of the canary, before it is full.
        watched_outcomes: outcomes after which a full one is no longer watched.
        baseline_outcomes: outcomes of the classifiers before that a baseline needs.
        slack: k, in standard deviations of one reward.
        threshold: h; the sum from which on it is rolled back, where rewards are not skewed.
    """

    gate_outcomes: int = 3000
    gate_ess: float = 50.0
    gate_support: float = 0.95
    gate_changes: float = 30.0
    canary_share: float = 0.1
    canary_outcomes: int = 1000
    watched_outcomes: int = 5000
    baseline_outcomes: int = 1000
    slack: float = 0.1
    threshold: float = 40.0


LIMITS = Limits()


class Check(NamedTuple):
    """A piece of evidence.

    Attributes:
        name: what is asked for.
        told: what was found, against what is wanted.
        fix: how to get what is missing; "" where nothing is.
    """

    name: str
    is_met: bool
    told: str
    fix: str = ""


class Move(NamedTuple):
    """What became of asking for the next stage.

    Attributes:
        before: None is before the first.
        after: the same as `before` where it was refused.
        checks: the evidence that was looked at.
    """

    before: PromotionStage | None
    after: PromotionStage | None
    checks: tuple[Check, ...]

    @property
    def is_refused(self) -> bool:
        """Whether it stays where it is."""
        return self.before is self.after


def advance(before: PromotionStage | None, checks: Sequence[Check], *, skips_canary: bool = False) -> Move:
    """The next stage, if all evidence for it is there.

    Args:
        before: the stage it is in; None is before the first.
        checks: the evidence that the next stage needs, at least one piece.
        skips_canary: whether the gate was passed so clearly that no canary is needed.

    Raises:
        ConflictError: nothing follows the stage.
        ValueError: no evidence was looked at.

    >>> advance(None, [Check("exam", True, "passed")]).after
    <PromotionStage.SHADOW: 'shadow'>
    >>> advance(PromotionStage.SHADOW, [Check("outcomes", False, "12 of 3000", "wait")]).is_refused
    True
    """
    following = NEXT.get(before)
    if following is None:
        raise ConflictError(f"nothing follows the stage {before}")
    if not checks:
        raise ValueError(f"no evidence for {following} was looked at")
    if not all(check.is_met for check in checks):
        following = before
    elif skips_canary and before is PromotionStage.SHADOW:
        following = PromotionStage.FULL
    return Move(before, following, tuple(checks))


class InForce(NamedTuple):
    """Which promotions have an effect.

    Attributes:
        full: whose classifiers read all utterances but the canary's; None leaves them to those of the cards.
        candidate: in the stages `shadow` or `canary`.
    """

    full: Promotion | None
    candidate: Promotion | None


def in_force(promotions: Iterable[Promotion]) -> InForce:
    """Those that have an effect; there is at most one of each kind."""
    known = list(promotions)
    full = next((each for each in known if each.stage is PromotionStage.FULL), None)
    return InForce(full, next((each for each in known if each.stage in CANDIDATE), None))


def moved(promotion: Promotion, stage: PromotionStage, at_ms: int, by: str, why: str, **body: Any) -> Promotion:
    """The promotion in another stage, which its history tells too.

    Args:
        promotion: as it is.
        stage: the new one.
        at_ms: epoch.
        by: whose doing it is.
        why: in words.
        body: fields of `PromotionBody` that change with it.
    """
    step = PromotionStep(stage=stage, at_ms=at_ms, by=by, why=why)
    changed = promotion.body.model_copy(update={"history": (*promotion.body.history, step), **body})
    # two changes within a millisecond are told apart, as the store compares by this
    updated_at = max(at_ms, promotion.updated_at + 1)
    return promotion.model_copy(update={"stage": stage, "updated_at": updated_at, "body": changed})


def made_full(promotions: Sequence[Promotion], candidate: Promotion) -> list[Change]:
    """What changes beside a candidate that becomes full: the one in force makes room for it."""
    full = in_force(promotions).full
    if full is None:
        return []
    step = candidate.body.history[-1]
    why = f"promotion {candidate.promotion_id} took its place"
    room = moved(
        full,
        PromotionStage.SUPERSEDED,
        step.at_ms,
        step.by,
        why,
        is_watched=False,
        superseded_by=candidate.promotion_id,
    )
    return [Change(full, room)]


def taken_back(
    promotions: Sequence[Promotion], at_ms: int, by: str, why: str, *, alarmed: int | None = None
) -> list[Change]:
    """What changes when the newest promotion that has an effect is taken back.

    A candidate ends; where there is none, the one that is full makes room for the one before it again, if there was
    one.

    Args:
        promotions: all of them.
        at_ms: epoch.
        by: whose doing it is.
        why: in words.
        alarmed: id of the one that the watch takes back; None where somebody asks for it.

    Raises:
        ConflictError: there is nothing to take back.
    """
    full, candidate = in_force(promotions)
    of_alarm = (each for each in (candidate, full) if each is not None and each.promotion_id == alarmed)
    chosen = next(of_alarm, None) if alarmed is not None else candidate or full
    if chosen is None:
        raise ConflictError("nothing is on its way or in force that could be rolled back: see GET /promotion")
    is_over = chosen.stage is PromotionStage.FULL or alarmed is not None
    end = PromotionStage.ROLLED_BACK if is_over else PromotionStage.ENDED
    changes = [Change(chosen, moved(chosen, end, at_ms, by, why, is_watched=False))]
    before = next((each for each in promotions if each.body.superseded_by == chosen.promotion_id), None)
    if chosen.stage is PromotionStage.FULL and before is not None:
        again = f"promotion {chosen.promotion_id} was rolled back"
        changes.append(Change(before, moved(before, PromotionStage.FULL, at_ms, by, again, superseded_by=None)))
    return changes

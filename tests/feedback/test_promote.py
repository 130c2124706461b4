from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedback.promote import CANDIDATE, Check, advance, in_force, made_full, moved, taken_back
from models.errors import ConflictError
from models.promotion import Promotion, PromotionStage

SHADOW, CANARY, FULL, SUPERSEDED, ENDED, ROLLED_BACK = PromotionStage
MET, MISSING = Check("exam", True, "passed"), Check("outcomes", False, "3 of 3000", "wait")


def promotion(promotion_id: int, stage: PromotionStage = SHADOW) -> Promotion:
    fresh = Promotion(promotion_id=promotion_id, folder="/m", digest="d" * 64, stage=stage, created_at=0, updated_at=0)
    return moved(fresh, stage, 1, "me", "begun")


@pytest.mark.parametrize(
    ("before", "checks", "skips", "after"),
    [
        (None, [MET], False, SHADOW),
        (None, [MET], True, SHADOW),
        (None, [MET, MISSING], False, None),
        (SHADOW, [MET, MET], False, CANARY),
        (SHADOW, [MET], True, FULL),
        (SHADOW, [MISSING], True, SHADOW),
        (CANARY, [MET], False, FULL),
        (CANARY, [MET], True, FULL),
        (CANARY, [MISSING], False, CANARY),
    ],
)
def test_a_stage_is_left_only_with_all_evidence(
    before: PromotionStage | None, checks: list[Check], skips: bool, after: PromotionStage | None
) -> None:
    move = advance(before, checks, skips_canary=skips)
    assert (move.before, move.after, move.is_refused) == (before, after, before is after)
    assert move.checks == tuple(checks)


@pytest.mark.parametrize("stage", [FULL, SUPERSEDED, ENDED, ROLLED_BACK])
def test_nothing_follows_an_end(stage: PromotionStage) -> None:
    with pytest.raises(ConflictError, match=f"nothing follows the stage {stage}"):
        advance(stage, [MET])


def test_no_evidence_is_not_all_evidence() -> None:
    with pytest.raises(ValueError, match="no evidence for canary"):
        advance(SHADOW, [])


@pytest.mark.parametrize("stage", [SHADOW, CANARY])
def test_a_candidate_ends_before_the_one_in_force_is_touched(stage: PromotionStage) -> None:
    known = [promotion(1, FULL), promotion(2, stage)]
    (change,) = taken_back(known, 9, "me", "no longer wanted")
    assert (change.before, change.after.stage) == (known[1], ENDED)
    last = change.after.body.history[-1]
    assert (last.stage, last.at_ms, last.by, last.why) == (ENDED, 9, "me", "no longer wanted")


def test_the_one_before_comes_back_and_then_the_one_before_that() -> None:
    known = {1: promotion(1, FULL)}
    for number in (2, 3):
        known[number] = promotion(number, FULL)
        others = [each for each in known.values() if each.promotion_id != number]
        for change in made_full(others, known[number]):
            known[change.before.promotion_id] = change.after
    assert [each.stage for each in known.values()] == [SUPERSEDED, SUPERSEDED, FULL]
    stages = []
    for _ in range(3):
        for change in taken_back(list(known.values()), 9, "me", "worse"):
            known[change.before.promotion_id] = change.after
        stages.append([each.stage for each in known.values()])
    assert stages == [
        [SUPERSEDED, FULL, ROLLED_BACK],
        [FULL, ROLLED_BACK, ROLLED_BACK],
        [ROLLED_BACK, ROLLED_BACK, ROLLED_BACK],
    ]
    with pytest.raises(ConflictError, match="nothing is on its way"):
        taken_back(list(known.values()), 9, "me", "worse")


def test_an_alarm_takes_back_the_one_it_is_about_and_no_other() -> None:
    known = [promotion(1, FULL), promotion(2, SHADOW)]
    (change,) = taken_back(known, 9, "service", "dropped", alarmed=1)
    assert (change.before.promotion_id, change.after.stage) == (1, ROLLED_BACK)
    (change,) = taken_back([promotion(3, CANARY)], 9, "service", "dropped", alarmed=3)
    assert change.after.stage is ROLLED_BACK
    with pytest.raises(ConflictError):
        taken_back(known, 9, "service", "dropped", alarmed=7)


def test_two_changes_within_a_millisecond_are_told_apart() -> None:
    first = promotion(1)
    assert moved(first, CANARY, 1, "me", "x").updated_at == first.updated_at + 1


@given(st.lists(st.sampled_from(["promote", "skip", "refuse", "rollback", "alarm"]), max_size=40))
def test_whatever_is_done_at_most_one_is_full_and_one_a_candidate(steps: list[str]) -> None:
    known: dict[int, Promotion] = {}
    for step in steps:
        now = in_force(known.values())
        before = None if now.candidate is None else now.candidate.stage
        if step in ("rollback", "alarm"):
            alarmed = now.candidate or now.full
            if alarmed is None:
                continue
            is_alarm = step == "alarm" and alarmed.stage is not SHADOW
            told = alarmed.promotion_id if is_alarm else None
            for change in taken_back(list(known.values()), 9, "me", "worse", alarmed=told):
                known[change.before.promotion_id] = change.after
        else:
            move = advance(before, [MISSING if step == "refuse" else MET], skips_canary=step == "skip")
            if move.is_refused or move.after is None:
                continue
            made = now.candidate or promotion(len(known) + 1)
            after = moved(made, move.after, 9, "me", "evidence")
            if move.after is FULL:
                for change in made_full(list(known.values()), after):
                    known[change.before.promotion_id] = change.after
            known[after.promotion_id] = after
        stages = [each.stage for each in known.values()]
        assert stages.count(FULL) <= 1
        assert sum(stage in CANDIDATE for stage in stages) <= 1
        # whoever made room is remembered by the one that is there, or by one that made room itself
        room = {each.body.superseded_by for each in known.values() if each.stage is SUPERSEDED}
        assert room <= {each.promotion_id for each in known.values() if each.stage in (FULL, SUPERSEDED)}
        assert all(each.body.superseded_by is None for each in known.values() if each.stage is not SUPERSEDED)
        assert all(each.body.history[-1].stage is each.stage for each in known.values())

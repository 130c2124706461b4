from __future__ import annotations

import json
from typing import Any

import pytest

from feedback.promote import LIMITS, Limits
from models.events import OutcomeRow, Row, ShadowRow
from router.promotion_gate import Judged, Proof, weigh
from tests.router.promotions import shadowed


def judged(rows: list[Row]) -> list[Judged]:
    bodies = {row.decision_id: json.loads(row.body) for row in rows if isinstance(row, ShadowRow)}
    rewards = {
        row.decision_id: float(json.loads(row.body)["status"] == "succeeded")
        for row in rows
        if isinstance(row, OutcomeRow)
    }
    return [Judged(key, body, rewards.get(key)) for key, body in bodies.items()]


def missing(proof: Proof) -> set[str]:
    return {check.name for check in proof.checks if not check.is_met}


def weighed(n: int = 3200, limits: Limits = LIMITS, **fields: Any) -> Proof:
    return weigh(judged(shadowed(1, n, **fields)), limits)


def test_a_candidate_that_reads_otherwise_where_it_went_wrong_passes() -> None:
    proof = weighed()
    assert missing(proof) == set()
    # what it does otherwise was never tried: that is for the canary
    assert not proof.skips_canary
    assert proof.checks[0].told.startswith("better by +0.02")
    assert proof.figures["n_shadows"] == 3200
    assert proof.figures["n_decided_otherwise"] == pytest.approx(128, abs=30)


def test_a_candidate_that_reads_otherwise_where_all_was_well_does_not() -> None:
    assert missing(weighed(worth_of_other=0.75, seed=100)) >= {"not_better"}
    assert missing(weighed(worth_of_other=1.0)) >= {"not_better"}


def test_one_that_never_reads_otherwise_is_not_better() -> None:
    assert missing(weighed(other=0.0)) >= {"not_better"}


def test_too_few_outcomes_are_told_with_their_number() -> None:
    proof = weighed(2000)
    assert missing(proof) == {"too_few_outcomes"}
    (check,) = proof.checks
    assert "2000 outcomes can be judged, 3000 are needed" in check.told
    assert "/feedback" in check.fix
    assert not proof.skips_canary


def test_too_many_changes_at_once_lack_support() -> None:
    proof = weighed(other=0.2)
    assert missing(proof) == {"untried_choices"}
    assert "fewer changes at a time" in proof.checks[0].fix


def test_the_canary_is_left_out_where_the_departures_were_tried_and_are_clearly_better() -> None:
    proof = weighed(tried=0.3)
    assert (missing(proof), proof.skips_canary) == (set(), True)
    barely = weighed(other=0.03, worth_of_other=0.3, tried=0.3, seed=21)
    assert (missing(barely), barely.skips_canary) == (set(), False)


def test_nothing_at_all_is_too_few() -> None:
    assert missing(weigh([], LIMITS)) == {"too_few_outcomes"}


def test_decisions_that_named_nobody_and_those_without_outcome_do_not_count() -> None:
    known = judged(shadowed(1, 100))
    nobody = [Judged(f"n-{n}", {**known[0].body, "chosen": -1, "options": []}, None) for n in range(50)]
    silent = [each._replace(decision_id=f"s-{n}", reward=None) for n, each in enumerate(known)]
    proof = weigh([*known, *nobody, *silent], LIMITS)
    assert "100 outcomes can be judged" in proof.checks[0].told
    assert proof.figures["n_shadows"] == 250

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
import pytest

from feedback.promote import LIMITS, Limits
from models.events import OutcomeRow, Row, ShadowRow
from models.learning_policy import RewardPolicy
from models.promotion import PromotionStore, ReadOutcome
from router.promotion_gate import Judged, Proof, proof, weigh
from tests.router.promotions import shadowed, told


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
    proof = weighed(tried=0.4)
    assert missing(proof) == set()
    assert proof.checks[0].told.startswith("better by +0.0")
    assert proof.figures["sndr"]["value"] == pytest.approx(0.04 * 0.6 * (0.75 - 0.1), abs=0.008)
    assert proof.figures["n_shadows"] == 3200
    assert proof.figures["n_decided_otherwise"] == pytest.approx(128, abs=30)


@pytest.mark.parametrize("worth_of_other", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_what_was_never_tried_passes_no_gate(worth_of_other: float, seed: int) -> None:
    # by an outcome model these agents, good at what else they do, would make it better by some 0.02
    proof = weighed(worth_of_other=worth_of_other, seed=seed)
    assert missing(proof) >= {"not_better", "few_departures_tried"}
    told = proof.checks[-1]
    assert "neither, which count as failed; tried and confirmed ones are worth 0.0 outcomes, 30 are needed" in told.told
    assert all("learning.mode: explore" in check.fix for check in proof.checks if check.name in missing(proof))
    departures = proof.figures["departures"]
    assert departures["share"] == departures["untried"] == pytest.approx(0.04, abs=0.01)
    # it has lost what was logged there, and nothing else
    assert proof.figures["sndr"]["value"] == pytest.approx(-0.04 * worth_of_other, abs=0.006)
    assert not proof.skips_canary


def untried_beside(rows: list[Judged], every: int) -> list[Judged]:
    """Some of the decisions lead, by the candidate, to an agent that nobody ever chose there."""
    found = []
    for number, each in enumerate(rows):
        body = each.body
        if number % every == 0 and body["is_same"]:
            options = [[*body["options"][0][:4], 0.0], ["default", "canceller", "0.0.0", 0.0, 1.0]]
            body = {**body, "is_same": False, "options": options, "declared": [0.0, 1.0]}
        found.append(each._replace(body=body))
    return found


def test_the_canary_sees_to_a_few_untried_beside_what_is_better_as_tried() -> None:
    known = judged(shadowed(1, 3200, tried=0.4, other=0.04))
    whole, few, many = weigh(known, LIMITS), *(weigh(untried_beside(known, every), LIMITS) for every in (400, 40))
    assert (missing(few), whole.skips_canary, few.skips_canary) == (set(), True, False)
    assert few.figures["departures"]["untried"] == pytest.approx(1 / 400, abs=0.001)
    # each of them costs what was logged there
    assert few.figures["sndr"]["value"] < whole.figures["sndr"]["value"]
    assert missing(many) == {"not_better"}
    assert "learning.mode: explore" in many.checks[0].fix


def test_an_agent_that_had_a_chance_but_was_never_chosen_is_not_tried() -> None:
    known = judged(shadowed(1, 3200, tried=0.02, seed=9))
    unlucky = [each for each in known if each.body["chosen"] == 0]
    assert len(known) - len(unlucky) < 10
    proof = weigh(unlucky, LIMITS)
    assert proof.figures["departures"]["untried"] == proof.figures["departures"]["share"] > 0.03
    assert missing(proof) == {"not_better", "few_departures_tried"}


def test_few_trials_are_too_few_however_they_ended() -> None:
    proof = weighed(tried=0.1, worth_of_tried=1.0)
    assert "few_departures_tried" in missing(proof)
    assert 0 < proof.figures["departures"]["effective_size"] < 30


def test_a_candidate_that_reads_otherwise_where_all_was_well_does_not() -> None:
    assert missing(weighed(worth_of_other=0.75, tried=0.4, seed=100)) == {"not_better"}
    assert missing(weighed(worth_of_other=1.0, tried=0.4)) >= {"not_better"}
    assert missing(weighed(worth_of_other=0.5, tried=0.4, worth_of_tried=0.0)) >= {"not_better"}


def test_of_one_that_never_reads_otherwise_it_is_said_that_there_is_nothing_to_compare() -> None:
    proof = weighed(other=0.0)
    assert missing(proof) == {"no_departures"}
    [check] = [check for check in proof.checks if not check.is_met]
    assert f"decides like what is in force, on all {proof.figures['n_outcomes']} logged decisions" in check.told
    assert "there is nothing to compare" in check.told
    assert "retrain" in check.fix
    assert "rollback" in check.fix


def test_too_few_outcomes_are_told_with_their_number() -> None:
    proof = weighed(2000, tried=0.5, other=0.06)
    assert missing(proof) == {"too_few_outcomes"}
    check, _ = proof.checks
    assert "2000 outcomes can be judged, 3000 are needed" in check.told
    assert "/feedback" in check.fix
    assert not proof.skips_canary


def test_too_many_changes_at_once_lack_support() -> None:
    proof = weighed(other=0.2)
    assert missing(proof) == {"not_better", "untried_choices", "few_departures_tried"}
    (check,) = [check for check in proof.checks if check.name == "untried_choices"]
    assert "fewer changes at a time" in check.fix


def test_the_canary_is_left_out_where_the_departures_were_tried_and_are_clearly_better() -> None:
    proof = weighed(tried=0.3)
    assert (missing(proof), proof.skips_canary) == (set(), True)
    barely = weighed(other=0.04, worth_of_other=0.5, tried=0.5, seed=6)
    assert (missing(barely), barely.skips_canary) == (set(), False)


class Pages:
    """Shadows as a store gives them, by id."""

    def __init__(self, rows: list[tuple[ShadowRow, ReadOutcome]]) -> None:
        self._rows = sorted(rows, key=lambda each: each[0].decision_id)

    async def shadows(self, promotion_id: int, after: str, limit: int) -> list[tuple[ShadowRow, ReadOutcome]]:
        return [each for each in self._rows if each[0].decision_id > after][:limit]


async def test_what_was_read_is_weighed_in_the_order_of_time_whatever_its_ids() -> None:
    # explored with 40 % at first, with 5 % later
    scenes = [judged(shadowed(number, 1600, other=0.2, tried=tried)) for number, tried in enumerate((0.4, 0.05))]
    in_time = [each for scene in scenes for each in scene]
    ids = [f"{number:05d}" for number in np.random.default_rng(1).permutation(len(in_time))]
    rows = [
        (ShadowRow(key, 1, json.dumps(each.body), at), _outcome_of(key, each.reward == 1))
        for at, (key, each) in enumerate(zip(ids, in_time, strict=True))
    ]
    found = await proof(cast(PromotionStore, Pages(rows)), 1, RewardPolicy(), LIMITS)
    wanted = weigh([each._replace(decision_id=key) for key, each in zip(ids, in_time, strict=True)], LIMITS)
    assert found.figures["sndr"] == wanted.figures["sndr"]
    by_id = weigh([each._replace(decision_id=key) for key, each in sorted(zip(ids, in_time, strict=True))], LIMITS)
    assert found.figures["sndr"]["se"] < 0.97 * by_id.figures["sndr"]["se"]


def _outcome_of(key: str, succeeded: bool) -> ReadOutcome:
    row = told(key, succeeded)
    return ReadOutcome(1, key, "default", row.body, "agent", "track_parcel", 2000, None, row.received_at)


def test_nothing_at_all_is_too_few() -> None:
    assert missing(weigh([], LIMITS)) == {"too_few_outcomes"}


def test_decisions_that_named_nobody_and_those_without_outcome_do_not_count() -> None:
    known = judged(shadowed(1, 100))
    nobody = [Judged(f"n-{n}", {**known[0].body, "chosen": -1, "options": [], "declared": []}, None) for n in range(50)]
    silent = [each._replace(decision_id=f"s-{n}", reward=None) for n, each in enumerate(known)]
    proof = weigh([*known, *nobody, *silent], LIMITS)
    assert "100 outcomes can be judged" in proof.checks[0].told
    assert proof.figures["n_shadows"] == 250

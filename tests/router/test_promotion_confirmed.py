"""The gate of a candidate that fixes readings between agents of different intents, which exploration never tries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from feedback.promote import LIMITS
from models.events import Row, ShadowRow
from models.learning_policy import RewardPolicy
from models.promotion import Promotion, PromotionStage
from models.review import ReviewFilter, ReviewState, Verdict
from router.promotion_gate import Judged, Proof, proof, weigh
from router.stores.open import Store, open_store
from tests.builders import START_MS
from tests.router.promotions import corrected, decided, told

TRACK, REFUND = "track_parcel", "refund_status"
TRACKER, REFUNDER = ["default", "tracker", "1.0.0"], ["default", "refunder", "1.0.0"]
N, EVERY = 4000, 20
"""Of so many decisions, every 20th is about a refund and was led to the tracker: 200."""


def body_of(number: int, *, breaks: int = 0) -> dict[str, object]:
    """What the candidate reads: what was read wrong it reads right; of `breaks` others it reads each wrong.

    Every other one of those that were read right is about a refund too.
    """
    is_fixed = number % EVERY == 0
    is_broken = bool(breaks) and number % breaks == 1
    logged = REFUND if number % 2 else TRACK
    reads = {TRACK: REFUND, REFUND: TRACK}[logged] if is_fixed or is_broken else logged
    here = REFUNDER if logged == REFUND else TRACKER
    there = REFUNDER if reads == REFUND else TRACKER
    is_same = here is there
    return {
        "intent": reads,
        "logged_intent": logged,
        "certainty": "sure",
        "is_same": is_same,
        "chosen": 0,
        "options": [[*here, 1.0, 1.0]] if is_same else [[*here, 1.0, 0.0], [*there, 0.0, 1.0]],
        "declared": [0.5] if is_same else [0.0, 0.5],
    }


def judged(n_callers: int = 12, *, state: str = "accepted", breaks: int = 0, meant: str = REFUND) -> list[Judged]:
    """4,000 decisions with outcomes; those that were read wrong failed mostly, and were corrected."""
    rng, found = np.random.default_rng(7), []
    for number in range(N):
        is_wrong = number % EVERY == 0
        succeeded = float(rng.random() < (0.1 if is_wrong else 0.75))
        each = Judged(
            f"d-{number:05d}", body_of(number, breaks=breaks), succeeded, caller=f"c-{number // EVERY % n_callers}"
        )
        if is_wrong and state == "accepted":
            each = each._replace(reward=0.0, corrected=meant)
        elif is_wrong and state == "waiting":
            each = each._replace(waiting=meant)
        found.append(each)
    return found


def missing(found: Proof) -> set[str]:
    return {check.name for check in found.checks if not check.is_met}


def test_a_candidate_that_fixes_what_was_corrected_passes() -> None:
    found = weigh(judged(), LIMITS)
    assert missing(found) == set()
    figures = found.figures
    departures = figures["departures"]
    assert {name: departures[name] for name in ("share", "tried", "confirmed", "untried", "n_confirmed")} == {
        "share": 0.05,
        "tried": 0.0,
        "confirmed": 0.05,
        "untried": 0.0,
        "n_confirmed": 200,
    }
    assert (figures["n_outcomes"], figures["support"]["choices"]) == (N, 1.0)
    # the refunder brings 0.75, what was read wrong 0
    assert figures["sndr"]["value"] == pytest.approx(0.05 * 0.75, abs=0.002)
    assert figures["sndr"]["se"] == pytest.approx(0.75 * (0.05 * 0.95 / N) ** 0.5, rel=0.1)
    assert "5.0% confirmed by 200 accepted corrections" in found.checks[-1].told
    # nobody has seen what these agents make of these requests
    assert not found.skips_canary


def test_the_same_with_corrections_that_wait_is_refused_and_says_so() -> None:
    found = weigh(judged(state="waiting"), LIMITS)
    assert missing(found) == {"few_departures_tried", "not_better"}
    check = found.checks[-1]
    assert "0.0% confirmed by 0 accepted corrections, 5.0% neither, which count as failed" in check.told
    assert "200 corrections that would confirm more wait" in check.told
    assert "worth 0.0 outcomes, 30 are needed" in check.told
    assert "agency-router reviews" in check.fix
    assert found.figures["sndr"]["value"] < 0


def test_the_same_with_all_of_them_of_one_caller_is_refused_and_says_so() -> None:
    found = weigh(judged(n_callers=1), LIMITS)
    assert missing(found) == {"few_departures_tried"}
    check = found.checks[-1]
    assert "confirmed by 20 accepted corrections" in check.told
    assert "180 more are confirmed by callers of whom 20 count already" in check.told
    assert "worth 20.0 outcomes, 30 are needed" in check.told
    assert "of more than one caller" in check.fix
    # what does not count costs nothing: it was wrong as logged, and fails by the candidate
    assert found.figures["sndr"]["value"] == pytest.approx(20 / N * 0.75, abs=0.001)


@pytest.mark.parametrize("breaks", [20, 10])
def test_a_candidate_that_breaks_as_much_as_it_fixes_is_refused(breaks: int) -> None:
    found = weigh(judged(breaks=breaks), LIMITS)
    assert "not_better" in missing(found)
    departures = found.figures["departures"]
    assert (departures["confirmed"], departures["untried"]) == pytest.approx((0.05, 1 / breaks))
    assert found.figures["sndr"]["value"] == pytest.approx((0.05 - 1 / breaks) * 0.75, abs=0.004)


def test_a_candidate_that_breaks_a_fifth_of_what_it_fixes_passes() -> None:
    found = weigh(judged(breaks=100), LIMITS)
    assert missing(found) == set()
    assert found.figures["sndr"]["value"] == pytest.approx(0.04 * 0.75, abs=0.004)


def explored(propensity: float, seed: int) -> list[Judged]:
    """Beside what is confirmed, 5 % go where exploration has been, with a success rate of 0.5 instead of 0.75."""
    rng, found = np.random.default_rng(seed), []
    for each in judged(breaks=20):
        if each.body["logged_intent"] != REFUND or each.body["is_same"]:
            # of 200 corrections 40 are enough
            found.append(each if int(each.decision_id[2:]) % 100 == 0 else each._replace(corrected=None))
            continue
        is_trial = bool(rng.random() < propensity)
        options = [[*REFUNDER, 1.0 - propensity, 0.0], [*TRACKER, propensity, 1.0]]
        body = {**each.body, "chosen": int(is_trial), "options": options}
        found.append(each._replace(body=body, reward=float(rng.random() < (0.5 if is_trial else 0.75))))
    return [each for each in found if each.corrected or int(each.decision_id[2:]) % EVERY]


def test_few_lucky_trials_do_not_pass_beside_what_is_confirmed() -> None:
    few = [weigh(explored(0.03, seed), LIMITS) for seed in range(20)]
    assert [missing(found) & {"not_better"} for found in few] == [{"not_better"}] * 20
    assert {found.figures["departures"]["tried"] for found in few} == {0.0}
    enough = weigh(explored(0.2, 1), LIMITS).figures["departures"]
    assert (enough["n_confirmed"], enough["untried"]) == (40, 0.0)
    assert enough["effective_size"] > 20


def test_a_correction_confirms_only_the_intent_that_it_names() -> None:
    found = weigh(judged(meant="cancel_order"), LIMITS)
    assert missing(found) >= {"not_better", "few_departures_tried"}
    assert found.figures["departures"]["n_confirmed"] == 0
    assert found.figures["sndr"]["value"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("certainty", ["ambiguous", "out_of_scope"])
def test_a_candidate_that_is_not_sure_is_not_confirmed(certainty: str) -> None:
    unsure = [
        each._replace(body={**each.body, "certainty": certainty, "options": [[*TRACKER, 1.0, 0.0]], "declared": [0.0]})
        if each.corrected
        else each
        for each in judged()
    ]
    assert weigh(unsure, LIMITS).figures["departures"]["n_confirmed"] == 0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


async def test_verdicts_in_the_store_decide(store: Store) -> None:
    await store.promotions.add(
        Promotion(promotion_id=0, folder="/m", digest="d" * 64, stage=PromotionStage.SHADOW, created_at=1, updated_at=1)
    )
    rows: list[Row] = []
    for each in judged(state="none")[:1200]:
        key, number = each.decision_id, int(each.decision_id[2:])
        logged = str(each.body["logged_intent"])
        caller = f"key-{number // EVERY % 3}"
        rows += [decided(key, caller=caller)._replace(intent=logged), told(key, bool(each.reward))]
        rows.append(ShadowRow(key, 1, json.dumps(each.body), int(START_MS)))
        if number % EVERY == 0:
            rows.append(corrected(key, REFUND, caller))
    await store.records.append(rows)

    async def departures() -> tuple[int, int, int]:
        found = (await proof(store.promotions, 1, RewardPolicy(), LIMITS)).figures["departures"]
        return found["n_confirmed"], found["n_capped"], found["n_waiting"]

    assert await departures() == (0, 0, 60)
    waiting = await store.reviews.page(ReviewFilter(), "", 1000)
    for number, row in enumerate(waiting):
        verdict: Verdict = ReviewState.REJECTED if number < 10 else ReviewState.ACCEPTED
        if number < 50:
            await store.reviews.decide(row.review_id, verdict, "somebody", 70)
    assert await departures() == (40, 0, 10)

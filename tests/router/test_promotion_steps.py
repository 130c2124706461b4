from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from feedback.promote import Limits, in_force
from models.errors import ConflictError
from models.events import OutcomeRow, Row, ShadowRow
from models.learning_policy import RewardPolicy
from models.promotion import Promotion, PromotionStage
from models.review import ReviewFilter, ReviewState, Verdict
from router.promotion_gate import proof
from router.promotion_steps import Steps, Told, change_rows
from router.promotion_watch import CandidateWatch, baseline
from router.stores.open import Store, open_store
from tests.builders import START_MS, FakeClock
from tests.router.promotions import (
    ENCODER,
    bad_heads,
    corrected,
    good_heads,
    model_folder,
    shadowed,
    traffic,
)
from tests.router.promotions import told as outcome_of

SHADOW, CANARY, FULL, SUPERSEDED, ENDED, ROLLED_BACK = PromotionStage
SMALL = Limits(gate_outcomes=600, canary_outcomes=200, watched_outcomes=300, baseline_outcomes=300)

BARELY: dict[str, Any] = {"other": 0.15, "worth_of_other": 0.5, "tried": 0.5, "seed": 2}
"""A candidate that is better by the 95 % bound, but not by the 99 % bound."""

TRIED: dict[str, Any] = {"tried": 0.3}
"""One that is clearly better, and exploration has tried what it does otherwise."""


@dataclass
class Desk:
    """A store, the steps that work on it, and two model folders."""

    store: Store
    steps: Steps
    good: Path
    bad: Path

    async def stages(self) -> list[PromotionStage]:
        return [each.stage for each in await self.store.promotions.load()]

    async def candidate(self) -> Promotion:
        found = in_force(await self.store.promotions.load()).candidate
        assert found is not None
        return found


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    return model_folder(folder / "good", good_heads()), model_folder(folder / "bad", bad_heads())


@pytest.fixture
async def desk(tmp_path: Path, models: tuple[Path, Path]) -> AsyncIterator[Desk]:
    good, bad = (Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in models)
    async with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        kept, reward = tmp_path / "kept", RewardPolicy()
        steps = Steps(store.promotions, kept, ENCODER, reward, FakeClock(), "me", SMALL)
        yield Desk(store, steps, good, bad)


def missing(told: Told) -> list[str]:
    """What evidence is missing; whoever lacks some is refused, changes nothing, and hears what to do."""
    found = [check for check in told.move.checks if not check.is_met]
    assert told.move.is_refused is bool(found)
    assert bool(told.changes) is not bool(found)
    assert all(check.fix for check in found)
    return [check.name for check in found]


async def test_a_candidate_goes_all_the_way_on_evidence_alone(desk: Desk) -> None:
    await desk.store.records.append(traffic("before", 400, 0.7))
    assert missing(await desk.steps.promote(desk.good)) == []
    assert await desk.stages() == [SHADOW]

    told = await desk.steps.promote(desk.good)
    assert missing(told) == ["too_few_outcomes"]
    await desk.store.records.append(shadowed(1, 700, **BARELY))
    told = await desk.steps.promote(desk.good)
    assert (missing(told), await desk.stages()) == ([], [CANARY])
    canary = await desk.candidate()
    assert canary.body.is_watched
    assert canary.body.after == 1100
    assert canary.body.baseline is not None
    assert canary.body.baseline.n == 1100
    assert canary.body.baseline.mean == pytest.approx(0.7, abs=0.05)
    assert told.figures["baseline"]["n"] == 1100

    await desk.store.records.append(traffic("canary", 150, 0.72, promotion_id=1, seed=3))
    # outcomes of the others do not count
    await desk.store.records.append(traffic("beside", 900, 0.7, seed=4))
    told = await desk.steps.promote(desk.good)
    assert missing(told) == ["canary_outcomes"]
    assert told.move.checks[0].told == "150 outcomes of the canary, 200 are needed"
    await desk.store.records.append(traffic("more", 60, 0.72, promotion_id=1, seed=5))
    told = await desk.steps.promote(desk.good)
    assert (missing(told), await desk.stages()) == ([], [FULL])
    assert told.figures["canary"]["n_outcomes"] == 210

    told = await desk.steps.promote(desk.good)
    assert (missing(told), told.move.before) == (["new"], FULL)
    (full,) = await desk.store.promotions.load()
    assert [step.stage for step in full.body.history] == [SHADOW, CANARY, FULL]
    assert {step.by for step in full.body.history} == {"me"}
    assert "better by" in full.body.history[1].why


async def test_beyond_the_99_percent_bound_the_canary_is_left_out(desk: Desk) -> None:
    await desk.store.records.append(traffic("before", 400, 0.7))
    await desk.steps.promote(desk.good)
    await desk.store.records.append(shadowed(1, 3000, **TRIED))
    assert missing(await desk.steps.promote(desk.good)) == []
    (full,) = await desk.store.promotions.load()
    assert (full.stage, full.body.is_watched) == (FULL, True)
    assert full.body.after == full.body.full_after == 3400


async def test_all_that_is_missing_is_told_at_once(desk: Desk) -> None:
    await desk.steps.promote(desk.good)
    told = await desk.steps.promote(desk.good)
    assert missing(told) == ["too_few_outcomes", "baseline"]
    assert (told.move.before, told.move.after) == (SHADOW, SHADOW)
    assert "0 outcomes of the classifiers in force, 300 are needed" in told.move.checks[1].told


async def test_a_model_without_its_exam_never_enters(desk: Desk) -> None:
    (desk.good / "exam.json").unlink()
    told = await desk.steps.promote(desk.good)
    assert missing(told) == ["exam"]
    assert (told.move.before, told.move.after, await desk.stages()) == (None, None, [])
    assert not desk.steps.models.exists()


async def test_one_candidate_is_on_its_way_at_a_time(desk: Desk) -> None:
    await desk.steps.promote(desk.good)
    told = await desk.steps.promote(desk.bad)
    assert missing(told) == ["one_at_a_time"]
    assert str(desk.good) in told.move.checks[0].told
    assert await desk.stages() == [SHADOW]
    await desk.steps.roll_back("make room")
    assert missing(await desk.steps.promote(desk.bad)) == []
    assert await desk.stages() == [ENDED, SHADOW]


async def test_a_canary_that_has_dropped_does_not_become_full(desk: Desk) -> None:
    await desk.store.records.append(traffic("before", 400, 0.7))
    await desk.steps.promote(desk.good)
    await desk.store.records.append(shadowed(1, 700, **BARELY))
    await desk.steps.promote(desk.good)
    await desk.store.records.append(traffic("canary", 300, 0.3, promotion_id=1))
    assert missing(await desk.steps.promote(desk.good)) == ["no_drop"]


async def in_the_canary(desk: Desk) -> None:
    await desk.store.records.append(traffic("before", 400, 0.7))
    await desk.steps.promote(desk.good)
    await desk.store.records.append(shadowed(1, 700, **BARELY))
    assert missing(await desk.steps.promote(desk.good)) == []


def corrections(name: str, n: int, caller: str = "") -> list[Row]:
    """Decisions of the canary whose readings are said to be wrong, in amendments that came later; they wait."""
    rows = traffic(name, n, 1.0, promotion_id=1, caller=caller)
    keys = [row.decision_id for row in rows if isinstance(row, OutcomeRow)]
    return [
        *rows,
        *(outcome_of(key, True, "refund_status") for key in keys),
        *(corrected(key, caller=caller) for key in keys),
    ]


async def decide(desk: Desk, verdict: Verdict, at_ms: int = int(START_MS)) -> None:
    for row in await desk.store.reviews.page(ReviewFilter(state=ReviewState.WAITING), "", 1000):
        await desk.store.reviews.decide(row.review_id, verdict, "somebody", at_ms)


async def test_accepted_corrections_count_against_the_reading(desk: Desk) -> None:
    await in_the_canary(desk)
    await desk.store.records.append(traffic("fine", 240, 1.0, promotion_id=1))
    await desk.store.records.append([*corrections("first", 30, "a"), *corrections("second", 30, "b")])
    await decide(desk, ReviewState.ACCEPTED)
    told = await desk.steps.promote(desk.good)
    assert missing(told) == ["no_drop"]
    # the amendments took the place of what they amend
    assert (told.figures["canary"]["n_outcomes"], told.figures["canary"]["mean"]) == (300, 0.8)


@pytest.mark.parametrize("is_rejected", [False, True])
async def test_one_callers_corrections_take_back_no_canary(desk: Desk, is_rejected: bool) -> None:
    await in_the_canary(desk)
    await desk.store.records.append([*corrections("one", 24, "caller"), *traffic("more", 30, 1.0, promotion_id=1)])
    if is_rejected:
        await decide(desk, ReviewState.REJECTED)
    canary = await desk.candidate()
    watch = CandidateWatch(canary, SMALL)
    await watch.catch_up(desk.store.promotions, canary, RewardPolicy())
    # they leave what the agent got
    assert (watch.seen.n_outcomes, watch.seen.mean, watch.seen.level, watch.seen.has_alarm) == (54, 1.0, 0.0, False)


async def test_a_correction_counts_from_its_acceptance_on_however_late(desk: Desk) -> None:
    await in_the_canary(desk)
    canary = await desk.candidate()
    watch = CandidateWatch(canary, SMALL)
    await desk.store.records.append(corrections("late", 40))
    await watch.catch_up(desk.store.promotions, canary, RewardPolicy())
    assert (watch.seen.mean, watch.seen.has_alarm) == (1.0, False)
    waiting = await desk.store.reviews.page(ReviewFilter(), "", 1000)
    for number, row in enumerate(waiting):
        await desk.store.reviews.decide(row.review_id, ReviewState.ACCEPTED, "somebody", int(START_MS) + number)
    await watch.catch_up(desk.store.promotions, canary, RewardPolicy())
    assert (watch.seen.n_outcomes, watch.seen.mean, watch.seen.has_alarm) == (40, 0.0, True)
    # the service that starts anew sees the same
    again = CandidateWatch(canary, SMALL)
    await again.catch_up(desk.store.promotions, canary, RewardPolicy())
    assert again.seen == watch.seen


async def test_corrections_that_wait_count_neither_in_the_gate_nor_in_the_baseline(desk: Desk) -> None:
    await desk.store.records.append(traffic("before", 400, 1.0))
    keys = [f"before-{number:05d}" for number in range(40)]
    await desk.store.records.append([*(outcome_of(key, True, "refund_status") for key in keys), *map(corrected, keys)])
    await desk.steps.promote(desk.good)
    shadows = shadowed(1, 700, **BARELY)
    read = [row.decision_id for row in shadows if isinstance(row, ShadowRow)]
    await desk.store.records.append([*shadows, *map(corrected, read[:40])])
    before = (await proof(desk.store.promotions, 1, RewardPolicy(), SMALL)).figures["sndr"]
    found = await baseline(desk.store.promotions, None, RewardPolicy())
    rest = sum(row.body.count("succeeded") for row in shadows if isinstance(row, OutcomeRow))
    assert found.n == 1100
    assert found.mean == pytest.approx((400 + rest) / 1100)
    await decide(desk, ReviewState.ACCEPTED)
    after = await baseline(desk.store.promotions, None, RewardPolicy())
    assert after.mean < found.mean - 0.05
    assert (await proof(desk.store.promotions, 1, RewardPolicy(), SMALL)).figures["sndr"] != before


async def test_the_one_before_is_still_watched_until_it_has_proved_itself(desk: Desk) -> None:
    await desk.store.records.append(traffic("before", 400, 0.7))
    await desk.steps.promote(desk.good)
    await desk.store.records.append(shadowed(1, 3000, **TRIED))
    await desk.steps.promote(desk.good)
    await desk.steps.promote(desk.bad)
    await desk.store.records.append(shadowed(2, 10))
    assert "previous" in missing(await desk.steps.promote(desk.bad))


async def test_rolling_back_ends_the_candidate_first_and_then_what_is_full(desk: Desk) -> None:
    await desk.store.records.append(traffic("before", 400, 0.7))
    await desk.steps.promote(desk.good)
    await desk.store.records.append(shadowed(1, 3000, **TRIED))
    await desk.steps.promote(desk.good)
    await desk.steps.promote(desk.bad)
    assert await desk.stages() == [FULL, SHADOW]
    await desk.steps.roll_back("no")
    assert await desk.stages() == [FULL, ENDED]
    await desk.steps.roll_back("neither")
    assert await desk.stages() == [ROLLED_BACK, ENDED]
    with pytest.raises(ConflictError, match="nothing is on its way"):
        await desk.steps.roll_back("more")
    # what was taken back may be tried again, from the beginning
    assert missing(await desk.steps.promote(desk.good)) == []
    assert await desk.stages() == [ROLLED_BACK, ENDED, SHADOW]


async def test_changes_are_told_as_events_of_a_trace_of_their_own(desk: Desk) -> None:
    told = await desk.steps.promote(desk.good)
    await desk.store.records.append(change_rows(told.changes, "t-1", "s-1", 7, "key"))
    changes = await desk.steps.roll_back("by hand")
    await desk.store.records.append(change_rows(changes, "t-2", "s-2", 8, "key"))
    found = []
    for trace_id in ("t-1", "t-2"):
        ((_, event),) = await desk.store.records.trace(trace_id, 10)
        payload = json.loads(event.payload)
        found.append((event.event_type, event.decision, payload["promotion_id"], payload["before"], payload["why"]))
    assert [each[:4] for each in found] == [("state", "shadow", 1, None), ("state", "ended", 1, "shadow")]
    assert "held-out texts" in found[0][4]
    assert found[1][4] == "by hand"

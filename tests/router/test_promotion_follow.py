from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from feedback.promote import Limits, in_force
from intent.model_folder import MANIFEST_FILE
from models.card import AgentCard
from models.decision import Action, RouteDecision
from models.events import DecisionRow
from models.promotion import PromotionStage
from router.permit import OPEN
from router.promotion_follow import Follower
from router.running import Parts
from tests.builders import FakeClock, request
from tests.router.promotions import (
    ENCODER,
    SAID,
    bad_heads,
    good_heads,
    model_folder,
    promoting,
    shadowed,
    steps_of,
    traffic,
)

SHADOW, CANARY, FULL, SUPERSEDED, ENDED, ROLLED_BACK = PromotionStage
SMALL = Limits(gate_outcomes=600, canary_outcomes=100, watched_outcomes=150, baseline_outcomes=300, canary_share=0.5)
BARELY: dict[str, Any] = {"other": 0.15, "worth_of_other": 0.5, "tried": 0.5, "seed": 2}
PARCEL = SAID["track_parcel"]
serving = partial(promoting, limits=SMALL)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    return model_folder(folder / "good", good_heads()), model_folder(folder / "bad", bad_heads())


async def stages(parts: Parts) -> list[PromotionStage]:
    return [each.stage for each in await parts["store"].promotions.load()]


async def said(parts: Parts, utterance: str = PARCEL, session: str | None = None, **fields: Any) -> RouteDecision:
    caller = {"session_id": session} if session else {}
    decision, _ = await parts["service"].route(request(utterance, caller=caller, **fields), OPEN)
    return decision


async def intent_of(parts: Parts, utterance: str = PARCEL, session: str | None = None) -> str | None:
    decision = await said(parts, utterance, session)
    return decision.intent.name if decision.intent else None


async def to_shadow(parts: Parts, folder: Path) -> None:
    await parts["store"].records.append(traffic("before", 400, 0.75))
    assert not (await steps_of(parts).promote(folder)).move.is_refused
    await parts["promotion"].follower.follow()


async def to_canary(parts: Parts, folder: Path) -> None:
    await to_shadow(parts, folder)
    (*_, made) = await parts["store"].promotions.load()
    await parts["store"].records.append(shadowed(made.promotion_id, 700, **BARELY))
    assert (await steps_of(parts).promote(folder)).move.after is CANARY
    await parts["promotion"].follower.follow()


async def to_full(parts: Parts, folder: Path) -> None:
    await to_canary(parts, folder)
    (*_, made) = await parts["store"].promotions.load()
    await parts["store"].records.append(traffic("canary", 120, 0.8, made.promotion_id))
    assert (await steps_of(parts).promote(folder)).move.after is FULL
    await parts["promotion"].follower.follow()


async def test_a_candidate_in_the_shadow_changes_no_decision(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    async with serving(tmp_path) as parts:
        await to_shadow(parts, folders[1])
        assert [await intent_of(parts, session=f"s-{n}") for n in range(20)] == ["track_parcel"] * 20
        assert parts["promotion"].lanes.floor_now(0.02) == 0.1
        assert parts["live"].learning.raised_floor(0.02) == 0.1


async def test_a_canary_reads_its_sessions_and_the_records_say_so(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    async with serving(tmp_path) as parts:
        await to_canary(parts, folders[1])
        decisions = [await said(parts, session=f"s-{n}") for n in range(60)]
        read = [(each.intent.name if each.intent else "", each.generations.classifier) for each in decisions]
        assert len(set(read)) == 2
        by_intent = dict(read)
        assert set(by_intent) == {"track_parcel", "refund_status"}
        n_canary = sum(intent == "refund_status" for intent, _ in read)
        assert 15 < n_canary < 45
        again = [await intent_of(parts, session=f"s-{n}") for n in range(60)]
        assert again == [intent for intent, _ in read]
        await parts["journal"].flush(5000)
        for decision, (intent, _) in zip(decisions, read, strict=True):
            row = await parts["store"].records.decision(decision.decision_id)
            assert isinstance(row, DecisionRow)
            expected = 1 if intent == "refund_status" else None
            assert json.loads(row.inputs).get("promotion_id") == expected
            told = await parts["replayer"].replay(decision.decision_id)
            assert told is not None
            assert (told.verdict, told.detail, told.taken) == ("equal", None, ())


async def test_full_classifiers_read_all_also_after_a_restart(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    folder = Path(shutil.copytree(folders[1], tmp_path / "model"))
    async with serving(tmp_path) as parts:
        await to_full(parts, folder)
        assert [await intent_of(parts, session=f"s-{n}") for n in range(10)] == ["refund_status"] * 10
    shutil.rmtree(folder)
    async with serving(tmp_path) as parts:
        # from the first decision on, whatever became of the folder
        assert await intent_of(parts) == "refund_status"
        await steps_of(parts).roll_back("by hand")
        await parts["promotion"].follower.follow()
        assert await intent_of(parts) == "track_parcel"
        assert await stages(parts) == [ROLLED_BACK]


async def test_a_worse_canary_is_taken_back_by_itself(
    tmp_path: Path, folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as parts:
        await to_canary(parts, folders[1])
        follower = parts["promotion"].follower
        await parts["store"].records.append(traffic("fine", 50, 0.75, 1))
        await follower.follow()
        assert (await stages(parts), follower.watch is not None and follower.watch.seen.n_outcomes) == ([CANARY], 50)
        await parts["store"].records.append(traffic("worse", 200, 0.2, 1, seed=8))
        await follower.follow()
        assert await stages(parts) == [ROLLED_BACK]
        assert {await intent_of(parts, session=f"s-{n}") for n in range(20)} == {"track_parcel"}
        (known,) = await parts["store"].promotions.load()
        last = known.body.history[-1]
        assert (last.stage, last.by, known.body.is_watched) == (ROLLED_BACK, "service", False)
        assert "the mean reward of 250 outcomes is 0.3" in last.why
        assert "promotion 1 is rolled back" in caplog.text
        await parts["journal"].flush(5000)
        events = await parts["store"].records.events(0, 2**53, 0, 1000)
        states = [event for _, event in events if event.event_type == "state"]
        assert [event.decision for event in states] == ["rolled_back"]
        assert json.loads(states[0].payload)["promotion_id"] == 1


async def test_what_drops_after_it_is_full_makes_room_for_the_one_before(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    async with serving(tmp_path) as parts:
        store, follower = parts["store"], parts["promotion"].follower
        await to_full(parts, folders[0])
        await store.records.append(traffic("proof", 160, 0.8, 1, seed=3))
        await follower.follow()
        (full,) = await store.promotions.load()
        assert not full.body.is_watched
        # its outcomes are what the next one is measured by
        await store.records.append(traffic("steady", 500, 0.75, 1, seed=4))
        assert not (await steps_of(parts).promote(folders[1])).move.is_refused
        await store.records.append(shadowed(2, 700, **BARELY))
        assert (await steps_of(parts).promote(folders[1])).move.after is CANARY
        await store.records.append(traffic("second", 120, 0.8, 2, seed=5))
        assert (await steps_of(parts).promote(folders[1])).move.after is FULL
        assert await stages(parts) == [SUPERSEDED, FULL]
        await follower.follow()
        assert await intent_of(parts) == "refund_status"
        await store.records.append(traffic("drop", 200, 0.2, 2, seed=6))
        await follower.follow()
        assert await stages(parts) == [FULL, ROLLED_BACK]
        assert await intent_of(parts) == "track_parcel"


async def test_the_watch_ends_once_enough_outcomes_have_come(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    async with serving(tmp_path) as parts:
        await to_full(parts, folders[0])
        follower, records = parts["promotion"].follower, parts["store"].records
        await records.append(traffic("late", 149, 0.8, 1, seed=3))
        await follower.follow()
        assert follower.watch is not None
        assert (follower.watch.seen.n_outcomes, follower.watch.seen.n_since_full) == (269, 149)
        await records.append(traffic("last", 1, 1.0, 1, seed=4))
        await follower.follow()
        (full,) = await parts["store"].promotions.load()
        assert not full.body.is_watched
        await records.append(traffic("drop", 500, 0.0, 1, seed=5))
        await follower.follow()
        assert await stages(parts) == [FULL]
        assert parts["promotion"].follower.watch is None


async def test_whoever_sees_a_canary_sees_its_watch(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    async with serving(tmp_path) as parts:
        await to_shadow(parts, folders[0])
        follower = parts["promotion"].follower
        assert follower.watch is None
        await parts["store"].records.append(shadowed(1, 700, **BARELY))
        assert (await steps_of(parts).promote(folders[0])).move.after is CANARY
        await follower.take_up()
        assert follower.now.candidate is not None
        assert follower.now.candidate.stage is CANARY
        assert follower.watch is not None
        assert (follower.watch.promotion_id, follower.watch.seen.n_outcomes) == (1, 0)


async def test_the_watch_goes_on_where_it_was_after_a_restart(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    async with serving(tmp_path) as parts:
        await to_canary(parts, folders[1])
        await parts["store"].records.append(traffic("worse", 15, 0.0, 1))
        await parts["promotion"].follower.follow()
        assert parts["promotion"].follower.watch is not None
        before = parts["promotion"].follower.watch.seen.level
    async with serving(tmp_path) as parts:
        follower = parts["promotion"].follower
        await follower.follow()
        assert follower.watch is not None
        assert (follower.watch.seen.n_outcomes, follower.watch.seen.level) == (15, before)
        await parts["store"].records.append(traffic("more", 30, 0.0, 1))
        await follower.follow()
        assert await stages(parts) == [ROLLED_BACK]


async def test_a_named_model_stays_in_force_and_says_so(
    tmp_path: Path, folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = folders
    async with serving(tmp_path, model=good) as parts:
        await to_full(parts, bad)
        assert [await intent_of(parts, session=f"s-{n}") for n in range(10)] == ["track_parcel"] * 10
        assert "the model that the settings name stays in force: start without it" in caplog.text
        assert parts["readiness"].problems == {}


async def test_a_copy_that_cannot_be_read_is_shown_until_it_can(
    tmp_path: Path, folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as parts:
        await to_full(parts, folders[1])
        (full,) = await parts["store"].promotions.load()
        manifest = parts["promotion"].models / full.digest / MANIFEST_FILE
    kept = manifest.read_bytes()
    manifest.unlink()
    async with serving(tmp_path) as parts:
        follower = parts["promotion"].follower
        assert await intent_of(parts) == "track_parcel"
        assert "promotion 1 is not followed" in parts["readiness"].problems["promotion"]
        for _ in range(3):
            await follower.follow()
        assert caplog.text.count("promotion 1 is not followed") == 1
        manifest.write_bytes(kept)
        await follower.follow()
        assert await intent_of(parts) == "refund_status"
        assert parts["readiness"].problems == {}


async def test_two_services_on_one_store_take_it_back_once(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    async with serving(tmp_path) as parts:
        await to_canary(parts, folders[1])
        promotion = parts["promotion"]
        other = Follower(
            parts["store"].promotions,
            promotion.lanes,
            promotion.models,
            ENCODER,
            lambda: parts["registry"].snapshot.policy.learning.reward,
            parts["journal"],
            FakeClock(),
            promotion.new_id,
            parts["readiness"],
            limits=SMALL,
        )
        await other.take_up()
        await parts["store"].records.append(traffic("worse", 200, 0.1, 1))
        await promotion.follower.follow()
        await other.follow()
        assert await stages(parts) == [ROLLED_BACK]
        assert in_force(await parts["store"].promotions.load()).candidate is None
        await parts["journal"].flush(5000)
        events = await parts["store"].records.events(0, 2**53, 0, 1000)
        assert sum(event.event_type == "state" for _, event in events) == 1
        assert parts["readiness"].problems == {}


async def test_new_cards_are_routed_by_the_nearest_texts_beside_promoted_classifiers(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    async with serving(tmp_path) as parts:
        await to_full(parts, folders[0])
        gifts = AgentCard.model_validate(
            {"agent_id": "gifts", "capabilities": [
                {"intent": "gift_card", "description": "d", "examples": ["buy a gift card for a friend"],
                 "input_schema": "text", "output_schema": "text"}]}
        )  # fmt: skip
        await parts["registry"].put(gifts)
        decision = await said(parts, "buy a gift card for a friend")
        assert (decision.action, decision.intent and decision.intent.name) == (Action.INVOKE, "gift_card")


async def test_decisions_of_the_canary_are_replayed_by_its_own_classifiers(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    async with serving(tmp_path) as parts:
        await to_canary(parts, folders[1])
        decisions = [await said(parts, session=f"s-{n}") for n in range(30)]
        await parts["journal"].flush(5000)
        assert {each.intent.name for each in decisions if each.intent} == {"track_parcel", "refund_status"}
        for decision in decisions:
            replayed = await parts["replayer"].replay(decision.decision_id)
            assert replayed is not None
            assert (replayed.verdict, replayed.part, replayed.taken) == ("equal", None, ())


async def test_the_log_says_what_has_ended_by_whom_and_what_reads_now(
    tmp_path: Path, folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "router.promotion_follow")

    async def ended(parts: Parts) -> list[str]:
        caplog.clear()
        await steps_of(parts).roll_back("too early")
        await parts["promotion"].follower.follow()
        return [each for each in caplog.messages if "is over" in each]

    async with serving(tmp_path) as parts:
        await to_shadow(parts, folders[1])
        assert await ended(parts) == [
            f"promotion 1 of {folders[1]}, in the stage shadow, is over (ended by me: too early): "
            "it had no effect, and the classifiers in force stay"
        ]
        assert not any("no promotion" in each for each in caplog.messages)
    canary, full = tmp_path / "canary", tmp_path / "full"
    for folder, go in ((canary, to_canary), (full, to_full)):
        folder.mkdir()
        async with serving(folder) as parts:
            await go(parts, folders[1])
            stage, end = ("canary", "ended") if go is to_canary else ("full", "rolled_back")
            assert await ended(parts) == [
                f"promotion 1 of {folders[1]}, in the stage {stage}, is over ({end} by me: too early): "
                "utterances are read by the classifiers of the cards, or of the settings"
            ]

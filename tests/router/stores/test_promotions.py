from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from feedback.promote import moved
from models.errors import ConflictError
from models.events import DecisionRow, OutcomeRow, ShadowRow
from models.promotion import Baseline, Change, Promotion, PromotionBody, PromotionStage
from router.stores.open import Store

SHADOW, CANARY, ENDED = PromotionStage.SHADOW, PromotionStage.CANARY, PromotionStage.ENDED


def promotion(digest: str = "d" * 64, **fields: Any) -> Promotion:
    values = {"promotion_id": 0, "folder": "/models/new", "digest": digest, "stage": SHADOW}
    return Promotion(**{**values, "created_at": 5, "updated_at": 5, **fields})


def decision(number: int, request: dict[str, Any] | None = None, **inputs: Any) -> DecisionRow:
    return DecisionRow(
        decision_id=f"d-{number}",
        trace_id="t",
        caller="key",
        namespace="default",
        action="invoke",
        reason="selected",
        intent="track",
        agent_id="tracker",
        request=json.dumps(request or {"utterance": "where is it"}),
        answer=json.dumps({"plan": [{"timeout_ms": 2000}]}),
        inputs=json.dumps({"encoder_id": f"encoder-{number}", **inputs}),
        happened_at=number,
    )


def outcome(number: int, body: str = "{}", attempt: int = 1) -> OutcomeRow:
    return OutcomeRow(f"d-{number}", attempt, None, "key", body, "agent", 100 + number)


async def test_a_promotion_is_loaded_as_it_was_stored(store: Store) -> None:
    assert await store.promotions.load() == []
    body = PromotionBody(baseline=Baseline(n=3, mean=0.5, deviation=0.4), after=7, is_watched=True)
    made = await store.promotions.add(promotion(body=body))
    assert made.promotion_id == 1
    assert await store.promotions.load() == [made]


async def test_only_one_candidate_is_on_its_way_also_where_two_come_at_once(store: Store) -> None:
    first, second = await asyncio.gather(
        *(store.promotions.add(promotion(digest)) for digest in ("a" * 64, "b" * 64)), return_exceptions=True
    )
    assert isinstance(first, Promotion)
    assert isinstance(second, ConflictError)
    over = moved(first, ENDED, 9, "me", "no longer wanted")
    assert await store.promotions.change([Change(first, over)])
    assert (await store.promotions.add(promotion("b" * 64))).promotion_id == 2


async def test_a_change_of_what_has_changed_meanwhile_changes_nothing(store: Store) -> None:
    made = await store.promotions.add(promotion())
    canary, ended = (moved(made, stage, 9, "me", "because") for stage in (CANARY, ENDED))
    assert await store.promotions.change([Change(made, canary)])
    assert not await store.promotions.change([Change(made, ended)])
    # within the same millisecond too, and where the stage is the same
    watched = canary.model_copy(update={"updated_at": canary.updated_at + 1})
    assert await store.promotions.change([Change(canary, watched)])
    assert not await store.promotions.change([Change(canary, ended)])
    assert await store.promotions.load() == [watched]


async def test_of_several_changes_none_is_made_where_one_cannot_be(store: Store) -> None:
    first = await store.promotions.add(promotion())
    over = moved(first, ENDED, 9, "me", "because")
    assert await store.promotions.change([Change(first, over)])
    second = await store.promotions.add(promotion("b" * 64))
    changes = [Change(second, moved(second, CANARY, 9, "me", "x")), Change(first, moved(first, CANARY, 9, "me", "x"))]
    assert not await store.promotions.change(changes)
    assert await store.promotions.load() == [over, second]


async def test_outcomes_that_judge_a_reading_come_with_what_judging_needs(store: Store) -> None:
    given = decision(2, {"intent": "track"})
    of_caller = decision(3, {"utterance": "x", "caller_choice": {"agent_id": "mine"}})
    await store.records.append([decision(1, promotion_id=4), given, of_caller, decision(5)])
    await store.records.append([outcome(n) for n in (1, 2, 3)])
    await store.records.append([outcome(1, attempt=2), outcome(9), outcome(1, '{"amended": 1}'), outcome(5)])
    found, last = await store.promotions.outcomes(0, 100)
    assert [(each.sequence, each.decision_id, each.promotion_id) for each in found] == [
        (1, "d-1", 4),
        (6, "d-1", 4),
        (7, "d-5", None),
    ]
    assert (found[1].body, found[1].slice_ms, found[1].intent, found[1].received_at) == (
        '{"amended": 1}',
        2000,
        "track",
        101,
    )
    assert last == await store.promotions.newest_outcome() == 7
    # pages without any still lead on
    assert await store.promotions.outcomes(1, 2) == ([], 3)
    assert await store.promotions.outcomes(7, 100) == ([], 7)


async def test_shadows_come_page_by_page_with_their_newest_outcomes(store: Store) -> None:
    await store.records.append([decision(n) for n in (1, 2, 3)])
    await store.records.append([ShadowRow(f"d-{n}", 1 if n < 3 else 2, f'{{"n": {n}}}', n) for n in (1, 2, 3)])
    await store.records.append([outcome(1, '{"first": 1}'), outcome(1, '{"second": 1}')])
    found = await store.promotions.shadows(1, "", 10)
    assert [(row.decision_id, None if told is None else told.body) for row, told in found] == [
        ("d-1", '{"second": 1}'),
        ("d-2", None),
    ]
    assert [row.decision_id for row, _ in await store.promotions.shadows(1, "d-1", 10)] == ["d-2"]
    assert (await store.promotions.n_shadows(1), await store.promotions.n_shadows(7)) == (2, 0)


@pytest.mark.parametrize("inputs", ["", "null", "{"])
async def test_records_that_were_erased_say_nothing(store: Store, inputs: str) -> None:
    await store.records.append([decision(1)._replace(inputs=inputs, request=inputs, answer=inputs), outcome(1)])
    (found,), _ = await store.promotions.outcomes(0, 10)
    assert (found.promotion_id, found.slice_ms) == (None, 0)
    assert await store.promotions.encoder_id() is None


async def test_the_encoder_is_that_of_the_newest_decision(store: Store) -> None:
    assert await store.promotions.encoder_id() is None
    await store.records.append([decision(2), decision(1)])
    assert await store.promotions.encoder_id() == "encoder-2"

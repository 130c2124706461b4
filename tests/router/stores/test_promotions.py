from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects import sqlite

from feedback.promote import moved
from models.errors import ConflictError
from models.events import DecisionRow, OutcomeRow, ReviewRow, ShadowRow
from models.promotion import Baseline, Change, Promotion, PromotionBody, PromotionStage
from models.review import ReviewState
from router.stores.open import Store, open_store
from router.stores.promotions import corrected_query, outcomes_query

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


def correction(number: int, meant: str = "refund", caller: str = "key", at_ms: int = 50) -> ReviewRow:
    return ReviewRow(f"r-{number}-{caller}-{meant}", f"d-{number}", caller, "default", "x", "track", meant, at_ms)


async def test_only_accepted_corrections_come_with_outcomes_the_newest_of_them(store: Store) -> None:
    await store.records.append([decision(1), outcome(1), ShadowRow("d-1", 1, "{}", 1)])

    async def known() -> list[str | None]:
        (read,), _ = await store.promotions.outcomes(0, 10)
        ((_, told),) = await store.promotions.shadows(1, "", 10)
        assert told is not None
        return [read.corrected, told.corrected]

    await store.records.append([correction(1), correction(1, "cancel", "b"), correction(1, "other", "c")])
    assert await known() == [None, None]
    await store.reviews.decide("r-1-c-other", ReviewState.REJECTED, "me", 70)
    assert await known() == [None, None]
    await store.reviews.decide("r-1-key-refund", ReviewState.ACCEPTED, "me", 80)
    assert await known() == ["refund", "refund"]
    await store.reviews.decide("r-1-b-cancel", ReviewState.ACCEPTED, "me", 90)
    assert await known() == ["cancel", "cancel"]


async def test_who_is_behind_an_outcome_is_the_key_or_else_who_asked(store: Store) -> None:
    rows = [decision(1)._replace(asker="agent"), decision(2)._replace(caller="", asker="agent")]
    await store.records.append([*rows, outcome(1), outcome(2)])
    found, _ = await store.promotions.outcomes(0, 10)
    assert [each.caller for each in found] == ["key", "agent"]


async def test_decisions_with_accepted_corrections_come_in_the_order_of_acceptance(store: Store) -> None:
    await store.records.append([decision(n) for n in (1, 2, 3, 4)])
    await store.records.append([outcome(n) for n in (1, 2, 3, 4)])
    await store.records.append([outcome(1, '{"amended": 1}'), outcome(1, attempt=2)])
    await store.records.append([correction(1), correction(2, at_ms=9), correction(3), correction(4)])
    for number, at_ms in ((3, 80), (1, 90), (2, 95)):
        await store.reviews.decide(f"r-{number}-key-refund", ReviewState.ACCEPTED, "me", at_ms)
    first, after = await store.promotions.corrected(10, (0, ""), 1)
    then, last = await store.promotions.corrected(10, after, 10)
    assert [(each.decision_id, each.body, each.corrected) for each in (*first, *then)] == [
        ("d-3", "{}", "refund"),
        ("d-1", '{"amended": 1}', "refund"),
    ]
    assert (after, last) == ((80, "r-3-key-refund"), (90, "r-1-key-refund"))
    assert await store.promotions.corrected(10, last, 10) == ([], last)


async def test_accepted_corrections_are_found_through_an_index(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/store.db"):
        pass
    for query in (corrected_query(5, (7, "r"), 10), outcomes_query(5, 10)):
        text = str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
            found = "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"))
        assert "SCAN" not in found
        assert "said USING INDEX reviews_decision_id" in found


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

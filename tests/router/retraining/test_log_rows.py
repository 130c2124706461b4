from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from models.events import DecisionRow, OutcomeRow
from router.retraining.log_rows import LEAST_CONFIDENCE, LEAST_QUALITY, LogRows, correction_of, positive_of, read_log
from router.retraining.rows import Row, Source
from router.stores.training_log import AcceptedCorrection, SettledDecision, open_training_log
from tests.router.retraining.world import TEXTS, Correction, make_store, settled

INTENTS = frozenset(TEXTS)
TEXT = "Where  is my parcel？"


def one(text: str | None = TEXT, intent: str = "track_parcel", **fields: Any) -> SettledDecision:
    made, told = settled("d1", text, intent, **fields)
    assert isinstance(made, DecisionRow)
    assert isinstance(told, OutcomeRow)
    return SettledDecision(
        made.decision_id, made.caller, made.asker, intent, made.request, made.answer, 1, told.body, told.charged
    )


def accepted(text: str | None = TEXT, meant: str = "get_invoice", **fields: Any) -> AcceptedCorrection:
    given = {"asker": "web", "intent": "track_parcel", "decided_at": 1, "caller": "", **fields}
    return AcceptedCorrection("r1", "d1", text=text, correct_intent=meant, **given)


def test_a_sure_decision_whose_agent_did_well_is_a_weak_positive() -> None:
    assert positive_of(one(), INTENTS) == Row(
        "decision:d1", "Where is my parcel?", "track_parcel", Source.OUTCOMES, weight=0.25, caller="web"
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": "failed"}, "not_succeeded"),
        ({"status": "low_confidence"}, "not_succeeded"),
        ({"charged": "caller"}, "charged_to_others"),
        ({"quality": LEAST_QUALITY - 0.01}, "low_quality"),
        ({"correct_intent": "get_invoice"}, "corrected"),
        ({"confidence": LEAST_CONFIDENCE - 0.01}, "not_sure"),
        ({"source": "caller", "confidence": 1.0}, "intent_of_caller"),
        ({"reason": "sticky_session"}, "not_of_this_text"),
        ({"answer": {"parts": [{}]}}, "not_of_this_text"),
        ({"answer": {"target": {"intent": "get_invoice"}}}, "not_of_this_text"),
        ({"action": "clarify"}, "not_routed"),
        ({"request": {"caller_choice": {"agent_id": "own"}}}, "not_routed"),
        ({"text": None}, "no_text"),
        ({"text": "?!"}, "no_text"),
        ({"text": f"sha256:{'a' * 64}"}, "no_text"),
        ({"text": "refund [amount] to [email]"}, "masked"),
        ({"text": "parcel " * 400}, "too_long"),
        ({"intent": "an_intent_of_old"}, "intent_unknown"),
    ],
)
def test_other_decisions_are_left_out_and_it_is_told_why(fields: dict[str, Any], why: str) -> None:
    assert positive_of(one(**fields), INTENTS) == why


@pytest.mark.parametrize("fields", [{"quality": LEAST_QUALITY}, {"correct_intent": "track_parcel"}, {"source": "rule"}])
def test_what_does_not_speak_against_the_reading_is_no_reason(fields: dict[str, Any]) -> None:
    assert isinstance(positive_of(one(**fields), INTENTS), Row)


@pytest.mark.parametrize(("propensity", "weight"), [(None, 0.25), (1.0, 0.25), (0.5, 0.5), (0.25, 1.0), (0.01, 1.0)])
def test_the_weight_is_the_clipped_inverse_propensity(propensity: float | None, weight: float) -> None:
    row = positive_of(one(propensity=propensity), INTENTS)
    assert isinstance(row, Row)
    assert row.weight == weight


def test_who_answers_for_a_row_is_the_key_and_without_keys_the_asker() -> None:
    rows = [positive_of(one(key=key, caller="bot"), INTENTS) for key in ("gateway", "")]
    assert [row.caller for row in rows if isinstance(row, Row)] == ["gateway", "bot"]
    corrected = [correction_of(accepted(caller=key, asker="bot"), INTENTS) for key in ("gateway", "", None)]
    assert [row.caller for row in corrected if isinstance(row, Row)] == ["gateway", "bot", "bot"]


def test_an_accepted_correction_counts_in_full_masked_or_not() -> None:
    for text in (TEXT, "refund [amount]"):
        row = correction_of(accepted(text), INTENTS)
        assert isinstance(row, Row)
        assert (row.row_id, row.weight, row.intent, row.read) == ("review:r1", 1.0, "get_invoice", "track_parcel")
    outside = correction_of(accepted(meant="oos"), INTENTS)
    assert isinstance(outside, Row)
    assert outside.is_out_of_scope


@pytest.mark.parametrize(
    ("correction", "why"),
    [
        (accepted(None), "no_text"),
        (accepted(f"sha256:{'a' * 64}"), "no_text"),
        (accepted(meant="an_intent_of_old"), "intent_unknown"),
    ],
)
def test_a_correction_that_teaches_nothing_is_left_out(correction: AcceptedCorrection, why: str) -> None:
    assert correction_of(correction, INTENTS) == why


def read(url: str, intents: frozenset[str] = INTENTS) -> LogRows:
    async def work() -> LogRows:
        async with open_training_log(url) as log:
            return await read_log(log, intents)

    return asyncio.run(work())


def test_a_log_is_read_whole_over_many_pages(tmp_path: Path) -> None:
    rows = [row for n in range(1203) for row in settled(f"d{n}", f"parcel number {n}", "track_parcel", caller=f"c{n}")]
    corrections = [Correction(f"r{n:04}", f"bill number {n}", "get_invoice", decided_at=5) for n in range(1001)]
    found = read(make_store(tmp_path, rows, corrections))
    assert found.n_read == 1203 + 1001
    assert [row.row_id for row in found.corrections] == [f"review:r{n:04}" for n in range(1001)]
    assert len(found.outcomes) == 200
    assert found.left_out == {"over_cap": 1003}


def test_records_that_cannot_be_read_are_counted_and_passed_by(tmp_path: Path) -> None:
    made, told = settled("d1", TEXT, "track_parcel")
    assert isinstance(made, DecisionRow)
    erased = made._replace(request="{}", answer="{}", decision_id="d1")
    good = settled("d2", TEXT, "track_parcel")
    found = read(make_store(tmp_path, [erased, told, *good]))
    assert [row.row_id for row in found.outcomes] == ["decision:d2"]
    assert found.left_out == {"unreadable": 1}

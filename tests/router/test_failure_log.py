from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from feedback.failure import FailureStage, Traffic
from models.events import DecisionRow, OutcomeRow
from router.failure_log import FailureLog, read_failures
from router.stores.failed import open_failed
from router.stores.open import open_store
from tests.router.asgi import speaking
from tests.router.stores.samples import url_of


def decision(decision_id: str, at: int = 1000, request: dict[str, Any] | None = None, **fields: Any) -> DecisionRow:
    target = {"agent_id": "orders", "namespace": "default", "version": "1.0.0"}
    second = {**target, "agent_id": "backup", "version": "2.0.0"}
    row = DecisionRow(
        decision_id=decision_id,
        trace_id=f"t-{decision_id}",
        caller="",
        namespace="default",
        action="invoke",
        reason="selected",
        intent="order_status",
        agent_id="orders",
        request=json.dumps({"utterance": "where is my order", **(request or {})}, separators=(",", ":")),
        answer=json.dumps({"plan": [{"target": target, "timeout_ms": 900}, {"target": second, "timeout_ms": 700}]}),
        inputs=json.dumps({"timeouts_ms": {"default/orders/1.0.0": 1500}}),
        happened_at=at,
    )
    return row._replace(**fields)


def nobody(decision_id: str, reason: str, at: int = 1000, action: str = "fallback") -> DecisionRow:
    plain: dict[str, Any] = {
        "intent": None,
        "agent_id": None,
        "answer": '{"plan": []}',
        "action": action,
        "reason": reason,
    }
    return decision(decision_id, at, **plain)


def outcome(
    decision_id: str, status: str, at: int = 1000, attempt: int = 1, charged: str = "agent", **told: Any
) -> OutcomeRow:
    body = json.dumps({"decision_id": decision_id, "attempt": attempt, "status": status, **told})
    return OutcomeRow(decision_id, attempt, None, "", body, charged, at)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return url_of(tmp_path / "store.db")


async def read(url: str, rows: Sequence[DecisionRow | OutcomeRow], since_ms: int = 0, limit: int = 100) -> FailureLog:
    async with open_store(url) as store:
        await store.records.append(rows)
    async with open_failed(url) as failed:
        return await read_failures(failed, since_ms, limit=limit)


async def test_an_attempt_that_failed_is_told_with_its_step_of_the_plan(url: str) -> None:
    error = {"class": "HTTP503", "fingerprint": "e-1", "dependency": "db"}
    log = await read(url, [decision("d1"), outcome("d1", "timed_out", attempt=1, latency_ms=890.0, error=error),
                           outcome("d1", "failed", attempt=2, at=2000)])  # fmt: skip
    second, first = log.failures

    assert (first.agent, first.version, first.slice_ms, first.usual_ms) == ("orders", "1.0.0", 900, 1500)
    assert (first.error, first.fingerprint, first.dependency) == ("HTTP503", "e-1", "db")
    assert (first.stage, first.charged, first.latency_ms) == (FailureStage.DEPENDENCY, "agent", 890.0)
    assert (first.utterance, first.intent, first.trace_id) == ("where is my order", "order_status", "t-d1")
    assert (second.agent, second.slice_ms, second.usual_ms, second.at_ms) == ("backup", 700, None, 2000)


async def test_the_newest_outcome_of_an_attempt_counts(url: str) -> None:
    log = await read(url, [decision("d1"), decision("d2"), outcome("d1", "failed"), outcome("d2", "succeeded"),
                           outcome("d1", "succeeded", 2000), outcome("d2", "failed", 3000)])  # fmt: skip

    assert [(each.decision_id, each.at_ms) for each in log.failures] == [("d2", 3000)]
    assert log.traffic == {("default", "orders", "order_status"): Traffic(2, 1, None)}
    assert (log.n_outcomes, log.from_ms, log.until_ms) == (2, 2000, 3000)


async def test_a_correction_is_a_failure_of_reading(url: str) -> None:
    log = await read(url, [decision("d1"), outcome("d1", "succeeded", correct_intent="refund")])

    assert [(each.stage, each.meant) for each in log.failures] == [(FailureStage.READING, "refund")]


async def test_decisions_that_named_nobody_are_failures_of_what_was_missing(url: str) -> None:
    log = await read(url, [
        nobody("d1", "out_of_scope", 5000), nobody("d2", "not_permitted", 4000, "deny"),
        nobody("d3", "at_capacity", 3000), nobody("d4", "deadline", 2000),
        nobody("d5", "ambiguous", 1000, "clarify"), decision("d6"),
    ])  # fmt: skip

    assert [each.stage.value for each in log.failures] == ["reading", "permission", "eligibility", "deadline"]
    assert [each.error for each in log.failures] == ["out_of_scope", "not_permitted", "at_capacity", "deadline"]
    assert (log.n_outcomes, log.from_ms, log.until_ms) == (0, 2000, 5000)


async def test_only_the_newest_are_kept_and_the_others_counted(url: str) -> None:
    rows: list[DecisionRow | OutcomeRow] = [nobody(f"n{at}", "at_capacity", 2 * at) for at in range(1, 700)]
    for at in range(1, 700):
        rows += [decision(f"d{at}"), outcome(f"d{at}", "failed", 2 * at + 1)]
    log = await read(url, rows, limit=10)

    assert [each.at_ms for each in log.failures] == list(range(1399, 1389, -1))
    assert log.n_left_out == 2 * 699 - 10
    assert log.traffic["default", "orders", "order_status"].n_calls == 699


async def test_a_log_may_begin_later(url: str) -> None:
    rows: list[DecisionRow | OutcomeRow]
    rows = [decision("d1"), decision("d2"), outcome("d1", "failed", 1000), outcome("d2", "failed", 2000),
            nobody("d3", "deadline", 1000)]  # fmt: skip
    log = await read(url, rows, since_ms=1500)

    assert [each.decision_id for each in log.failures] == ["d2"]
    assert (log.n_outcomes, log.n_left_out) == (1, 0)


async def test_what_is_not_kept_is_passed_over_or_left_out(url: str) -> None:
    no_text = decision("d1", request={"utterance": None})
    erased = decision("d2", request={}, answer="", inputs="")._replace(request="")
    log = await read(
        url, [no_text, erased, outcome("d1", "failed"), outcome("d2", "failed"), outcome("gone", "failed")]
    )

    assert [(each.decision_id, each.utterance, each.agent) for each in log.failures] == [
        ("d2", None, ""),
        ("d1", None, "orders"),
    ]


async def test_the_agent_of_a_callers_own_choice_is_the_one_it_called(url: str) -> None:
    choice = {"caller_choice": {"agent_id": "other"}}
    log = await read(url, [decision("d1", request=choice), outcome("d1", "failed")])

    assert [each.agent for each in log.failures] == ["other"]
    assert log.traffic == {}


async def test_the_time_that_successes_take_is_known(url: str) -> None:
    rows: list[DecisionRow | OutcomeRow] = []
    for number in range(11):
        rows += [decision(f"d{number}"), outcome(f"d{number}", "succeeded", latency_ms=100.0 * number)]
    log = await read(url, rows)

    assert log.traffic == {("default", "orders", "order_status"): Traffic(11, 0, 900.0)}


async def test_answers_of_which_an_agent_is_not_sure_count_in_its_rate_as_they_are_clustered(url: str) -> None:
    statuses = {"d1": "low_confidence", "d2": "failed", "d3": "succeeded", "d4": "succeeded"}
    log = await read(url, [row for name, status in statuses.items() for row in (decision(name), outcome(name, status))])

    assert sorted(failure.status for failure in log.failures) == ["failed", "low_confidence"]
    assert log.traffic["default", "orders", "order_status"][:2] == (4, 2)


async def test_what_the_service_writes_down_is_read(tmp_path: Path) -> None:
    async with speaking(tmp_path, watch=False) as (client, parts):
        await parts["readiness"].ready.wait()
        answer = (await client.post("/route", json={"intent": "refund_status"})).json()
        told = {"decision_id": answer["decision_id"], "status": "failed", "error": {"class": "HTTP500"}}
        assert (await client.post("/feedback", json=told)).status_code == 202
        assert (await client.post("/route", json={"intent": "no_such_intent"})).json()["action"] in ("fallback", "deny")
    async with open_failed(url_of(tmp_path / "store.db")) as failed:
        log = await read_failures(failed)

    by_status = {each.status: each for each in log.failures}
    assert len(log.failures) == 2
    attempt = by_status["failed"]
    assert (attempt.agent, attempt.intent, attempt.error) == (answer["target"]["agent_id"], "refund_status", "HTTP500")
    assert attempt.slice_ms == answer["plan"][0]["timeout_ms"]
    assert log.traffic["default", attempt.agent, "refund_status"].n_failed == 1


async def test_a_digest_is_no_text(url: str) -> None:
    kept = {"utterance": "sha256:" + "0" * 64}
    log = await read(url, [decision("d1", request=kept), outcome("d1", "failed")])
    assert [failure.utterance for failure in log.failures] == [None]

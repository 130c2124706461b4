from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from intent.dummy_embedder import DummyEmbedder
from models.request import Caller, RouteRequest
from models.settings import Settings
from router import answers
from router.facts import Facts
from router.journal import Journal
from router.permit import OPEN
from router.recorder import Recorder
from router.running import running
from router.wire import dumps
from tests.builders import START_MS, FakeClock, capability, card, request, snapshot_of
from tests.intent.fitted import BOTH, heads_of
from tests.service_builders import Desk, MemoryRecords, case_of, counted_ids, key_grants, service_of


def echo_desk() -> Desk:
    return service_of([card("a", capability("echo", ["do echo"]))])


async def test_a_request_leaves_its_events_in_causal_order() -> None:
    desk = echo_desk()
    asked = request("do echo", trace_id="trc-1", parent_span_id="spn-0")
    decision = await desk.route(asked, key_grants(caller="shop"))
    events = desk.records.audit
    assert [(event.event_type, event.decision) for event in events] == [
        ("request", None),
        ("read", "sure"),
        ("route", "invoke"),
        ("response", "invoke"),
    ]
    assert [json.loads(event.payload) for event in events] == [
        {"namespace": "default", "by": "utterance"},
        {"intent": "echo", "confidence": 1.0, "source": "lexical"},
        {"reason": "only_candidate", "agent_id": "a", "n_excluded": 0},
        {"decision_id": decision.decision_id},
    ]
    for event in events:
        assert (event.trace_id, event.span_id, event.parent_span_id) == ("trc-1", decision.span_id, "spn-0")
        assert (event.node_id, event.caller, event.happened_at) == ("router", "shop", int(START_MS))


async def test_requests_of_one_trace_have_spans_of_their_own() -> None:
    desk = echo_desk()
    first = await desk.route(request(intent="echo", trace_id="trc-1"))
    retry = await desk.route(
        request(intent="echo", trace_id="trc-1", retry_of=first.decision_id, attempt=2, parent_span_id=first.span_id)
    )
    assert first.trace_id == retry.trace_id == "trc-1"
    assert [event.span_id for event in desk.records.audit] == [first.span_id] * 4 + [retry.span_id] * 4
    assert (retry.envelope.retry_of, retry.envelope.attempt) == (first.decision_id, 2)


async def test_without_a_reading_there_is_no_read_event() -> None:
    desk = service_of([])
    await desk.route(request("hello"))
    assert [event.event_type for event in desk.records.audit] == ["request", "route", "response"]


async def test_a_decision_is_recorded_with_what_it_was_made_from() -> None:
    desk = echo_desk()
    grants = key_grants("b", "a", caller="shop", namespaces=frozenset({"default"}))
    asked = RouteRequest(intent="echo", caller=Caller(agent_id="front"), constraints={"max": 10**30}, deadline_ms=2**41)
    decision = await desk.route(asked, grants)
    [record] = desk.records.decisions
    assert record._replace(request="", answer="", inputs="")._asdict() == {
        "decision_id": decision.decision_id,
        "trace_id": decision.trace_id,
        "caller": "shop",
        "namespace": "default",
        "action": "invoke",
        "reason": "only_candidate",
        "intent": "echo",
        "agent_id": "a",
        "request": "",
        "answer": "",
        "inputs": "",
        "happened_at": int(START_MS),
        "session_id": None,
        "asker": "front",
    }
    assert json.loads(record.request) == {
        "intent": "echo",
        "caller": {"agent_id": "front"},
        "constraints": {"max": 10**30},
        "deadline_ms": 2**41,
    }
    inputs = json.loads(record.inputs)
    assert {name: inputs[name] for name in ("seed", "now_ms", "checked_ms", "deadline_ms", "encoder_id", "grants")} == {
        "seed": 7,
        "now_ms": START_MS,
        "checked_ms": START_MS,
        "deadline_ms": 2**41,
        "encoder_id": "dummy-64",
        "grants": {"permissions": ["a", "b"], "namespaces": ["default"], "agent_ids": None},
    }
    assert record.answer.encode() == dumps(decision)


async def test_the_answer_on_record_is_the_one_that_was_sent() -> None:
    desk = echo_desk()
    _, body = await desk.service.route(request("do echo", limit=3), OPEN)
    await desk.journal.flush(1000)
    assert desk.records.decisions[0].answer.encode() == body
    assert json.loads(body)["intent"]["name"] == "echo"


async def test_a_decision_and_its_trace_can_be_read_before_they_are_stored_and_after() -> None:
    desk = echo_desk()
    decision, body = await desk.service.route(request(intent="echo", trace_id="trc-1"), OPEN)
    assert desk.records.rows == []
    for stored in (False, True):
        if stored:
            await desk.journal.flush(1000)
        record = await desk.journal.decision(decision.decision_id)
        assert record is not None
        assert record.answer.encode() == body
        trace = await desk.journal.trace("trc-1", 100)
        assert [event.event_type for _, event in trace] == ["request", "read", "route", "response"]
        assert all((sequence is not None) is stored for sequence, _ in trace)


async def test_in_a_real_store_decisions_and_traces_are_found_as_well(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/store.db", watch=False)
    async with running(settings, embedder=DummyEmbedder(), clock=FakeClock(), ids=counted_ids()) as parts:
        await parts["readiness"].ready.wait()
        answered = {}
        for number in range(30):
            asked = request(intent="refund_status", trace_id=f"trc-{number % 3}", constraints={"number": number})
            decision, body = await parts["service"].route(asked, OPEN)
            answered[decision.decision_id] = body
        journal = parts["journal"]
        for _ in ("some may wait", "all are stored"):
            for decision_id, body in answered.items():
                record = await journal.decision(decision_id)
                assert record is not None
                assert record.answer.encode() == body
            for number in range(3):
                trace = [event for _, event in await journal.trace(f"trc-{number}", 100)]
                assert [event.event_type for event in trace] == ["request", "read", "route", "response"] * 10
                spans = [event.span_id for event in trace]
                assert spans == [span for span in dict.fromkeys(spans) for _ in range(4)]
            await journal.flush(5000)
        assert journal.n_pending == 0
        assert await parts["store"].records.decision("no such decision") is None


async def test_a_dry_run_is_answered_and_not_recorded() -> None:
    records = MemoryRecords()
    journal = Journal(records, max_rows=100, batch=100, wait_ms=1)
    dry = case_of(request(intent="echo", dry_run=True), snapshot_of([]))
    decision = answers.deny(dry, 1.0)
    assert Recorder(journal).record(dry, decision) == dumps(decision)
    assert journal.n_pending == 0


@pytest.mark.parametrize(("sentence", "intent", "by"), [("hm", None, "utterance"), ("hm", "echo", "intent")])
async def test_the_request_event_says_by_what_it_was_routed(sentence: str, intent: str | None, by: str) -> None:
    desk = echo_desk()
    await desk.route(request(sentence, intent=intent))
    assert json.loads(desk.records.audit[0].payload)["by"] == by


def digest_in(desk: Desk, number: int) -> str | None:
    digest: str | None = json.loads(desk.records.decisions[number].inputs)["digests"]["classifier"]
    return digest


async def test_a_decision_names_its_classifiers_where_they_read_it_all_and_are_kept() -> None:
    desk = echo_desk()
    recorder = Recorder(desk.journal, archived=lambda heads: None if heads is None else heads.digest)
    case = case_of(request("do echo"), desk.snapshot)
    decision = answers.deny(case, 1.0)
    known = replace(heads_of(BOTH), digest="ab" * 32)
    for facts in (Facts(heads=known), Facts(heads=known, heads_changed=True), Facts()):
        recorder.record(replace(case, facts=facts), decision)
    given = case_of(request("do echo", intent="echo"), desk.snapshot)
    recorder.record(replace(given, facts=Facts(heads=known)), decision)
    await desk.journal.flush(1000)
    assert [digest_in(desk, number) for number in range(4)] == ["ab" * 32, None, None, None]

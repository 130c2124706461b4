"""What a store tells of failures, and how the agents did in all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, NamedTuple

import numpy as np
import orjson
from pydantic import ValidationError

from feedback.attribution import FAILURES, Party
from feedback.clusters import MAX_FAILURES
from feedback.failure import Failure, FailureStage, Traffic, stage_of
from models.outcome import Outcome, OutcomeStatus
from router.redaction import is_digest
from router.stores.failed import LoggedBody, LoggedDecision, SqlFailed

MAX_OUTCOMES = 2_000_000
"""The newest ones are looked through."""

_PAGE = 500
_N_LATENCIES = 200
_MAX_CHARS = 1000
_MAX_TALLIES = 100_000

_STAGES: Mapping[str, FailureStage] = {
    "out_of_scope": FailureStage.READING,
    "not_permitted": FailureStage.PERMISSION,
    "deadline": FailureStage.DEADLINE,
    "poison_request": FailureStage.REQUEST,
}

Told = Callable[[int], None]
"""Told how many outcomes were read so far."""


class FailureLog(NamedTuple):
    """What a store tells of failures.

    Attributes:
        failures: the newest, at most as many as were asked for.
        n_left_out: older ones.
        traffic: by (namespace, agent, intent).
        n_outcomes: that were looked through, failures or not.
        from_ms: when it begins (epoch); 0 where it is empty. So is `until_ms`, when it ends.
    """

    failures: Sequence[Failure]
    n_left_out: int
    traffic: Mapping[tuple[str, str, str], Traffic]
    n_outcomes: int
    from_ms: int
    until_ms: int


_BAD = FAILURES | {OutcomeStatus.LOW_CONFIDENCE}
"""What is clustered as a failure counts as one in an agent's rate too."""


@dataclass(slots=True)
class _Tally:
    n_calls: int = 0
    n_failed: int = 0
    latencies_ms: list[float] = field(default_factory=list)

    def add(self, outcome: Outcome, charged: str) -> None:
        self.n_calls += 1
        self.n_failed += outcome.status in _BAD and charged == Party.AGENT
        is_told = outcome.status is OutcomeStatus.SUCCEEDED and outcome.latency_ms is not None
        # the newest come first
        if is_told and len(self.latencies_ms) < _N_LATENCIES:
            self.latencies_ms.append(outcome.latency_ms or 0.0)

    def traffic(self) -> Traffic:
        p90_ms = float(np.quantile(self.latencies_ms, 0.9)) if self.latencies_ms else None
        return Traffic(self.n_calls, self.n_failed, p90_ms)


@dataclass(slots=True)
class _Span:
    from_ms: int = 0
    until_ms: int = 0

    def add(self, at_ms: int) -> None:
        self.from_ms = min(self.from_ms or at_ms, at_ms)
        self.until_ms = max(self.until_ms, at_ms)


async def read_failures(
    store: SqlFailed, since_ms: int = 0, *, limit: int = MAX_FAILURES, told: Told = lambda n: None
) -> FailureLog:
    """Read the newest failures: attempts that failed or were corrected, and decisions that named no agent.

    An attempt whose decision is no longer kept is passed over: there is nothing to show of it.

    Args:
        store: to read.
        since_ms: only what was told from this instant on (epoch).
        limit: at most so many failures; memory is bounded by it.
        told: told how many outcomes were read so far.

    Raises:
        StoreError: the store does not answer.
    """
    failed: list[Failure] = []
    tallies: dict[tuple[str, str, str], _Tally] = defaultdict(_Tally)
    span = _Span()
    n_outcomes = n_left_out = 0
    async for page in _outcome_pages(store, since_ms):
        n_outcomes += len(page)
        found = list(_failed(page, tallies, span))
        kept = found[: max(0, limit - len(failed))]
        n_left_out += len(found) - len(kept)
        records = {row.decision_id: row for row in await store.decisions([row.decision_id for row, _ in kept])}
        failed += (
            _attempt(row, outcome, records[row.decision_id]) for row, outcome in kept if row.decision_id in records
        )
        told(n_outcomes)
    nobody: list[Failure] = []
    async for rows in _nobody_pages(store, since_ms, limit):
        nobody += (_decision(row) for row in rows)
        for row in rows:
            span.add(row.happened_at)
    n_left_out += await store.count_nobody(since_ms) - len(nobody)
    newest = nlargest(limit, [*failed, *nobody], key=lambda failure: (failure.at_ms, failure.decision_id))
    n_left_out += len(failed) + len(nobody) - len(newest)
    traffic = {key: tally.traffic() for key, tally in tallies.items()}
    return FailureLog(newest, n_left_out, traffic, n_outcomes, span.from_ms, span.until_ms)


async def _outcome_pages(store: SqlFailed, since_ms: int) -> AsyncIterator[Sequence[LoggedBody]]:
    before: int | None = None
    for _ in range(MAX_OUTCOMES // _PAGE):
        page = await store.outcomes(since_ms, before, _PAGE)
        if not page:
            return
        before = page[-1].sequence
        yield page


async def _nobody_pages(store: SqlFailed, since_ms: int, limit: int) -> AsyncIterator[Sequence[LoggedDecision]]:
    before: tuple[int, str] | None = None
    while limit > 0:
        rows = await store.named_nobody(since_ms, before, min(_PAGE, limit))
        if not rows:
            return
        before = (rows[-1].happened_at, rows[-1].decision_id)
        limit -= len(rows)
        yield rows


def _failed(
    page: Sequence[LoggedBody], tallies: dict[tuple[str, str, str], _Tally], span: _Span
) -> Iterator[tuple[LoggedBody, Outcome]]:
    """Those of a page that are failures; all count in the tallies."""
    for row in page:
        try:
            outcome = Outcome.model_validate_json(row.body)
        except ValidationError:
            continue
        span.add(row.received_at)
        key = (row.namespace, row.agent_id or "", row.intent or "")
        if row.attempt == 1 and not row.is_shadow and (key in tallies or len(tallies) < _MAX_TALLIES):
            tallies[key].add(outcome, row.charged)
        if stage_of(outcome, row.charged, row.intent) is not None:
            yield row, outcome


def _attempt(row: LoggedBody, outcome: Outcome, record: LoggedDecision) -> Failure:
    request, answer, inputs = (_loaded(text) for text in (record.request, record.answer, record.inputs))
    plan = answer.get("plan") or []
    step = plan[row.attempt - 1] if row.attempt <= len(plan) else {}
    target = request.get("caller_choice") or step.get("target") or {}
    agent, version = str(target.get("agent_id") or ""), str(target.get("version") or "")
    name = "/".join((str(target.get("namespace") or row.namespace), agent, version))
    stage = stage_of(outcome, row.charged, row.intent)
    error = outcome.error
    return Failure(
        decision_id=row.decision_id,
        trace_id=record.trace_id,
        at_ms=row.received_at,
        namespace=row.namespace,
        stage=FailureStage.AGENT if stage is None else stage,
        status=outcome.status.value,
        utterance=_utterance(request),
        intent=row.intent,
        attempt=row.attempt,
        agent=agent,
        version=version,
        charged=row.charged,
        error=None if error is None else error.class_,
        fingerprint=None if error is None else error.fingerprint,
        dependency=None if error is None else error.dependency,
        meant=outcome.correct_intent if outcome.correct_intent != row.intent else None,
        slice_ms=step.get("timeout_ms"),
        usual_ms=(inputs.get("timeouts_ms") or {}).get(name),
        latency_ms=outcome.latency_ms,
    )


def _decision(record: LoggedDecision) -> Failure:
    return Failure(
        decision_id=record.decision_id,
        trace_id=record.trace_id,
        at_ms=record.happened_at,
        namespace=record.namespace,
        stage=_STAGES.get(record.reason, FailureStage.ELIGIBILITY),
        status=record.action,
        utterance=_utterance(_loaded(record.request)),
        intent=record.intent,
        error=record.reason,
    )


def _utterance(request: Mapping[str, Any]) -> str | None:
    told = request.get("utterance")
    if not isinstance(told, str) or not told or is_digest(told):
        return None
    return told[:_MAX_CHARS]


def _loaded(text: str) -> Mapping[str, Any]:
    # an erased record holds no JSON object
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}

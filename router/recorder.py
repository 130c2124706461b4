"""Recorder: a decision's record and its audit events, on their way to the journal."""

from __future__ import annotations

from functools import lru_cache

import orjson

from intent.llm.escalated import EscalationStatus
from models.decision import RouteDecision
from models.events import HOUR_MS, DecisionRow, EventType, GoalRow, Row, UsageRow
from router.case import Case
from router.journal import Journal
from router.permit import Grants
from router.spans import Step, span_row
from router.wire import dumps

_NODE = "router"
_REQUEST, _READ, _ROUTE, _RESPONSE = (
    kind.value for kind in (EventType.REQUEST, EventType.READ, EventType.ROUTE, EventType.RESPONSE)
)
_MOST_FIGURES = 16
"""Of so many agents, those ranked first, the live figures are recorded."""

_ROOM_WAIT_MS = 1000.0


class Recorder:
    """Writes down what was decided and from what; dry runs leave no trace."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def room(self) -> None:
        """Hold the request back while the journal is full. Raises OverloadedError if it stays so."""
        await self._journal.room(_ROOM_WAIT_MS)

    def record_goal(self, namespace: str, task_id: str, goal_hash: str, now_ms: float) -> None:
        """Write down the goal hash first seen under a task; at once, since the request may still end in an error."""
        self._journal.put([GoalRow(namespace, task_id, goal_hash, int(now_ms))])

    def record(self, case: Case, decision: RouteDecision) -> bytes:
        """Hand the decision to the journal; its JSON text."""
        body = dumps(decision)
        if not case.request.dry_run:
            self._journal.put(_rows(case, decision, body.decode()))
        return body


def _rows(case: Case, decision: RouteDecision, answer: str) -> list[Row]:
    request, reading = case.request, case.reading
    target = decision.target
    record = DecisionRow(
        decision_id=case.decision_id,
        trace_id=case.trace_id,
        caller=case.grants.caller,
        namespace=request.namespace,
        action=str(decision.action),
        reason=str(decision.reason),
        intent=decision.intent.name if decision.intent else None,
        agent_id=target.agent_id if target else None,
        request=dumps(request).decode(),
        answer=answer,
        inputs=dumps(
            {
                "seed": case.seed,
                "now_ms": case.now_ms,
                "checked_ms": case.checked_ms,
                "deadline_ms": case.deadline.at_ms,
                "encoder_id": case.snapshot.encoder_id,
                **({} if case.promotion_id is None else {"promotion_id": case.promotion_id}),
                "grants": _grants(case.grants),
                **_live_figures(case, decision),
            }
        ).decode(),
        happened_at=int(case.now_ms),
    )
    steps: list[Step] = [(_REQUEST, None, {"namespace": request.namespace, "by": _by(case)}, 0, 0.0)]
    if reading is not None:
        read: dict[str, object] = {
            "intent": reading.intent,
            "confidence": reading.confidence,
            "source": reading.source,
            **_escalated(case),
        }
        steps.append((_READ, str(reading.certainty), read, case.n_llm_tokens, 0.0))
    routed = {"reason": record.reason, "agent_id": record.agent_id, "n_excluded": len(case.eligible.excluded)}
    steps.append((_ROUTE, record.action, routed, 0, 0.0))
    steps.append((_RESPONSE, record.action, {"decision_id": record.decision_id}, 0, decision.elapsed_ms))
    span = span_row(
        record.trace_id, case.span_id, request.parent_span_id, _NODE, steps, record.happened_at, record.caller
    )
    return [span, record, _usage(case, record)]


def _live_figures(case: Case, decision: RouteDecision) -> dict[str, object]:
    """Of the agents ranked first, as far as more is known of them than their cards say; timeouts of those in the plan.

    What is recorded of a decision does not grow with the number of agents.
    """
    if case.selection is None:
        return {}
    standings = case.standings
    ranked = [*case.selection.entries[:_MOST_FIGURES], case.selection.chosen]
    known = {entry.agent: standings[entry.number] for entry in ranked if standings[entry.number] is not entry.fresh}
    if not known:
        return {}
    planned = {(step.target.namespace, step.target.agent_id, step.target.version) for step in decision.plan}
    called = (entry for entry in case.eligible.entries if entry.agent in planned)
    return {
        "live": {"/".join(agent): standing[:5] for agent, standing in known.items()},
        "timeouts_ms": {"/".join(entry.agent): standings[entry.number].timeout_ms for entry in called},
    }


def _usage(case: Case, record: DecisionRow) -> UsageRow:
    return UsageRow(
        hour=record.happened_at // HOUR_MS,
        caller=case.asker.caller,
        team=case.request.tenant or "",
        namespace=record.namespace,
        agent_id=record.agent_id or "",
        n_decisions=1,
        n_calls=0,
        n_succeeded=0,
        tokens=0,
        cost_usd=0.0,
        n_latencies=0,
        latency_ms=0.0,
    )


def _escalated(case: Case) -> dict[str, object]:
    """How asking a language model ended; nothing where none was to be asked."""
    told = case.escalated
    if told is None or told.status is EscalationStatus.DISABLED:
        return {}
    said = {"status": told.status.value, "origin": told.origin.value, "code": told.detail}
    return {"llm": {name: value for name, value in said.items() if value}}


@lru_cache(maxsize=1024)
def _grants(grants: Grants) -> orjson.Fragment:
    """What the caller might at that time, as JSON text; null means all."""
    held = {"permissions": grants.permissions, "namespaces": grants.namespaces, "agent_ids": grants.agent_ids}
    return orjson.Fragment(dumps({name: None if names is None else sorted(names) for name, names in held.items()}))


def _by(case: Case) -> str:
    return "intent" if case.request.intent is not None else "utterance"

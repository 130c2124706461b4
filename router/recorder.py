"""Recorder: a decision's record and its audit events, on their way to the journal."""

from __future__ import annotations

from collections.abc import Callable

from intent.heads import Heads
from intent.llm.escalated import EscalationStatus
from models.decision import RouteDecision
from models.events import HOUR_MS, DecisionRow, EventType, GoalRow, Row, UsageRow
from router.case import Case
from router.journal import Journal
from router.redaction import Redaction
from router.sealed_inputs import sealed_inputs
from router.spans import Step, span_row
from router.wire import dumps

_NODE = "router"
_REQUEST, _READ, _ROUTE, _RESPONSE = (
    kind.value for kind in (EventType.REQUEST, EventType.READ, EventType.ROUTE, EventType.RESPONSE)
)
_ROOM_WAIT_MS = 1000.0


def _nowhere(_heads: Heads | None) -> None:
    return None


class Recorder:
    """Writes down what was decided and from what; dry runs leave no trace."""

    def __init__(
        self,
        journal: Journal,
        *,
        zone: str = "UTC",
        archived: Callable[[Heads | None], str | None] = _nowhere,
        redaction_key: bytes = b"",
    ) -> None:
        """Wire it up.

        Args:
            journal: where records go.
            zone: the time zone in which decisions understand words such as `tomorrow`.
            archived: digest under which classifiers are in the archive; None where they are not.
            redaction_key: of the digests, where the policy has no text kept.
        """
        self._journal = journal
        self._zone = zone
        self._archived = archived
        self._redaction_key = redaction_key

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
            redaction = Redaction(case.snapshot.policy.retention.utterances, self._redaction_key)
            request, answer = redaction.texts(dumps(case.request), body)
            classifier = self._archived(case.facts.heads) if _is_read(case) else None
            inputs = sealed_inputs(case, decision, request, self._zone, classifier)
            self._journal.put(_rows(case, decision, request.decode(), answer.decode(), inputs.decode()))
        return body


def _is_read(case: Case) -> bool:
    """Whether classifiers read it, and were the same all the time."""
    return case.request.intent is None and not case.facts.heads_changed


def _rows(case: Case, decision: RouteDecision, asked: str, answer: str, inputs: str) -> list[Row]:
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
        request=asked,
        answer=answer,
        inputs=inputs,
        happened_at=int(case.now_ms),
        session_id=request.caller.session_id,
        asker=case.asker.caller,
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


def _by(case: Case) -> str:
    return "intent" if case.request.intent is not None else "utterance"

"""LogExport: decisions with their outcomes as JSON lines, as far as the policy in force has them kept."""

from __future__ import annotations

from typing import Any

import orjson

from models.learning_policy import RetentionPolicy
from router.redaction import Redaction
from router.stores.feedback_log import RecordedDecision

DAY_MS = 86_400_000


def line_of(recorded: RecordedDecision, redaction: Redaction, rules: RetentionPolicy, now_ms: int) -> bytes | None:
    """One line; None where the record has reached its age and was only not dropped yet.

    Args:
        recorded: a decision and its outcomes.
        redaction: how much of the request may be told; records of before the policy may hold more.
        rules: the ages.
        now_ms: epoch.
    """
    row = recorded.decision
    if _is_old(row.happened_at, rules.decisions_days, now_ms):
        return None
    request, answer = redaction.texts(row.request.encode(), row.answer.encode())
    line: dict[str, Any] = {
        "decision_id": row.decision_id,
        "trace_id": row.trace_id,
        "happened_at": row.happened_at,
        "namespace": row.namespace,
        "caller": row.asker,
        "session_id": row.session_id,
        "action": row.action,
        "reason": row.reason,
        "intent": row.intent,
        "agent_id": row.agent_id,
        "request": orjson.Fragment(request),
        "answer": orjson.Fragment(answer),
        "inputs": orjson.Fragment(row.inputs),
        "outcomes": [
            {
                "attempt": each.attempt,
                "charged_to": each.charged,
                "received_at": each.received_at,
                "outcome": orjson.Fragment(each.body),
            }
            for each in recorded.outcomes
            if not _is_old(each.received_at, rules.outcomes_days, now_ms)
        ],
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _is_old(at_ms: int, days: float | None, now_ms: int) -> bool:
    return days is not None and at_ms < now_ms - days * DAY_MS

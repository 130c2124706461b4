"""Answers: the RouteDecision for each way a case can end.

The values are ours and checked already, so the hot path builds the contracts without validating them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from models.candidate import Candidate
from models.card import FallbackForm, FallbackForms
from models.decision import (
    Action,
    Attempt,
    Clarify,
    ClarifyOption,
    EntityValue,
    Envelope,
    Fallback,
    Generations,
    IntentAlternative,
    IntentReading,
    QueueTicket,
    Reason,
    RouteDecision,
)
from models.reading import Alternative
from models.request import RouteRequest
from router.case import Case
from router.extraction import named
from router.selection import explain, left_out
from router.snapshot import Entry

MAX_EXPLAINED = 100
_NOTHING_DECLARED = FallbackForms()


def invoke(case: Case, plan: list[Attempt], elapsed_ms: float) -> RouteDecision:
    """An agent was chosen."""
    selection = case.selection
    assert selection is not None
    return _decision(
        case,
        Action.INVOKE,
        selection.reason,
        elapsed_ms,
        target=plan[0].target,
        plan=plan,
        utility=selection.utility,
        propensity=selection.choice.propensity,
        candidates=_candidates(case),
        lease=case.lease,
        fallback=_last_step(selection.chosen),
    )


def hand_over(case: Case, form: FallbackForm, elapsed_ms: float) -> RouteDecision:
    """Agents have failed this session again and again: people take it from here."""
    human = Fallback(kind="human", **form.model_dump())
    return _decision(case, Action.FALLBACK, Reason.DEGRADED, elapsed_ms, fallback=human, candidates=_candidates(case))


def queued(case: Case, ticket: QueueTicket | None, elapsed_ms: float) -> RouteDecision:
    """Nobody can take it now: it waits in the degrade queue; a dry run gets no ticket."""
    return _decision(
        case,
        Action.QUEUE,
        Reason.QUEUED,
        elapsed_ms,
        queue=ticket,
        retry_after_ms=_whole(case.wait_ms),
        candidates=_candidates(case),
    )


def deny(case: Case, elapsed_ms: float) -> RouteDecision:
    """The intent is served, but not for this caller; with `hide_denied` it looks like no agent."""
    if case.policy.hide_denied:
        return _fallback(case, Reason.NO_CAPABLE_AGENT, elapsed_ms, (), intent=None)
    return _decision(case, Action.DENY, Reason.NOT_PERMITTED, elapsed_ms, intent=_intent(case, ()))


def fallback(case: Case, reason: Reason, elapsed_ms: float) -> RouteDecision:
    """Nobody takes it; the agents that cannot take it now, or in time, may have declared a degraded answer."""
    return _fallback(
        case, reason, elapsed_ms, case.unable, candidates=_candidates(case), retry_after_ms=_whole(case.wait_ms)
    )


def clarify(
    case: Case, reason: Reason, question: str, options: Sequence[tuple[str, str]], elapsed_ms: float
) -> RouteDecision:
    """A question that would settle the matter; `options` are (intent, description)."""
    asked = Clarify(
        question=question,
        options=[ClarifyOption(intent=intent, description=description) for intent, description in options],
    )
    return _decision(case, Action.CLARIFY, reason, elapsed_ms, clarify=asked)


def goal_mismatch(case: Case, elapsed_ms: float) -> RouteDecision:
    """The task came with another goal before."""
    question = "The goal of this task has changed: is it still the same task?"
    return clarify(case, Reason.GOAL_MISMATCH, question, (), elapsed_ms)


def _whole(wait_ms: float | None) -> int | None:
    return None if wait_ms is None else max(1, ceil(wait_ms))


def _last_step(chosen: Entry) -> Fallback | None:
    """What the caller is left with when the whole plan has failed, where the agent has declared something."""
    forms = chosen.card.fallback
    return _form([forms], None) if forms != _NOTHING_DECLARED else None


def _fallback(case: Case, reason: Reason, elapsed_ms: float, entries: Sequence[Entry], **fields: Any) -> RouteDecision:
    declared = [entry.card.fallback for entry in sorted(entries, key=lambda entry: -entry.capability.quality)]
    return _decision(
        case, Action.FALLBACK, reason, elapsed_ms, fallback=_form(declared, case.policy.fallback), **fields
    )


def _form(declared: Sequence[FallbackForms], default: FallbackForm | None) -> Fallback | None:
    """The first declared form, of each agent the preset answer first, then the partial one, then people."""
    for forms in declared:
        for kind in ("full", "partial", "human"):
            form: FallbackForm | None = getattr(forms, kind)
            if form is not None:
                return Fallback(kind=kind, **form.model_dump())
    return None if default is None else Fallback(kind="full", **default.model_dump())


def _candidates(case: Case) -> list[Candidate]:
    limit = case.request.limit or (MAX_EXPLAINED if case.explain else 0)
    if limit == 0:
        return []
    if case.selection is None:
        return left_out(case.eligible.excluded, limit)
    return explain(case.selection, case.eligible.excluded, limit)


def _decision(case: Case, action: Action, reason: Reason, elapsed_ms: float, **fields: Any) -> RouteDecision:
    request, reading, snapshot = case.request, case.reading, case.snapshot
    if "intent" not in fields:
        fields["intent"] = _intent(case, reading.alternatives if reading else ())
    return RouteDecision.of(
        decision_id=case.decision_id,
        trace_id=case.trace_id,
        span_id=case.span_id,
        envelope=_envelope(request),
        namespace=request.namespace,
        text=request.utterance,
        language=reading.language if reading else None,
        action=action,
        reason=reason,
        entities=_entities(case),
        constraints=request.constraints,
        skipped_versions=case.eligible.skipped,
        degraded=case.degraded,
        dry_run=request.dry_run,
        generations=Generations.of(
            cards=snapshot.cards_generation,
            index=snapshot.index_generation,
            classifier=case.classifier_generation,
            weights=case.weights_version,
            policy=snapshot.policy_generation,
        ),
        elapsed_ms=round(elapsed_ms, 3),
        **fields,
    )


def _intent(case: Case, alternatives: Sequence[Alternative]) -> IntentReading | None:
    reading = case.reading
    if reading is None or reading.intent is None or case.hides_intent:
        return None
    return IntentReading.of(
        name=reading.intent,
        confidence=reading.confidence,
        source=reading.source,
        alternatives=[IntentAlternative.of(name=other.intent, confidence=other.confidence) for other in alternatives],
    )


def _entities(case: Case) -> dict[str, EntityValue]:
    """Under the names of the chosen capability's schema, else of their kinds."""
    utterance = case.request.utterance
    if utterance is None:
        return {}
    return named(case.found, case.selection.chosen.properties if case.selection is not None else (), utterance)


def _envelope(request: RouteRequest) -> Envelope:
    return Envelope.of(
        parent_span_id=request.parent_span_id,
        task_id=request.task_id,
        step_index=request.step_index,
        global_goal_hash=request.global_goal_hash,
        allowed_tools=request.allowed_tools,
        retry_of=request.retry_of,
        attempt=request.attempt,
        payload_type=request.payload_type,
        schema_version=request.schema_version,
        deadline_ms=request.deadline_ms,
        budget_tokens=request.budget_tokens,
        caller_agent_id=request.caller.agent_id,
        session_id=request.caller.session_id,
    )

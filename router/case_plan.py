"""The plan of a case whose agent is chosen, and the decision as its outcomes will be joined to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from models.card import AgentKey
from models.decision import Attempt
from models.reading import Reading
from router.case import Case
from router.live.fingerprint import business_key, fingerprint
from router.live.open_decisions import OpenDecision, Step, chosen_by_caller, likely, step_of_choice, steps_of
from router.planner import Callee, plan
from router.redaction import Redaction, masked_as_found
from router.selection import Selection
from router.snapshot import Entry
from router.success import Asked

_AS_KEPT = Redaction("redacted", b"")


def plan_of(case: Case, is_probe: Callable[[Entry], bool]) -> list[Attempt]:
    """The agent that was chosen, retries on it, its backup.

    Args:
        case: selected.
        is_probe: whether a call to an entry would be a breaker's probe: one call, which is not made again, and which no
            plan holds in reserve.
    """
    assert case.selection is not None
    assert case.reading is not None
    chosen, request = case.selection.chosen, case.request
    backup = _backup_of(chosen, case.eligible.entries)
    if backup is not None and is_probe(backup):
        backup = None
    asked = case.reading.text if request.payload is None else request.payload
    steps = plan(
        _callee(case, chosen),
        backup=None if backup is None else _callee(case, backup),
        remaining_ms=case.remaining_ms,
        key=business_key(request.namespace, chosen.capability.intent, asked, case.trace_id, request.step_index),
        seed=case.seed,
    )
    if len(steps) > 1 and is_probe(chosen):
        steps[1:] = [step for step in steps[1:] if step.target is not steps[0].target]
    return steps


def _callee(case: Case, entry: Entry) -> Callee:
    return Callee(entry.card, entry.capability, case.standings[entry.number].timeout_ms)


def opened_by(case: Case, steps: list[Attempt]) -> OpenDecision:
    """The decision as its outcomes will be joined to it."""
    assert case.selection is not None
    by_agent = {entry.agent: entry for entry in case.eligible.entries}
    called = [by_agent[step.target.namespace, step.target.agent_id, step.target.version] for step in steps]
    cards, timeouts_ms = [entry.card for entry in called], [case.standings[entry.number].timeout_ms for entry in called]
    intent = case.selection.chosen.capability.intent
    opened = _opened(case, intent, steps_of(steps, cards, timeouts_ms))
    opened.intents, opened.features = intents_of(case.reading), _features(case.selection)
    return opened


def opened_by_caller(case: Case) -> OpenDecision | None:
    """A decision beside which the caller keeps its own choice, of which its outcomes tell; None where it read nothing.

    How long the caller waits is not known: the slice is the agent's timeout.
    """
    choice, reading = case.request.caller_choice, case.reading
    if choice is None or reading is None or reading.intent is None:
        return None
    agent = case.shadow or chosen_by_caller(choice, case.request.namespace, case.snapshot.card_of)
    opened = _opened(case, reading.intent, (step_of_choice(agent, case.snapshot.card_of),))
    opened.is_shadow = True
    # nothing is learned of an agent that could not have been chosen here
    opened.intents = intents_of(reading) if case.shadow is not None else ()
    return opened


def _opened(case: Case, intent: str, steps: tuple[Step, ...]) -> OpenDecision:
    return OpenDecision(
        decision_id=case.decision_id,
        trace_id=case.trace_id,
        span_id=case.span_id,
        key=case.grants.caller,
        caller=case.asker.caller,
        team=case.request.tenant or "",
        namespace=case.request.namespace,
        intent=intent,
        utterance=case.request.utterance,
        payload=case.request.payload,
        session_id=case.request.caller.session_id,
        steps=steps,
    )


def shadow_of(case: Case, allowed: Sequence[Entry]) -> AgentKey | None:
    """The agent of the caller's own choice, if it is one of those that may serve the request; else None."""
    choice = case.request.caller_choice
    if choice is None:
        return None
    agent = chosen_by_caller(choice, case.request.namespace, case.snapshot.card_of)
    return agent if any(entry.agent == agent for entry in allowed) else None


def intents_of(reading: Reading | None) -> tuple[tuple[str, float], ...]:
    """(intent, confidence) of a reading, the one routed by first."""
    if reading is None or reading.intent is None:
        return ()
    others = [(each.intent, each.confidence) for each in reading.alternatives]
    return likely((reading.intent, reading.confidence), others, reading.source)


def asked_of(case: Case) -> Asked | None:
    """What success heads are to be asked of a case; None where there are none, or they could not tell.

    They look at what was said and at where that lies: without a vector nobody knows whether they have met such a
    request, and a caller that names the intent need not say anything that tells of it.
    """
    heads, reading, request = case.heads, case.reading, case.request
    if heads is None or reading is None or reading.vector is None or reading.source == "caller":
        return None
    rules = case.snapshot.policy
    if not rules.learning.heads or request.utterance is None or heads.encoder_id != case.snapshot.encoder_id:
        return None
    # a sentence of several wishes: the others have decisions of their own
    text = reading.text if reading.parts else request.utterance
    if rules.retention.utterances == "redacted":  # they were fitted on what is kept
        text = _AS_KEPT.text(text) if reading.parts else masked_as_found(text, case.found)
    return Asked(heads, text, reading.vector)


def _features(selection: Selection) -> tuple[float, float, float, float]:
    # as they were known: the draws of exploration say nothing of what was to be expected
    chosen = next(
        each for each in selection.contenders if (each.namespace, each.agent_id) == selection.chosen.agent[:2]
    )
    return (chosen.similarity, chosen.quality, chosen.health, chosen.load)


def fingerprint_of(case: Case) -> str:
    """Of the request, as it was read."""
    reading, request = case.reading, case.request
    assert reading is not None
    return fingerprint(request.namespace, reading.intent or "", request.utterance, request.payload)


def _backup_of(chosen: Entry, eligible: Sequence[Entry]) -> Entry | None:
    """The agent's backup, if it passed every check itself; one of its own namespace before another."""
    name = chosen.card.backup_agent_id
    if name is None:
        return None
    backups = [entry for entry in eligible if entry.card.agent_id == name and entry is not chosen]
    return min(backups, key=lambda entry: (entry.card.namespace != chosen.card.namespace, entry.number), default=None)

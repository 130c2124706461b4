"""Decider: from a case to its decision: read, permit, check, select, plan, or ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

from intent.intake import Intake
from intent.language import language_of
from intent.llm.escalate import Escalation
from intent.llm.escalated import Escalated, EscalationStatus
from intent.llm.prompt import IntentText
from intent.normalize import has_words, normalize
from models.decision import Reason, RouteDecision
from models.ports import Clock
from models.reading import Alternative, Certainty, Reading
from router import answers
from router.case import Case
from router.clarify import options, question
from router.extraction import find
from router.live.sessions import Sessions
from router.permit import labelled, permits, permitted
from router.pick import Picker
from router.promotion import Lanes
from router.snapshot import Entry


class Decider:
    """Decides cases; keeps nothing between them."""

    def __init__(
        self,
        intake: Intake,
        escalation: Escalation,
        picker: Picker,
        sessions: Sessions,
        clock: Clock,
        zone: tzinfo = UTC,
        lanes: Lanes | None = None,
    ) -> None:
        """Wire it up.

        Args:
            intake: reads all utterances but those that `lanes` gives to another.
            escalation: asks a language model.
            picker: picks agents.
            sessions: know who waits for an answer.
            clock: the time.
            zone: in which words such as `tomorrow` are understood.
            lanes: who reads an utterance; None leaves all of them to `intake`.
        """
        self._lanes = lanes or Lanes(intake)
        self._escalation = escalation
        self._picker = picker
        self._sessions = sessions
        self._clock = clock
        self._zone = zone

    async def decide(self, case: Case) -> RouteDecision:
        """The decision of a case whose envelope is in order.

        Raises:
            InvalidPayloadError: the payload fits no permitted capability's input schema.
            OverloadedError: too many utterances wait for the encoder.
        """
        self._lanes.assign(case)
        case.weights_version = self._picker.weights_version
        cascade = self._lanes.intake_of(case).cascade
        case.facts.heads = cascade.heads
        if not case.snapshot.scope(case.namespaces).has_routable:
            return self._fallback(case, Reason.NO_CAPABLE_AGENT)
        if case.remaining_ms <= 0 and case.request.intent is None:
            return self._fallback(case, Reason.DEADLINE)
        try:
            case.reading = await self._read(case)
        except TimeoutError:
            case.degraded.append("encoder: no time left")
            return self._fallback(case, Reason.DEADLINE)
        case.facts.heads_changed = cascade.generation != case.classifier_generation
        return await self.decide_read(case)

    async def decide_read(self, case: Case) -> RouteDecision:
        """The decision of a case that has been read."""
        reading = case.reading
        assert reading is not None
        case.facts.read = reading
        case.degraded.extend(reading.degraded)
        self._find_entities(case)
        self._hide_unreachable(case)
        if reading.certainty is not Certainty.SURE and self._answers(case):
            return await self._picker.pick(case)
        if reading.certainty is Certainty.OUT_OF_SCOPE:
            return self._fallback(case, Reason.OUT_OF_SCOPE)
        if reading.certainty is Certainty.AMBIGUOUS:
            return await self._settle(case)
        return await self._picker.pick(case)

    async def _read(self, case: Case) -> Reading:
        request, snapshot = case.request, case.snapshot
        if request.intent is not None:
            text = normalize(request.utterance) if request.utterance else ""
            return Reading(
                text=text,
                language=language_of(text),
                certainty=Certainty.SURE,
                intent=request.intent,
                confidence=1.0,
                source="caller",
                preference=snapshot.rules.preference(text, request.namespace) if text else None,
            )
        return await self._lanes.intake_of(case).read(
            request.utterance or "",
            snapshot.scope(case.namespaces),
            rules=snapshot.rules,
            namespace=request.namespace,
            thresholds=case.policy.confidence,
            wait_ms=case.remaining_ms,
        )

    def _hide_unreachable(self, case: Case) -> None:
        """Alternatives tell only of intents that this caller could get, and with `hide_denied` so does the intent."""
        reading = case.reading
        if reading is None:
            return
        if case.policy.hide_denied:
            # Unknown ones too: a denial that looked different from them would tell what is there.
            case.hides_intent = reading.intent is None or not self._reachable(case, reading.intent)
        if reading.alternatives:
            kept = tuple(other for other in reading.alternatives if self._reachable(case, other.intent))
            if len(kept) != len(reading.alternatives):
                case.reading = replace(reading, alternatives=kept)

    def _reachable(self, case: Case, intent: str) -> bool:
        entries = case.snapshot.routable(case.namespaces, intent)
        return any(permits(entry, case.request, case.grants) for entry in labelled(entries, case.request))

    def _answers(self, case: Case) -> bool:
        """Whether this is a session's bare answer: unclear by itself, it goes to the agent that asked for it."""
        session, reading = case.session, case.reading
        assert reading is not None
        if session is None or not has_words(reading.text):
            return False
        waiting = self._sessions.waiting(session, self._clock.monotonic_ms())
        if waiting is None or not self._reachable(case, waiting.intent):
            return False
        case.facts.waiting = waiting
        case.sticky_agent = waiting.agent[1]
        case.hides_intent = False
        # the conversation tells the intent, as surely as a caller who names it
        case.reading = replace(
            reading,
            intent=waiting.intent,
            confidence=1.0,
            source="caller",
            certainty=Certainty.SURE,
            alternatives=(),
            parts=(),
        )
        return True

    async def _settle(self, case: Case) -> RouteDecision:
        """Several intents may be meant: ask a language model, if there is one, else the caller."""
        reading = case.reading
        assert reading is not None
        local = reading
        found = options(case, local)
        if not found and reading.vector is not None:
            # All that came near is out of reach: search again among what is not.
            allowed = permitted(
                labelled(case.snapshot.routable_in(case.namespaces), case.request), case.request, case.grants
            )
            local = await self._lanes.intake_of(case).reread(reading, case.snapshot.scope_of(allowed))
            found = options(case, local)
        if not found:
            return answers.deny(case, self.elapsed_ms(case))
        told = await self._ask_model(case, reading, found)
        if told.intent is not None:
            self._take(case, local, told.intent)
            return await self._picker.pick(case)
        if told.status is EscalationStatus.NONE:
            return self._fallback(case, Reason.OUT_OF_SCOPE)
        asked = [(entry.capability.intent, entry.capability.description) for entry in found]
        return answers.clarify(case, Reason.AMBIGUOUS, question(found), asked, self.elapsed_ms(case))

    def _take(self, case: Case, local: Reading, intent: str) -> None:
        """The model chose one of the options of `local`; the others that this caller could get stay as alternatives."""
        assert case.reading is not None
        assert local.intent is not None
        meant = (Alternative(local.intent, local.confidence), *local.alternatives)
        case.reading = replace(
            case.reading,
            intent=intent,
            confidence=next(each.confidence for each in meant if each.intent == intent),
            source="llm",
            certainty=Certainty.SURE,
            alternatives=tuple(each for each in meant if each.intent != intent and self._reachable(case, each.intent)),
        )
        case.hides_intent = False

    async def _ask_model(self, case: Case, reading: Reading, found: Sequence[Entry]) -> Escalated:
        if not case.policy.llm:
            return Escalated(None, EscalationStatus.DISABLED)
        case.checked_ms = self._clock.now_ms()
        self._escalation.limits = case.snapshot.policy.llm
        told = await self._escalation.ask(
            reading.text,
            [_text_of(entry) for entry in found],
            remaining_ms=case.remaining_ms,
            budget_tokens=case.request.budget_tokens,
        )
        case.escalated = told
        if not told.is_answer and told.status is not EscalationStatus.DISABLED:
            case.degraded.append(f"llm: {told.status.value}")
        return told

    def _find_entities(self, case: Case) -> None:
        utterance, reading = case.request.utterance, case.reading
        if utterance is not None and reading is not None:
            case.found = find(utterance, case.now_ms, self._zone, reading.language)

    def _fallback(self, case: Case, reason: Reason) -> RouteDecision:
        return answers.fallback(case, reason, self.elapsed_ms(case))

    def elapsed_ms(self, case: Case) -> float:
        """Since the arrival of the request."""
        return self._clock.monotonic_ms() - case.started_ms


def _text_of(entry: Entry) -> IntentText:
    capability = entry.capability
    return IntentText(capability.intent, capability.description, tuple(capability.examples[:5]))

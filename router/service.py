"""RouteService: the way of a request, from the envelope to the recorded decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from intent.intake import Intake
from intent.normalize import normalize, script_language
from models.deadline import Deadline
from models.decision import Attempt, Reason, RouteDecision
from models.ports import Clock
from models.reading import Certainty, Reading
from models.request import RouteRequest
from router import answers
from router.case import Case
from router.clarify import options, question
from router.eligibility import check
from router.goals import Goals
from router.permit import Grants, labelled, namespaces_of, permitted, permitted_of
from router.planner import Callee, plan
from router.recorder import Recorder
from router.registry import Registry
from router.scorer import Blend
from router.selection import Selection, preference_of, select
from router.snapshot import Entry


@dataclass(frozen=True, slots=True)
class Ids:
    """Where ids and seeds come from; passed in, so that tests own them.

    Attributes:
        new: a fresh id, 32 characters.
        seed: a fresh seed, 0 <= seed < 2^63.
    """

    new: Callable[[], str]
    seed: Callable[[], int]


class RouteService:
    """Answers who should get a request, or why nobody should."""

    def __init__(
        self, registry: Registry, intake: Intake, goals: Goals, recorder: Recorder, clock: Clock, ids: Ids
    ) -> None:
        self._registry = registry
        self._intake = intake
        self._goals = goals
        self._recorder = recorder
        self._clock = clock
        self._ids = ids

    async def route(
        self, request: RouteRequest, grants: Grants, *, explain: bool = False, deadline_ms: float | None = None
    ) -> tuple[RouteDecision, bytes]:
        """Decide, and hand the decision to the journal.

        Args:
            request: the envelope.
            grants: what its presenter may do.
            explain: list all candidates.
            deadline_ms: an instant (epoch) that came beside the envelope; the earlier one holds.

        Returns:
            The decision and its JSON text.

        Raises:
            ForbiddenError: the key does not cover the request's namespace or its caller's id.
            InvalidPayloadError: the payload fits no permitted capability's input schema.
            OverloadedError: the encoder's or the journal's queue is full.
        """
        grants.check(request)
        await self._recorder.room()
        case = self._case(request, grants, explain, deadline_ms)
        decision = await self._decide(case)
        return decision, self._recorder.record(case, decision)

    def _case(self, request: RouteRequest, grants: Grants, explain: bool, deadline_ms: float | None) -> Case:
        snapshot = self._registry.snapshot
        policy = snapshot.policy.of(request.namespace)
        now_ms = self._clock.now_ms()
        given = (request.deadline_ms, deadline_ms)
        budget = request.response_timeout_ms
        if budget is None and given == (None, None):
            budget = policy.default_budget_ms
        return Case(
            request=request,
            grants=grants,
            snapshot=snapshot,
            policy=policy,
            namespaces=namespaces_of(request, snapshot.policy, grants),
            deadline=Deadline.earliest(
                now_ms, budgets_ms=(budget,), instants_ms=given, reserve_ms=policy.deadline_reserve_ms
            ),
            decision_id=self._ids.new(),
            trace_id=request.trace_id or self._ids.new(),
            span_id=self._ids.new()[:16],
            started_ms=self._clock.monotonic_ms(),
            now_ms=now_ms,
            checked_ms=now_ms,
            seed=self._ids.seed(),
            explain=explain,
            classifier_generation=self._intake.cascade.generation,
        )

    async def _decide(self, case: Case) -> RouteDecision:
        if await self._goal_changed(case):
            return answers.clarify(
                case,
                Reason.GOAL_MISMATCH,
                "The goal of this task has changed: is it still the same task?",
                (),
                self._elapsed_ms(case),
            )
        scope = case.snapshot.scope(case.namespaces)
        if not scope.has_routable:
            return self._fallback(case, Reason.NO_CAPABLE_AGENT)
        if case.remaining_ms <= 0 and case.request.intent is None:
            return self._fallback(case, Reason.DEADLINE)
        try:
            case.reading = await self._read(case)
        except TimeoutError:
            case.degraded.append("encoder: no time left")
            return self._fallback(case, Reason.DEADLINE)
        case.degraded.extend(case.reading.degraded)
        self._hide_unreachable(case)
        if case.reading.certainty is Certainty.OUT_OF_SCOPE:
            return self._fallback(case, Reason.OUT_OF_SCOPE)
        if case.reading.certainty is Certainty.AMBIGUOUS:
            return await self._ask(case)
        return self._pick(case)

    async def _goal_changed(self, case: Case) -> bool:
        request = case.request
        if request.task_id is None or request.global_goal_hash is None:
            return False
        first = await self._goals.claim(
            request.namespace, request.task_id, request.global_goal_hash, keep=not request.dry_run
        )
        if first != request.global_goal_hash:
            return True
        if not request.dry_run:
            self._recorder.record_goal(request.namespace, request.task_id, first, case.now_ms)
        return False

    async def _read(self, case: Case) -> Reading:
        request, snapshot = case.request, case.snapshot
        if request.intent is not None:
            text = normalize(request.utterance or "")
            return Reading(
                text=text,
                language=script_language(text),
                certainty=Certainty.SURE,
                intent=request.intent,
                confidence=1.0,
                source="caller",
                preference=snapshot.rules.preference(text, request.namespace) if text else None,
            )
        return await self._intake.read(
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

    def _reachable(self, case: Case, intent: str) -> list[Entry]:
        return permitted_of(case.snapshot, case.namespaces, intent, case.request, case.grants)

    def _pick(self, case: Case) -> RouteDecision:
        reading = case.reading
        assert reading is not None
        assert reading.intent is not None
        fitting = labelled(case.snapshot.routable(case.namespaces, reading.intent), case.request)
        if not fitting:
            return self._fallback(case, Reason.NO_CAPABLE_AGENT)
        allowed = permitted(fitting, case.request, case.grants)
        if not allowed:
            return answers.deny(case, self._elapsed_ms(case))
        case.checked_ms = self._clock.now_ms()
        case.eligible = check(allowed, case.request, case.remaining_ms)
        if not case.eligible.entries:
            return self._fallback(case, Reason.DEADLINE if case.late else Reason.NO_CAPABLE_AGENT)
        blend = Blend.of(case.policy, preference_of(case.request, reading.preference, case.policy))
        case.selection = select(case.eligible.entries, reading.confidence, case.request, blend, case.seed)
        self._note_wish(case)
        return answers.invoke(case, self._plan(case, case.selection), self._elapsed_ms(case))

    async def _ask(self, case: Case) -> RouteDecision:
        """Several intents may be meant: ask about those within the caller's reach, deny where there is none."""
        reading = case.reading
        assert reading is not None
        found = options(case, reading)
        if not found and reading.vector is not None:
            # All that came near is out of reach: search again among what is not.
            allowed = permitted(
                labelled(case.snapshot.routable_in(case.namespaces), case.request), case.request, case.grants
            )
            found = options(case, await self._intake.reread(reading, case.snapshot.scope_of(allowed)))
        if not found:
            return answers.deny(case, self._elapsed_ms(case))
        asked = [(entry.capability.intent, entry.capability.description) for entry in found]
        return answers.clarify(case, Reason.AMBIGUOUS, question(found), asked, self._elapsed_ms(case))

    def _plan(self, case: Case, selection: Selection) -> list[Attempt]:
        chosen = selection.chosen
        backup = _backup_of(chosen, case.eligible.entries)
        return plan(
            _callee(chosen),
            backup=None if backup is None else _callee(backup),
            remaining_ms=case.remaining_ms,
            decision_id=case.decision_id,
            seed=case.seed,
        )

    def _note_wish(self, case: Case) -> None:
        if case.request.target_agent is not None and case.selection is not None and not case.selection.wished:
            case.degraded.append("target_agent: not eligible, another was chosen")

    def _fallback(self, case: Case, reason: Reason) -> RouteDecision:
        return answers.fallback(case, reason, self._elapsed_ms(case))

    def _elapsed_ms(self, case: Case) -> float:
        return self._clock.monotonic_ms() - case.started_ms


def _backup_of(chosen: Entry, eligible: Sequence[Entry]) -> Entry | None:
    """The agent's backup, if it passed every check itself; one of its own namespace before another."""
    name = chosen.card.backup_agent_id
    if name is None:
        return None
    backups = [entry for entry in eligible if entry.card.agent_id == name and entry is not chosen]
    return min(backups, key=lambda entry: (entry.card.namespace != chosen.card.namespace, entry.number), default=None)


def _callee(entry: Entry) -> Callee:
    return Callee(entry.card, entry.capability, entry.card.timeout_ms)

"""Picker: from a request whose intent is known to the agent that gets it, or to what it gets instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil

from models.candidate import NOT_NOW, Stage
from models.card import FallbackForm
from models.decision import Attempt, Lease, QueueTicket, Reason, RouteDecision
from models.errors import QuotaExceededError
from models.ports import Clock
from router import answers
from router.case import Case
from router.case_plan import asked_of, fingerprint_of, intents_of, opened_by, plan_of, shadow_of
from router.degrade_queue import DegradeQueue
from router.eligibility import check
from router.learning import Learning
from router.live.admission import Admission
from router.live.live import Live
from router.live.open_decisions import teller_of
from router.permit import labelled, permitted
from router.selection import preference_of, select
from router.snapshot import Entry
from router.standing import Standing
from router.wire import dumps

_LAST_RESORT = frozenset({Stage.BREAKER, Stage.DEPENDENCY, Stage.EJECTED, Stage.DOWN})
"""Agents taken out by these may still answer; those that are full or over a quota may not be called at all."""

_REASONS = (
    (Stage.CAPACITY, Reason.AT_CAPACITY),
    (Stage.QUOTA, Reason.QUOTA),
    (Stage.BREAKER, Reason.BREAKER_OPEN),
    (Stage.DEPENDENCY, Reason.BREAKER_OPEN),
    (Stage.EJECTED, Reason.DEGRADED),
    (Stage.DOWN, Reason.DEGRADED),
    (Stage.DEADLINE, Reason.DEADLINE),
)
"""Why nobody takes it, by the first of these that took somebody out."""

_WAITS = frozenset({Reason.AT_CAPACITY, Reason.QUOTA, Reason.BREAKER_OPEN, Reason.DEGRADED})
"""What time may heal, so that a ticket is worth having."""


class Picker:
    """Picks agents.

    From the look at live state to the lease there is no pause: whatever arrives at the same instant, nothing is given
    out twice.
    """

    def __init__(
        self, admission: Admission, live: Live, learning: Learning, queue: DegradeQueue | None, clock: Clock
    ) -> None:
        self._admission = admission
        self._live = live
        self._learning = learning
        self._queue = queue
        self._clock = clock

    @property
    def weights_version(self) -> int:
        """Of what was learned so far."""
        return self._learning.version

    async def pick(self, case: Case) -> RouteDecision:
        """The decision of a case whose intent is known.

        Raises:
            InvalidPayloadError: the payload fits no permitted capability's input schema.
            QuotaExceededError: the caller is over a quota that answers so.
        """
        reading = case.reading
        assert reading is not None
        assert reading.intent is not None
        fitting = labelled(case.snapshot.routable(case.namespaces, reading.intent), case.request)
        if not fitting:
            return self._fallback(case, Reason.NO_CAPABLE_AGENT)
        allowed = permitted(fitting, case.request, case.grants)
        if case.request.caller_choice is not None:
            case.shadow = shadow_of(case, allowed)
            if case.shadow is None:
                case.degraded.append("caller_choice: not among those that may serve this, nothing is learned of it")
        if not allowed:
            return answers.deny(case, self._elapsed_ms(case))
        case.checked_ms = self._clock.now_ms()
        case.facts.figures = figures = self._admission.figures(allowed, case.snapshot.policy)
        case.eligible = check(allowed, case.request, case.remaining_ms, lambda entry: figures[entry.number].timeout_ms)
        if not case.eligible.entries:
            return self._fallback(case, Reason.DEADLINE if case.late else Reason.NO_CAPABLE_AGENT)
        human = self._human(case)
        if human is not None:
            return answers.hand_over(case, human, self._elapsed_ms(case))
        reason = Reason.POISON_REQUEST if self._is_poison(case) else self._choose(case, figures)
        if reason is not None:
            return await self._nobody(case, reason)
        steps = plan_of(case, partial(self._is_probe, case))
        if not case.request.dry_run and case.request.caller_choice is None:
            self._take(case, steps)
        return answers.invoke(case, steps, self._elapsed_ms(case))

    def _choose(self, case: Case, figures: Mapping[int, Standing]) -> Reason | None:
        """Select among those that can take it now; the reason where nobody can."""
        case.over = self._admission.over_quota(case.asker, case.snapshot.policy)
        if case.over is not None:
            case.wait_ms = case.over.retry_after_ms
            return Reason.QUOTA
        looked = self._admission.look(case.eligible.entries, case.asker, case.snapshot.policy, figures)
        found = list(zip(case.eligible.entries, looked, strict=True))
        able = [(entry, standing) for entry, standing in found if standing.stage is None]
        if not able:
            able = _last_resort(case, found)
        if len(able) < len(found):
            _leave_out(case, found, {entry.number for entry, _ in able})
        if not able:
            return self._reason(case)
        able = self._within_share(case, able)
        case.eligible.entries = [entry for entry, _ in able]
        case.standings = {entry.number: standing for entry, standing in able}
        self._select(case)
        return None

    def _reason(self, case: Case) -> Reason:
        reason = _why(case)
        if reason is Reason.QUOTA:
            entries = [entry for entry, stage in case.eligible.excluded if stage is Stage.QUOTA]
            case.over = self._admission.over_quota_of(entries, case.asker, case.snapshot.policy)
        return reason

    def _human(self, case: Case) -> FallbackForm | None:
        """How people take over a session that agents have failed too often; None where it is not so, or nobody says."""
        session = case.session
        if session is None:
            return None
        n_failures = self._live.sessions.n_failures(session, self._clock.monotonic_ms())
        if n_failures < case.policy.session.human_after:
            return None
        case.facts.n_failures = n_failures
        forms = (entry.card.fallback.human for entry in case.eligible.entries)
        return next((form for form in forms if form is not None), None)

    def _is_poison(self, case: Case) -> bool:
        # most of the time there is none, and no fingerprint is needed
        if len(self._live.poison) > 0:
            case.facts.is_poison = self._live.poison.is_poison(fingerprint_of(case), self._clock.monotonic_ms())
        return case.facts.is_poison

    def _is_probe(self, case: Case, entry: Entry) -> bool:
        is_probe = not case.is_last_resort and self._admission.would_probe(entry, case.asker)
        if is_probe:
            case.facts.probes.append(entry.agent)
        return is_probe

    def _take(self, case: Case, steps: list[Attempt]) -> None:
        """Take the place, the quota and the probe; from now on an outcome is expected."""
        assert case.selection is not None
        keep_ms = sum(step.timeout_ms + step.backoff_ms for step in steps) + case.policy.lease.grace_ms
        opened, chosen, policy = opened_by(case, steps), case.selection.chosen, case.snapshot.policy
        teller = opened.teller if case.asker.caller in self._live.posting else None
        self._learning.decided(chosen, teller, policy, self._clock.monotonic_ms())
        if self._admission.take(opened, chosen, case.asker, policy, keep_ms):
            case.lease = Lease.of(id=case.decision_id, expires_at=int(case.checked_ms + keep_ms))

    def _select(self, case: Case) -> None:
        reading, request = case.reading, case.request
        assert reading is not None
        assert reading.intent is not None
        advice = self._learning.advise(
            case.eligible.entries,
            intents_of(reading),
            case.snapshot.policy,
            case.policy,
            preference_of(request, reading.preference, case.policy),
            case.snapshot.risk(case.namespaces, reading.intent, case.policy),
            teller_of(case.grants.caller, case.asker.caller),
            asked_of(case),
        )
        if advice.learned is not None:
            case.weights_version = advice.learned.version
        case.facts.costs_usd = advice.costs_usd
        selection = select(
            case.eligible.entries,
            reading.confidence,
            request,
            advice.blend,
            case.seed,
            standings=case.standings,
            wish=case.sticky_agent or request.target_agent,
            learned=advice.learned,
            costs_usd=advice.costs_usd,
        )
        if case.is_last_resort:
            selection = selection._replace(reason=Reason.DEGRADED)
        elif selection.wished and case.sticky_agent is not None:
            selection = selection._replace(reason=Reason.STICKY_SESSION)
        elif request.target_agent is not None and not selection.wished:
            case.degraded.append("target_agent: not eligible, another was chosen")
        case.selection = selection

    def _within_share(self, case: Case, able: list[tuple[Entry, Standing]]) -> list[tuple[Entry, Standing]]:
        """Without those whose share has risen as far as it may; where others fall away, the rest may rise to any."""
        max_rise = case.snapshot.policy.learning.max_rise
        if max_rise is None or len(able) < 2 or any(stage in NOT_NOW for _, stage in case.eligible.excluded):
            return able
        allowed = self._learning.within_share([entry for entry, _ in able], max_rise, self._clock.monotonic_ms())
        # an answer belongs to who asked
        kept = [each for each in able if each[0].number in allowed or each[0].agent[1] == case.sticky_agent]
        if len(kept) < len(able):
            case.eligible.excluded += [(each[0], Stage.SHARE) for each in able if each not in kept]
        return kept

    async def _nobody(self, case: Case, reason: Reason) -> RouteDecision:
        """A ticket, a degraded answer, or a refusal, as the policy says."""
        over = case.over
        if over is not None and over.quota.over == "reject" and case.may_refuse:
            wait_ms = ceil(over.retry_after_ms)
            raise QuotaExceededError(f"the quota of {case.asker.caller!r} is used up: {over.told}", wait_ms)
        if _asks_for_ticket(case) and reason in _WAITS:
            ticket = await self._ticket(case)
            if ticket is not None or case.request.dry_run or case.request.caller_choice is not None:
                return answers.queued(case, ticket, self._elapsed_ms(case))
            case.degraded.append("queue: full")
        return self._fallback(case, reason)

    async def _ticket(self, case: Case) -> QueueTicket | None:
        request, reading = case.request, case.reading
        if self._queue is None or request.dry_run or request.caller_choice is not None:
            return None
        assert reading is not None
        return await self._queue.put(
            request_json=dumps(request).decode(),
            namespace=request.namespace,
            intent=reading.intent or "",
            decision_id=case.decision_id,
            trace_id=case.trace_id,
            caller=case.grants.caller,
            expires_at=case.given_ms,
            policy=case.policy.queue,
            now_ms=int(case.now_ms),
        )

    def _fallback(self, case: Case, reason: Reason) -> RouteDecision:
        return answers.fallback(case, reason, self._elapsed_ms(case))

    def _elapsed_ms(self, case: Case) -> float:
        return self._clock.monotonic_ms() - case.started_ms


def _asks_for_ticket(case: Case) -> bool:
    """Of a quota of the caller alone `over` decides; where agents cannot take it, `unavailable` may say so too."""
    over = case.over
    if over is not None and over.quota.over == "queue":
        return True
    return case.policy.unavailable == "queue" and (over is None or over.quota.is_of_agent)


def _last_resort(case: Case, found: Sequence[tuple[Entry, Standing]]) -> list[tuple[Entry, Standing]]:
    """Where the policy allows it, those that may still answer, although nobody should be sent there."""
    if case.policy.unavailable != "last_resort":
        return []
    able = [(entry, standing) for entry, standing in found if standing.stage in _LAST_RESORT]
    if able:
        case.is_last_resort = True
        case.degraded.append("last_resort: no agent is able, this one may still answer")
    return able


def _leave_out(case: Case, found: Sequence[tuple[Entry, Standing]], kept: set[int]) -> None:
    waits = []
    for entry, standing in found:
        if entry.number not in kept and standing.stage is not None:
            case.eligible.excluded.append((entry, standing.stage))
            if standing.retry_after_ms is not None:
                waits.append(standing.retry_after_ms)
    if waits and not kept:
        case.wait_ms = min(waits)


def _why(case: Case) -> Reason:
    stages = {stage for _, stage in case.eligible.excluded}
    return next((reason for stage, reason in _REASONS if stage in stages), Reason.NO_CAPABLE_AGENT)

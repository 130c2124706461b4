"""Effects: what an outcome does to live state, and what its absence does."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

from feedback.attribution import Charge, Party
from models.card import AgentKey
from models.outcome import Outcome, OutcomeStatus
from router.live.breaker_state import DependencyKey, TargetKey
from router.live.fingerprint import fingerprint
from router.live.keys import CallId
from router.live.leases import Lease
from router.live.live import Live
from router.live.open_decisions import OpenDecision, Step, Told
from router.live.sessions import SessionKey
from router.snapshot import Snapshot

_USED = frozenset({OutcomeStatus.SUCCEEDED, OutcomeStatus.LOW_CONFIDENCE, OutcomeStatus.SCHEMA_MISMATCH})
"""After these the reserved quota is spent; after all others it is given back, unless tokens were used."""

_SERVED = frozenset({OutcomeStatus.SUCCEEDED, OutcomeStatus.LOW_CONFIDENCE})
MOST_BLAMED = 3
"""Where so many requests in a row were blamed for what went wrong at an agent, it is the agent that is ill: in an
outage of all that serve an intent every request fails everywhere."""

_MAX_AGENTS = 10_000
_ANSWERED_BADLY = frozenset({OutcomeStatus.FAILED, OutcomeStatus.SCHEMA_MISMATCH})


class Effects:
    """Applies outcomes; each can be taken back exactly.

    Those of calls that the router did not plan (`OpenDecision.is_shadow`) touch nothing here: that a call was made at
    all is its caller's word alone.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._n_blamed: OrderedDict[AgentKey, int] = OrderedDict()

    def fails(self, opened: OpenDecision, outcome: Outcome, agent: AgentKey, now_ms: float, snapshot: Snapshot) -> bool:
        """Note a failure; whether the request itself is the cause, as it fails everywhere.

        Then the agents that were charged for it before are charged no longer. Only agents that worked on the request
        say something of it: in an outage many are late or out of reach with any request.
        """
        if opened.is_shadow or not _may_be_request(outcome, opened.steps[outcome.attempt - 1]) or self._is_ill(agent):
            return False
        call = (opened.decision_id, outcome.attempt)
        of_request = snapshot.policy.of(opened.namespace).poison
        verdict = self._live.poison.failed(_fingerprint(opened), agent, call, now_ms, of_request)
        blamed_at = {agent} if verdict.take_back else set()
        for decision_id, attempt in verdict.take_back:
            earlier = self._live.opened.get(decision_id)
            told = None if earlier is None else earlier.told.get(attempt)
            if earlier is not None and told is not None and told.charged == Party.AGENT:
                self._uncharge(earlier, attempt, now_ms)
                self._recharge(earlier, attempt, Party.REQUEST)
                blamed_at.add(earlier.steps[attempt - 1].agent)
        for each in blamed_at:
            self._n_blamed[each] = self._n_blamed.pop(each, 0) + 1
            if len(self._n_blamed) > _MAX_AGENTS:
                self._n_blamed.popitem(last=False)
        return verdict.is_poison

    def record(
        self, opened: OpenDecision, outcome: Outcome, charged: Charge, now_ms: float, snapshot: Snapshot
    ) -> None:
        """Apply an outcome to breakers, health, ejection, quotas and the session."""
        if opened.is_shadow:
            return
        self._live.posting.add(opened.caller)
        self._charge(opened, outcome, charged, now_ms, snapshot)
        self._settle_quota(opened, outcome, now_ms)
        self._note_session(opened, outcome, charged, now_ms, snapshot)
        if outcome.status not in _SERVED:
            return
        self._n_blamed.pop(opened.steps[outcome.attempt - 1].agent, None)
        if len(self._live.poison):
            self._charge_again(self._live.poison.succeeded(_fingerprint(opened)), now_ms, snapshot)

    def take_back(self, opened: OpenDecision, attempt: int, now_ms: float, snapshot: Snapshot) -> None:
        """An outcome is about to be replaced: take it out of all windows."""
        if opened.is_shadow:
            return
        self._uncharge(opened, attempt, now_ms)
        self._charge_again(self._live.poison.take_back((opened.decision_id, attempt)), now_ms, snapshot)

    def end(self, opened: OpenDecision, outcome: Outcome, now_ms: float, snapshot: Snapshot) -> bool:
        """Give the place back, or move it along the plan; False where none was held any more."""
        if opened.is_shadow:
            return True
        following = opened.follows(outcome.attempt, outcome.status)
        if following is None:
            return self._live.leases.give_back(opened.decision_id)
        left = opened.steps[opened.steps.index(following) :]
        keep_ms = (
            sum(step.slice_ms + step.backoff_ms for step in left) + snapshot.policy.of(opened.namespace).lease.grace_ms
        )
        return self._live.leases.move(opened.decision_id, following.agent, now_ms + keep_ms)

    def expire(self, now_ms: float) -> list[tuple[Lease, OpenDecision | None]]:
        """End the leases whose time is over: their outcome is missing, which is no failure."""
        ended = []
        for lease in self._live.leases.expire(now_ms):
            opened = self._live.opened.get(lease.lease_id)
            self._live.quotas.refund(lease.lease_id)
            if opened is not None:
                for attempt, step in enumerate(opened.steps, start=1):
                    self._give_up(opened, attempt, step)
            ended.append((lease, opened))
        return ended

    def _is_ill(self, agent: AgentKey) -> bool:
        return self._n_blamed.get(agent, 0) >= MOST_BLAMED

    def _charge(
        self, opened: OpenDecision, outcome: Outcome, charged: Charge, now_ms: float, snapshot: Snapshot
    ) -> None:
        step = opened.steps[outcome.attempt - 1]
        call, is_named = (opened.decision_id, outcome.attempt), charged.party is Party.DEPENDENCY
        charged_to = step.depends_on
        if charged.party is Party.AGENT:
            self._charge_agent(opened, outcome, charged.failed, now_ms, snapshot)
        else:
            named = outcome.error.dependency if outcome.error is not None else None
            charged_to = (named,) if is_named and named is not None else ()
            self._give_up(opened, outcome.attempt, step, charged_to)
        for dependency in charged_to:
            key = DependencyKey(dependency, step.agent[0])
            policy = snapshot.policy.of(step.agent[0]).dependency
            if not is_named and not self._is_heard(
                key, opened, call, charged.failed, now_ms, policy.window_ms, snapshot
            ):
                continue  # a probe's place is free again after its interval
            self._live.changes += self._live.breakers.record_dependency(
                key,
                call,
                charged.failed,
                step.agent,
                snapshot.n_dependents.get(key, 1),
                now_ms,
                policy,
                named=is_named,
                began_ms=opened.began_ms,
            )

    def _charge_agent(
        self, opened: OpenDecision, outcome: Outcome, failed: bool, now_ms: float, snapshot: Snapshot
    ) -> None:
        live, agent = self._live, opened.steps[outcome.attempt - 1].agent
        call, holds = (opened.decision_id, outcome.attempt), snapshot.policy.of(agent[0])
        wait_ms = outcome.error.retry_after_ms if outcome.error is not None else None
        target, group = TargetKey(opened.caller, agent), (agent[0], opened.intent)
        began_ms, latency_ms = opened.began_ms, outcome.latency_ms
        live.changes += live.breakers.record(target, call, failed, now_ms, holds.breaker, wait_ms, began_ms=began_ms)
        if self._is_heard(agent, opened, call, failed, now_ms, holds.health.window_ms, snapshot):
            live.health.outcome(agent, call, failed=failed, latency_ms=latency_ms, now_ms=now_ms)
        n_peers = len(snapshot.by_intent.get(group, ()))
        ejected = live.outliers.record(
            group,
            agent,
            call,
            failed,
            latency_ms,
            n_peers,
            now_ms,
            holds.ejection,
            began_ms=began_ms,
            teller=opened.teller,
            share=snapshot.policy.learning.caller_share,
        )
        if ejected is not None:
            live.changes.append(ejected)

    def _is_heard(
        self,
        subject: AgentKey | DependencyKey,
        opened: OpenDecision,
        call: CallId,
        failed: bool,
        now_ms: float,
        window_ms: float,
        snapshot: Snapshot,
    ) -> bool:
        """Whether an outcome counts in what all callers share."""
        share = snapshot.policy.learning.caller_share
        return self._live.witnesses.counts(subject, opened.teller, call, failed, now_ms, window_ms, share)

    def _uncharge(self, opened: OpenDecision, attempt: int, now_ms: float) -> None:
        step, call, live = opened.steps[attempt - 1], (opened.decision_id, attempt), self._live
        live.breakers.take_back(TargetKey(opened.caller, step.agent), call, now_ms)
        live.health.take_back(step.agent, call, now_ms)
        live.witnesses.take_back(step.agent, call)
        live.outliers.take_back((step.agent[0], opened.intent), step.agent, call, now_ms)
        for dependency in step.depends_on:
            key = DependencyKey(dependency, step.agent[0])
            live.breakers.take_back(key, call, now_ms)
            live.witnesses.take_back(key, call)

    def _charge_again(self, calls: tuple[CallId, ...], now_ms: float, snapshot: Snapshot) -> None:
        """Failures that a request was blamed for, and that are the agents' after all."""
        for decision_id, attempt in calls:
            opened = self._live.opened.get(decision_id)
            told = None if opened is None else opened.told.get(attempt)
            if opened is not None and told is not None and told.charged == Party.REQUEST:
                self._charge(opened, told.outcome, Charge(Party.AGENT, True), now_ms, snapshot)
                self._recharge(opened, attempt, Party.AGENT)

    def _recharge(self, opened: OpenDecision, attempt: int, party: Party) -> None:
        """Another one is to blame for an earlier outcome than it seemed."""
        opened.told[attempt] = opened.told[attempt]._replace(charged=party.value)
        self._live.recharged.append((opened, attempt))

    def _give_up(self, opened: OpenDecision, attempt: int, step: Step, judged: Collection[str] = ()) -> None:
        """The call says nothing of the agent, nor of its dependencies but those that are `judged` by it."""
        call = (opened.decision_id, attempt)
        self._live.breakers.give_up(TargetKey(opened.caller, step.agent), call)
        for dependency in step.depends_on:
            if dependency not in judged:
                self._live.breakers.give_up(DependencyKey(dependency, step.agent[0]), call)

    def _settle_quota(self, opened: OpenDecision, outcome: Outcome, now_ms: float) -> None:
        quotas, told = self._live.quotas, {**opened.told, outcome.attempt: Told(outcome, "", 0)}
        tokens = sum(each.outcome.tokens or 0 for each in told.values())
        is_used = tokens > 0 or any(each.outcome.status in _USED for each in told.values())
        if is_used:
            if not quotas.settle(opened.decision_id, tokens, now_ms):
                quotas.amend(opened.decision_id, tokens, now_ms)
        elif opened.follows(outcome.attempt, outcome.status) is None:
            quotas.refund(opened.decision_id)

    def _note_session(
        self, opened: OpenDecision, outcome: Outcome, charged: Charge, now_ms: float, snapshot: Snapshot
    ) -> None:
        if opened.session_id is None:
            return
        sessions, ttl_ms = self._live.sessions, snapshot.policy.of(opened.namespace).session.ttl_ms
        session = SessionKey(opened.caller, opened.namespace, opened.session_id)
        agent = opened.steps[outcome.attempt - 1].agent
        waiting = sessions.waiting(session, now_ms)
        if outcome.awaits_input:
            sessions.awaits(session, agent, opened.intent, now_ms, ttl_ms)
        elif waiting is not None and waiting.agent == agent:
            sessions.done(session)
        if charged.party is Party.AGENT and charged.failed:
            sessions.failed_again(session, now_ms, ttl_ms)
        elif outcome.status in _SERVED:
            sessions.succeeded(session)


def _fingerprint(opened: OpenDecision) -> str:
    return fingerprint(opened.namespace, opened.intent, opened.utterance, opened.payload)


def _may_be_request(outcome: Outcome, step: Step) -> bool:
    error = outcome.error
    is_else = error is not None and (bool(error.retry_after_ms) or error.dependency in step.depends_on)
    return outcome.status in _ANSWERED_BADLY and not is_else

"""Admission: what each agent can take now, and the taking of places, quotas and probes for the one that was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from models.candidate import Stage
from models.live_policy import EjectionPolicy, Quota
from models.policy import NamespacePolicy, Policy
from models.ports import Clock
from router.live.asker import Asker
from router.live.breaker_state import BreakerState, BreakerView, DependencyKey, TargetKey
from router.live.figured import Figured
from router.live.live import Live
from router.live.open_decisions import OpenDecision
from router.live.quota_rules import QuotaRules
from router.live.quotas import Claim, Refused
from router.snapshot import Entry
from router.standing import OverQuota, Standing

_TakenOut: TypeAlias = tuple[Stage, float | None]
"""What takes an agent out, and after how many ms that may be over."""


class Admission:
    """Looks, and takes. A look and a taking without a pause between them go together, whatever else arrives."""

    def __init__(self, live: Live, clock: Clock) -> None:
        self._live = live
        self._clock = clock
        self._policy: Policy | None = None
        self._rules = QuotaRules(())
        self._figured = Figured(live)

    def figures(self, entries: Sequence[Entry], policy: Policy) -> dict[int, Standing]:
        """Health, load, latency and suggested timeout (SPEC R5) of each entry, by its number."""
        health = {namespace: policy.of(namespace).health for namespace in {entry.agent[0] for entry in entries}}
        return self._figured.all(entries, health, self._clock.monotonic_ms())

    def over_quota(self, asker: Asker, policy: Policy) -> OverQuota | None:
        """The caller's own quota that has no room for another call; None where all have."""
        own = self._rules_of(policy).own(asker)
        if not own:
            return None
        claims = [claim for _, claim in own]
        refused = self._live.quotas.peek(claims, asker.n_tokens, self._clock.monotonic_ms())
        if refused is None:
            return None
        return _over(own[claims.index(refused.claim)][0], refused)

    def over_quota_of(self, entries: Iterable[Entry], asker: Asker, policy: Policy) -> OverQuota | None:
        """The first quota of one of these agents that has no room; None where only rate limits of cards have none."""
        rules, now_ms = self._rules_of(policy), self._clock.monotonic_ms()
        for entry in entries:
            refused = self._live.quotas.peek(rules.of_agent(asker, entry.card), asker.n_tokens, now_ms)
            quota = None if refused is None else rules.quota_of(refused.claim)
            if quota is not None and refused is not None:
                return _over(quota, refused)
        return None

    def look(
        self, entries: Sequence[Entry], asker: Asker, policy: Policy, figures: Mapping[int, Standing]
    ) -> list[Standing]:
        """The standing of each entry; all of them serve one intent.

        Args:
            entries: who may be chosen.
            asker: who asks.
            policy: the whole one.
            figures: of at least these entries, made in the same turn of the event loop.
        """
        now_ms, rules = self._clock.monotonic_ms(), self._rules_of(policy)
        here = policy.of(asker.namespace)
        troubled = self._live.breakers.troubled_targets(asker.caller)
        gates = _Gates(self._live, asker, now_ms)
        standings = []
        for entry in entries:
            standing = figures[entry.number]
            if standing.stage is None:
                agent = entry.agent
                holds = here if agent[0] == asker.namespace else policy.of(agent[0])
                breaker = troubled.get(agent) if troubled else None
                if breaker is not None and not breaker.admits(now_ms, holds.breaker):
                    wait_ms = _wait_ms(breaker.view(now_ms), now_ms)
                    standing = standing._replace(stage=Stage.BREAKER, retry_after_ms=wait_ms)
                elif entry.card.depends_on or not standing.load or rules.limits(entry.card):
                    taken_out = gates.taken_out(entry, standing, holds, rules.of_agent(asker, entry.card))
                    if taken_out is not None:
                        standing = standing._replace(stage=taken_out[0], retry_after_ms=taken_out[1])
            standings.append(standing)
        if self._live.outliers.has_ejected:
            self._eject(entries, standings, policy, now_ms)
        return standings

    def would_probe(self, entry: Entry, asker: Asker) -> bool:
        """Whether a call of an agent that `look` found able is a probe: one that is not to be made again at once."""
        breakers = self._live.breakers
        if entry.agent in breakers.troubled_targets(asker.caller):
            return True
        now_ms, namespace = self._clock.monotonic_ms(), entry.agent[0]
        views = [breakers.view(DependencyKey(each, namespace), now_ms) for each in entry.card.depends_on]
        return any(view is not None and view.state is not BreakerState.CLOSED for view in views)

    def take(self, opened: OpenDecision, chosen: Entry, asker: Asker, policy: Policy, keep_ms: float) -> bool:
        """Take what the call needs at the chosen agent; whether a place was taken there.

        Args:
            opened: the decision.
            chosen: what `look` said is able, in the same turn of the event loop.
            asker: who asks.
            policy: the same.
            keep_ms: how long the place is kept.
        """
        live, now_ms, call = self._live, self._clock.monotonic_ms(), (opened.decision_id, 1)
        rules, holds = self._rules_of(policy), policy.of(chosen.agent[0])
        claims = [*(claim for _, claim in rules.own(asker)), *rules.of_agent(asker, chosen.card)]
        if claims:
            live.quotas.reserve(opened.decision_id, claims, asker.n_tokens, now_ms)
        live.breakers.take(TargetKey(asker.caller, chosen.agent), call, now_ms, holds.breaker)
        for dependency in chosen.card.depends_on:
            key = DependencyKey(dependency, chosen.agent[0])
            live.breakers.take(key, call, now_ms, holds.dependency)
            if asker.is_retry:
                live.retry_tokens.take(key, now_ms, holds.dependency)
        opened.began_ms = now_ms
        if asker.caller in live.posting:
            live.leases.take(opened.decision_id, chosen.agent, None, now_ms + keep_ms, now_ms)
            opened.is_leased = True
        live.opened.add(opened)
        return opened.is_leased

    def _rules_of(self, policy: Policy) -> QuotaRules:
        if policy is not self._policy:
            self._policy, self._rules = policy, QuotaRules(policy.quotas)
        return self._rules

    def _eject(self, entries: Sequence[Entry], standings: list[Standing], policy: Policy, now_ms: float) -> None:
        """Take out those that do worse than their peers, unless too few would be left."""
        outliers = self._live.outliers
        by_group: dict[tuple[str, str], list[int]] = {}
        for place, entry in enumerate(entries):
            by_group.setdefault((entry.agent[0], entry.capability.intent), []).append(place)
        for group, places in by_group.items():
            holds: EjectionPolicy = policy.of(group[0]).ejection
            n_unable = sum(standings[place].stage is not None for place in places)
            if not holds.enabled or outliers.in_panic(group, len(places), n_unable, now_ms, holds):
                continue
            for place in places:
                if standings[place].stage is None and outliers.is_ejected(entries[place].agent, group, now_ms):
                    standings[place] = standings[place]._replace(stage=Stage.EJECTED)


class _Gates:
    """What stands between one request and the agents that no breaker of its caller keeps it from."""

    def __init__(self, live: Live, asker: Asker, now_ms: float) -> None:
        self._live = live
        self._asker = asker
        self._now_ms = now_ms
        self._is_posting = asker.caller in live.posting
        self._by_dependency: dict[tuple[str, str], _TakenOut | None] = {}

    def taken_out(
        self, entry: Entry, standing: Standing, holds: NamespacePolicy, claims: Sequence[Claim]
    ) -> _TakenOut | None:
        """Why the agent cannot take the call now; None where it can."""
        card, live = entry.card, self._live
        for dependency in card.depends_on:
            taken_out = self._of_dependency(dependency, entry.agent[0], holds)
            if taken_out is not None:
                return taken_out
        # without headroom it may be full by its own report alone
        if self._is_posting and not standing.load and live.leases.in_flight(entry.agent) >= card.max_inflight:
            return Stage.CAPACITY, None
        if claims:
            refused = live.quotas.peek(claims, self._asker.n_tokens, self._now_ms)
            if refused is not None:
                return Stage.QUOTA, refused.retry_after_ms
        return None

    def _of_dependency(self, dependency: str, namespace: str, holds: NamespacePolicy) -> _TakenOut | None:
        """The same for all agents of a namespace that need it, and so asked once."""
        try:
            return self._by_dependency[dependency, namespace]
        except KeyError:
            found = self._asked(DependencyKey(dependency, namespace), holds)
            self._by_dependency[dependency, namespace] = found
            return found

    def _asked(self, key: DependencyKey, holds: NamespacePolicy) -> _TakenOut | None:
        live, now_ms = self._live, self._now_ms
        if not live.breakers.admits(key, now_ms, holds.dependency):
            view = live.breakers.view(key, now_ms)
            return Stage.DEPENDENCY, None if view is None else _wait_ms(view, now_ms)
        if self._asker.is_retry:
            wait_ms = live.retry_tokens.wait_ms(key, now_ms, holds.dependency)
            if wait_ms is None or wait_ms > 0:
                return Stage.DEPENDENCY, wait_ms
        return None


def _over(quota: Quota, refused: Refused) -> OverQuota:
    limits = [f"{quota.max_calls} calls", f"{quota.max_tokens} tokens"]
    told = " and ".join(limit for limit in limits if not limit.startswith("None"))
    wait_ms = quota.window_ms if refused.retry_after_ms is None else refused.retry_after_ms
    return OverQuota(quota, wait_ms, f"{told} in {quota.window_ms} ms")


def _wait_ms(view: BreakerView, now_ms: float) -> float | None:
    return None if view.next_change_ms is None else max(0.0, view.next_change_ms - now_ms)

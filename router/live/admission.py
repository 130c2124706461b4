"""Admission: what each agent can take now, and the taking of places, quotas and probes for the one that was chosen."""

from __future__ import annotations

from collections.abc import Sequence

from models.candidate import Stage
from models.live_policy import EjectionPolicy
from models.policy import NamespacePolicy, Policy
from models.ports import Clock
from router.live.asker import Asker
from router.live.breaker_state import BreakerState, BreakerView, DependencyKey, TargetKey
from router.live.health_score import share_weight
from router.live.live import Live
from router.live.open_decisions import OpenDecision
from router.live.quota_rules import QuotaRules
from router.live.standing import OverQuota, Standing, headroom
from router.live.vitals import HealthState
from router.snapshot import Entry


class Admission:
    """Looks, and takes. A look and a taking without a pause between them go together, whatever else arrives."""

    def __init__(self, live: Live, clock: Clock) -> None:
        self._live = live
        self._clock = clock
        self._policy: Policy | None = None
        self._rules = QuotaRules(())

    def timeout_ms(self, entry: Entry, policy: NamespacePolicy) -> int:
        """Suggested timeout of an agent (SPEC R5)."""
        return self._live.health.timeout_ms(entry.agent, entry.card, self._clock.monotonic_ms(), policy.health)

    def over_quota(self, asker: Asker, policy: Policy) -> OverQuota | None:
        """The caller's own quota that has no room for another call; None where all have."""
        own = self._rules_of(policy).own(asker)
        if not own:
            return None
        claims = [claim for _, claim in own]
        refused = self._live.quotas.peek(claims, asker.n_tokens, self._clock.monotonic_ms())
        if refused is None:
            return None
        quota = own[claims.index(refused.claim)][0]
        limits = [f"{quota.max_calls} calls", f"{quota.max_tokens} tokens"]
        told = " and ".join(limit for limit in limits if not limit.startswith("None"))
        wait_ms = quota.window_ms if refused.retry_after_ms is None else refused.retry_after_ms
        return OverQuota(quota, wait_ms, f"{told} in {quota.window_ms} ms")

    def look(self, entries: Sequence[Entry], asker: Asker, policy: Policy) -> list[Standing]:
        """The standing of each entry; all of them serve one intent."""
        now_ms = self._clock.monotonic_ms()
        rules = self._rules_of(policy)
        here = policy.of(asker.namespace)
        standings = []
        for entry in entries:
            namespace = entry.agent[0]
            holds = here if namespace == asker.namespace else policy.of(namespace)
            standings.append(self._standing(entry, asker, holds, rules, now_ms))
        if self._live.outliers:
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

    def _standing(
        self, entry: Entry, asker: Asker, holds: NamespacePolicy, rules: QuotaRules, now_ms: float
    ) -> Standing:
        live, agent, card = self._live, entry.agent, entry.card
        vitals = live.health.vitals(agent, card, now_ms, holds.health)
        if vitals.state is HealthState.DOWN:
            return entry.fresh._replace(health=0.0, stage=Stage.DOWN)
        n_in_flight = live.leases.in_flight(agent)
        figures = self._figures(entry, vitals.score, vitals.warmup, n_in_flight, holds, now_ms)
        breaker = live.breakers.troubled_targets(asker.caller).get(agent)
        if breaker is not None and not breaker.admits(now_ms, holds.breaker):
            return figures._replace(stage=Stage.BREAKER, retry_after_ms=_wait_ms(breaker.view(now_ms), now_ms))
        if card.depends_on:
            figures = self._by_dependencies(figures, entry, asker, holds, now_ms)
            if figures.stage is not None:
                return figures
        if n_in_flight >= card.max_inflight and asker.caller in live.posting:
            return figures._replace(stage=Stage.CAPACITY)
        claims = rules.of_agent(asker, card)
        refused = live.quotas.peek(claims, asker.n_tokens, now_ms) if claims else None
        if refused is not None:
            return figures._replace(stage=Stage.QUOTA, retry_after_ms=refused.retry_after_ms)
        return figures

    def _figures(
        self, entry: Entry, score: float, warmup: float, n_in_flight: int, holds: NamespacePolicy, now_ms: float
    ) -> Standing:
        health, agent, card = self._live.health, entry.agent, entry.card
        measured = health.latencies.figures(agent, now_ms, holds.health.window_ms)
        reported = health.reported(agent, now_ms, holds.health.window_ms)
        if score == 1.0 and warmup == 1.0 and not n_in_flight and not measured.n_outcomes and reported is None:
            return entry.fresh
        load = n_in_flight / card.max_inflight
        if reported is not None and reported.load is not None:
            load = max(load, reported.load)
        is_measured = measured.mean_ms is not None and measured.n_latencies >= holds.health.min_outcomes
        return Standing(
            health=score,
            load=headroom(load),
            share_weight=share_weight(card.weight, score, load, warmup),
            latency_ms=measured.mean_ms if is_measured and measured.mean_ms is not None else float(card.timeout_ms),
            timeout_ms=health.timeout_ms(agent, card, now_ms, holds.health),
        )

    def _by_dependencies(
        self, figures: Standing, entry: Entry, asker: Asker, holds: NamespacePolicy, now_ms: float
    ) -> Standing:
        live = self._live
        for dependency in entry.card.depends_on:
            key = DependencyKey(dependency, entry.agent[0])
            if not live.breakers.admits(key, now_ms, holds.dependency):
                view = live.breakers.view(key, now_ms)
                wait_ms = None if view is None else _wait_ms(view, now_ms)
                return figures._replace(stage=Stage.DEPENDENCY, retry_after_ms=wait_ms)
            if asker.is_retry:
                wait_ms = live.retry_tokens.wait_ms(key, now_ms, holds.dependency)
                if wait_ms is None or wait_ms > 0:
                    return figures._replace(stage=Stage.DEPENDENCY, retry_after_ms=wait_ms)
        return figures

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


def _wait_ms(view: BreakerView, now_ms: float) -> float | None:
    return None if view.next_change_ms is None else max(0.0, view.next_change_ms - now_ms)

"""Figured: the live figures of agents, worked out again only where something has changed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from models.candidate import Stage
from models.card import AgentCard, AgentKey
from models.live_policy import HealthPolicy
from router.live.live import Live
from router.live.vitals import HealthState, Vitals
from router.snapshot import Entry
from router.standing import Standing, headroom, share_weight

MAX_AGENTS = 20_000
"""Beyond that all are worked out anew."""


class _Kept(NamedTuple):
    """What a standing was made of; `health` makes new vitals whenever the agent's figures may be others."""

    vitals: Vitals
    n_in_flight: int
    card: AgentCard
    standing: Standing


class Figured:
    """Standings by health, load and latency alone, without what a breaker, a quota or a full agent has to say.

    Latency and timeout are as old as the health score: a new outcome shows in all three within a second.
    """

    def __init__(self, live: Live, max_agents: int = MAX_AGENTS) -> None:
        self._live = live
        self._max_agents = max_agents
        self._kept: dict[AgentKey, _Kept] = {}

    def __len__(self) -> int:
        """Agents whose standing is kept."""
        return len(self._kept)

    def all(self, entries: Sequence[Entry], health: Mapping[str, HealthPolicy], now_ms: float) -> dict[int, Standing]:
        """The standings by the entries' numbers.

        Args:
            entries: of which.
            health: the policy of each of their namespaces.
            now_ms: of the steady clock.
        """
        lives, time_ms = self._live.health.current(now_ms)
        counts, keeps = self._live.leases.counts, self._kept
        found = {}
        for entry in entries:
            agent = entry.agent
            kept, life = keeps.get(agent), lives.get(agent)
            # what `of` does where nothing has changed, without its calls: there may be a thousand
            if (
                kept is not None
                and life is not None
                and time_ms < life.until_ms
                and kept.vitals is life.vitals
                and kept.card is entry.card is life.card
                and kept.n_in_flight == counts.get(agent, 0)
                and life.policy is health[agent[0]]
            ):
                found[entry.number] = kept.standing
            else:
                found[entry.number] = self.of(entry, health[agent[0]], now_ms)
        return found

    def of(self, entry: Entry, policy: HealthPolicy, now_ms: float) -> Standing:
        """The standing of an agent; its stage is `DOWN` where it is that, else None."""
        agent, card, live = entry.agent, entry.card, self._live
        vitals = live.health.vitals(agent, card, now_ms, policy)
        n_in_flight = live.leases.in_flight(agent)
        kept = self._kept.get(agent)
        if kept is not None and kept[0] is vitals and kept[1] == n_in_flight and kept[2] is card:
            return kept[3]
        if kept is None and len(self._kept) >= self._max_agents:
            self._kept.clear()
        standing = self._worked_out(entry, vitals, n_in_flight, policy, now_ms)
        self._kept[agent] = _Kept(vitals, n_in_flight, card, standing)
        return standing

    def _worked_out(
        self, entry: Entry, vitals: Vitals, n_in_flight: int, policy: HealthPolicy, now_ms: float
    ) -> Standing:
        if vitals.state is HealthState.DOWN:
            return entry.fresh._replace(health=0.0, stage=Stage.DOWN)
        health, agent, card = self._live.health, entry.agent, entry.card
        score, warmup = vitals.score, vitals.warmup
        measured = health.latencies.figures(agent, now_ms, policy.window_ms)
        reported = health.reported(agent, now_ms, policy.window_ms)
        if score == 1.0 and warmup == 1.0 and not n_in_flight and not measured.n_outcomes and reported is None:
            return entry.fresh
        load = n_in_flight / card.max_inflight
        if reported is not None and reported.load is not None:
            load = max(load, reported.load)
        is_measured = measured.mean_ms is not None and measured.n_latencies >= policy.min_outcomes
        return Standing(
            health=score,
            load=headroom(load),
            share_weight=share_weight(card.weight, score, load, warmup),
            latency_ms=measured.mean_ms if is_measured and measured.mean_ms is not None else float(card.timeout_ms),
            timeout_ms=health.timeout_ms(agent, card, now_ms, policy),
        )

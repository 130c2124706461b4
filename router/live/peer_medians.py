"""PeerMedians: what is usual among the agents of a group, as each of them is to be compared with it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import inf

from models.card import AgentKey
from models.live_policy import EjectionPolicy
from router.live.call_window import CallWindow

_MIN_PEERS = 2
_MAX_AGE = 1 / 60


class PeerMedians:
    """Medians over the windows of a group's agents, each agent's own left out.

    They are computed anew where as many outcomes came as there are agents, or a sixtieth of the window has passed: an
    outcome then costs the same in a group of 3 as in one of 1,000. A window belongs in here only while its agent is
    no outlier; one with too few calls is no peer.
    """

    __slots__ = ("_at_ms", "_latencies", "_rates", "_sorted_latencies", "_sorted_rates", "n_outcomes", "windows")

    def __init__(self) -> None:
        self.windows: dict[AgentKey, CallWindow] = {}
        """Those of the group, by agent; whoever changes one counts that in `n_outcomes`."""
        self.n_outcomes = 0
        self._at_ms = -inf
        self._rates: dict[AgentKey, float] = {}
        self._latencies: dict[AgentKey, float] = {}
        self._sorted_rates: list[float] = []
        self._sorted_latencies: list[float] = []

    def success_rate_beside(self, agent: AgentKey, now_ms: float, policy: EjectionPolicy) -> float | None:
        """Median success rate, 0..1, of the agent's peers; None where there are fewer than two."""
        self._refresh(now_ms, policy)
        return median_beside(self._sorted_rates, self._rates.get(agent))

    def latency_ms_beside(self, agent: AgentKey, now_ms: float, policy: EjectionPolicy) -> float | None:
        """Median of the mean latencies of the agent's peers; None where there are fewer than two."""
        self._refresh(now_ms, policy)
        return median_beside(self._sorted_latencies, self._latencies.get(agent))

    def expire(self) -> None:
        """Compute them anew when they are asked for next."""
        self._at_ms = -inf

    def _refresh(self, now_ms: float, policy: EjectionPolicy) -> None:
        if self.n_outcomes < len(self.windows) and now_ms - self._at_ms <= policy.window_ms * _MAX_AGE:
            return
        self.n_outcomes = 0
        self._at_ms = now_ms
        self._rates = {}
        self._latencies = {}
        for agent, window in self.windows.items():
            window.trim(now_ms, policy.window_ms)
            if window.n_calls >= policy.min_calls:
                self._rates[agent] = window.success_rate
            if window.n_latencies >= policy.min_calls:
                self._latencies[agent] = window.mean_latency_ms
        self._sorted_rates = sorted(self._rates.values())
        self._sorted_latencies = sorted(self._latencies.values())


def median_beside(ordered: Sequence[float], own: float | None) -> float | None:
    """The median of `ordered` without one that equals `own` (None: of all); None where fewer than two are left.

    >>> median_beside([1.0, 2.0, 3.0, 9.0], own=9.0), median_beside([1.0, 2.0, 3.0], own=2.0)
    (2.0, 2.0)
    >>> median_beside([1.0, 2.0], own=2.0)
    """
    n_peers = len(ordered) - (own is not None)
    if n_peers < _MIN_PEERS:
        return None
    skipped = len(ordered) if own is None else bisect_left(ordered, own)
    low, high = (n_peers - 1) // 2, n_peers // 2
    return (ordered[low + (low >= skipped)] + ordered[high + (high >= skipped)]) / 2

"""Latencies: what became of an agent's calls in the last minutes, with quantiles of how long they took."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from math import ceil, fsum, isnan, nan
from typing import NamedTuple

from models.card import AgentKey
from router.live.keys import CallId

_STEP = 20
"""Quantiles are computed anew once one in so many outcomes has come, gone or been taken back since the last time."""

_LEAST_MOVED = 64
"""Rows that have fallen out are kept until there are so many."""

_SUCCEEDED, _FAILED, _TAKEN_BACK = 0, 1, 2


class Figures(NamedTuple):
    """An agent's outcomes in the window.

    Latencies are those of calls that did not fail: a timeout would only measure itself. The quantiles may be behind by
    one outcome in 20.

    Attributes:
        n_outcomes: failed ones included.
        error_rate: share of them that failed, 0..1; None where there are none.
        n_latencies: calls of known latency.
        mean_ms: None where there are none, as are `p50_ms` and `p95_ms`.
    """

    n_outcomes: int = 0
    error_rate: float | None = None
    n_latencies: int = 0
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None


NOTHING = Figures()


class Latencies:
    """Sliding windows of outcomes, one for each agent.

    Args:
        max_outcomes: kept for an agent, 33 bytes each; with more the oldest fall out, so its window gets shorter.
        max_agents: kept at once; with more the one that came first is forgotten.

    >>> agent, latencies = ("default", "a", "1.0.0"), Latencies()
    >>> for n in range(1, 21):
    ...     latencies.add(agent, ("d", n), failed=n > 18, latency_ms=100.0 * n, now_ms=1000.0 * n)
    >>> latencies.figures(agent, now_ms=20_000, window_ms=300_000)
    Figures(n_outcomes=20, error_rate=0.1, n_latencies=18, mean_ms=950.0, p50_ms=900.0, p95_ms=1800.0)
    """

    def __init__(self, *, max_outcomes: int = 2000, max_agents: int = 10_000) -> None:
        if max_outcomes < 1 or max_agents < 1:
            raise ValueError(f"max_outcomes is {max_outcomes} and max_agents {max_agents}, the least is 1")
        self._max_outcomes = max_outcomes
        self._max_agents = max_agents
        self._windows: dict[AgentKey, _Window] = {}

    def __len__(self) -> int:
        """How many agents there are windows of."""
        return len(self._windows)

    def add(self, agent: AgentKey, call: CallId, *, failed: bool, latency_ms: float | None, now_ms: float) -> None:
        """Count an outcome; None for a latency that is not known."""
        window = self._windows.get(agent)
        if window is None:
            if len(self._windows) >= self._max_agents:
                del self._windows[next(iter(self._windows))]
            window = self._windows[agent] = _Window()
        window.add(hash(call), failed, nan if failed or latency_ms is None else latency_ms, now_ms)
        window.drop_all_but(self._max_outcomes)

    def take_back(self, agent: AgentKey, call: CallId) -> bool:
        """Forget an outcome, as an amendment does before it adds another; False where it has left the window."""
        window = self._windows.get(agent)
        return window is not None and window.take_back(hash(call))

    def figures(self, agent: AgentKey, now_ms: float, window_ms: float) -> Figures:
        """The figures of the last `window_ms`; what is older is dropped for good."""
        window = self._windows.get(agent)
        if window is None:
            return NOTHING
        window.drop_before(now_ms - window_ms)
        return window.figures()

    def keep(self, agents: Collection[AgentKey]) -> None:
        """Forget all agents but these."""
        self._windows = {agent: window for agent, window in self._windows.items() if agent in agents}


class _Window:
    """Outcomes in the order in which they came: columns of which the first `_head` rows have fallen out already."""

    def __init__(self) -> None:
        self._times = array("d")
        self._calls = array("q")
        self._latencies = array("d")
        self._kinds = array("b")
        self._head = 0
        self._n_of = [0, 0, 0]
        self._n_timed = 0
        self._sum_ms = 0.0
        self._n_changes = 0
        self._p50_ms: float | None = None
        self._p95_ms: float | None = None
        self._figures: Figures | None = NOTHING

    def add(self, call: int, failed: bool, latency_ms: float, now_ms: float) -> None:
        self._times.append(now_ms)
        self._calls.append(call)
        self._latencies.append(latency_ms)
        self._kinds.append(_FAILED if failed else _SUCCEEDED)
        self._count(len(self._times) - 1, 1)

    def take_back(self, call: int) -> bool:
        try:
            row = self._calls.index(call, self._head)
        except ValueError:
            return False
        self._count(row, -1)
        # the row stays, so that the others keep their places; nothing finds it again
        self._kinds[row], self._calls[row], self._latencies[row] = _TAKEN_BACK, 0, nan
        return True

    def drop_all_but(self, n_rows: int) -> None:
        while len(self._times) - self._head > n_rows:
            self._drop()

    def drop_before(self, time_ms: float) -> None:
        while self._head < len(self._times) and self._times[self._head] <= time_ms:
            self._drop()

    def figures(self) -> Figures:
        if self._figures is None:
            if self._n_changes * _STEP >= self._n_timed:
                self._measure()
            n_failed = self._n_of[_FAILED]
            n_outcomes = n_failed + self._n_of[_SUCCEEDED]
            self._figures = Figures(
                n_outcomes,
                n_failed / n_outcomes if n_outcomes else None,
                self._n_timed,
                self._sum_ms / self._n_timed if self._n_timed else None,
                self._p50_ms,
                self._p95_ms,
            )
        return self._figures

    def _measure(self) -> None:
        """Quantiles by the nearest rank, and the sum without what rounding has added to it."""
        known = sorted(ms for ms in self._latencies[self._head :] if not isnan(ms))
        self._n_changes = 0
        self._sum_ms = fsum(known)
        self._p50_ms = known[ceil(0.5 * len(known)) - 1] if known else None
        self._p95_ms = known[ceil(0.95 * len(known)) - 1] if known else None

    def _count(self, row: int, sign: int) -> None:
        self._n_of[self._kinds[row]] += sign
        latency_ms = self._latencies[row]
        if not isnan(latency_ms):
            self._n_timed += sign
            self._sum_ms += sign * latency_ms
        self._n_changes += 1
        self._figures = None

    def _drop(self) -> None:
        if self._kinds[self._head] != _TAKEN_BACK:
            self._count(self._head, -1)
        self._head += 1
        # half of it at once, so that a row is moved once on average
        if self._head >= _LEAST_MOVED and self._head * 2 >= len(self._times):
            for column in (self._times, self._calls, self._latencies, self._kinds):
                del column[: self._head]
            self._head = 0

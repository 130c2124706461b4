"""Costs: what an agent's calls cost, as its callers tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from feedback.drift import MAX_CALLERS

RECENT = 25
"""Calls of a caller's mean (EWMA)."""

FIRST = 3
"""Of so many costs of a caller the median is taken, and each later one counts within MOST times its mean."""

MOST = 10.0
"""A told cost counts as at most so many times what its caller told before, and at least that part of it."""

APART = 4.0
"""A caller's mean counts as at most so many times the weighted median of all callers, and at least that part of it."""

LEAST_USD = 1e-6
"""A mean counts as at least this where a told cost is bounded by it: what was free may come to cost something."""

LEAST_WEIGHT = 0.01
"""Outcomes for which a caller without evidence counts."""


class Told:
    """What one caller told.

    Attributes:
        weight: outcomes of evidence that it had on the agent when it last told a cost.
        n: costs that it told.
        mean: in US dollars: of the first two the mean, of three the median, then an EWMA over 25.
        first: the first ones, while there are fewer than three.
    """

    __slots__ = ("first", "mean", "n", "weight")

    def __init__(self, weight: float = 0.0, n: int = 0, mean: float = 0.0, first: Sequence[float] = ()) -> None:
        self.weight = weight
        self.n = n
        self.mean = mean
        self.first = list(first)

    def learn_one(self, cost_usd: float) -> None:
        """Takes the cost of a call."""
        self.n += 1
        if self.n <= FIRST:
            self.first = sorted([*self.first, cost_usd])
            self.mean = self.first[1] if self.n == FIRST else sum(self.first) / self.n
            if self.n == FIRST:
                self.first = []
            return
        known = max(self.mean, LEAST_USD)
        bounded = min(max(cost_usd, self.mean / MOST), known * MOST)
        self.mean += (bounded - self.mean) / min(self.n, RECENT)

    def merge(self, other: Told) -> None:
        """Takes what is known of it elsewhere."""
        self.n += other.n
        self.weight += other.weight
        if self.weight > 0:
            self.mean += (other.mean - self.mean) * other.weight / self.weight
        self.first = sorted([*self.first, *other.first]) if self.n < FIRST else []


class Costs:
    """The mean cost of an agent's calls, on which nobody's word counts for more than its part of the evidence.

    Each caller's costs have a mean of their own, in which one cost moves little; the agent's is that of its callers,
    weighted by their evidence on it, each counted within APART times their weighted median (a winsorized mean). So
    who has less than half of the evidence moves the mean by at most (APART - 1) times its part. The 16 callers with
    most evidence are heard, of equals the latest.

    Attributes:
        mean_usd: in US dollars; None before the first cost.

    >>> costs = Costs()
    >>> for _ in range(60):
    ...     costs.learn_one(0.01, "ann", 60.0)
    >>> costs.learn_one(1e6, "eve", 1.0)
    >>> round(costs.mean_usd, 5)
    0.01049
    """

    __slots__ = ("_told", "mean_usd")

    def __init__(self, told: Mapping[str, Told] | None = None) -> None:
        self._told = dict(told or {})
        self.mean_usd = self._mean()

    def learn_one(self, cost_usd: float, caller: str, weight: float) -> None:
        """Takes the cost of a call.

        Args:
            cost_usd: in US dollars.
            caller: who told it.
            weight: outcomes of evidence that it has on the agent.
        """
        told = self._told.pop(caller, None) or Told()
        told.learn_one(cost_usd)
        told.weight = max(weight, LEAST_WEIGHT)
        self._told[caller] = told  # now the latest
        self._bound()
        self.mean_usd = self._mean()

    def merge(self, other: Costs) -> None:
        """Takes what another process was told."""
        for caller, told in other._told.items():
            self._told.setdefault(caller, Told()).merge(told)
        self._bound()
        self.mean_usd = self._mean()

    def forget(self, caller: str) -> bool:
        """What a caller told counts as nobody's; whether there was any."""
        told = self._told.pop(caller, None)
        if told is not None:
            self._told.setdefault("", Told()).merge(told)
            self.mean_usd = self._mean()
        return told is not None

    def body(self) -> dict[str, list[Any]]:
        """JSON-able, from which `of` makes the same again, to the last bit."""
        return {caller: [told.weight, told.n, told.mean, told.first] for caller, told in self._told.items()}

    @classmethod
    def of(cls, body: Mapping[str, Sequence[Any]]) -> Costs:
        """The costs that `body` told of."""
        return cls({caller: Told(*told) for caller, told in body.items()})

    def _bound(self) -> None:
        while len(self._told) > MAX_CALLERS:
            del self._told[min(self._told, key=lambda caller: self._told[caller].weight)]

    def _mean(self) -> float | None:
        if not self._told:
            return None
        told = sorted([(each.mean, each.weight) for each in self._told.values()])
        total = sum([weight for _, weight in told])
        passed = accumulate([weight for _, weight in told])
        median = next(mean for (mean, _), until in zip(told, passed, strict=True) if 2 * until >= total)
        return sum([min(max(mean, median / APART), median * APART) * weight for mean, weight in told]) / total

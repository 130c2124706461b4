"""Leader: who is in so many of the sums by caller of a namespace that the fleet is in the main its own."""

from __future__ import annotations

from collections import defaultdict

LEAD = 2 / 3
"""A caller who is in more than this share of the sums by caller of a namespace leads it."""


class Leader:
    """Counts, of one namespace, in how many sums each caller is; who leads follows from these counts alone.

    >>> leader = Leader()
    >>> for caller in ("web", "web", "web", "app"):
    ...     leader.step(caller, 1)
    >>> leader.name
    'web'
    >>> leader.step("app", 1), leader.name
    (None, None)
    """

    def __init__(self) -> None:
        self._n = 0
        self._most = 0
        self._n_of: dict[str, int] = {}
        # callers by their counts, so that a step takes the same time whatever their number
        self._with: defaultdict[int, set[str]] = defaultdict(set)

    @property
    def name(self) -> str | None:
        """Who leads; None is nobody, and so is the caller ""."""
        if self._most <= LEAD * self._n:
            return None
        (found,) = self._with[self._most]  # nobody else can be in as many
        return found or None

    def step(self, caller: str, step: int) -> None:
        """A caller is in one sum more (1), or in one less (-1)."""
        before = self._n_of.get(caller, 0)
        now = before + step
        self._n += step
        if before:
            self._with[before].discard(caller)
            if not self._with[before]:
                del self._with[before]
        if now:
            self._n_of[caller] = now
            self._with[now].add(caller)
        else:
            self._n_of.pop(caller, None)
        if now > self._most or self._most not in self._with:
            self._most = now

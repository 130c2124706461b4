"""Leader: who is in so many of a namespace's sums, and told so much, that the fleet is in the main its own."""

from __future__ import annotations

from collections import defaultdict

from models.events import EVIDENCE_UNIT

LEAD = 2 / 3
"""A caller leads who is in more than this share of a namespace's sums by caller, and told more than that of them."""

MOST_TOLD = 100 * EVIDENCE_UNIT
"""Of each sum so much counts as told: what was told of a few agents, however much, makes or unmakes no leader."""


class Leader:
    """Counts, of one namespace, in how many sums each caller is and how much it told; who leads follows from these.

    A caller that tells one outcome of everything is in most sums where the others have work of different kinds; so it
    must have told most as well.

    >>> leader = Leader()
    >>> for _ in range(3):
    ...     leader.put("web", 0, 5 * EVIDENCE_UNIT)
    >>> leader.put("app", 0, EVIDENCE_UNIT)
    >>> leader.name
    'web'
    >>> leader.put("app", EVIDENCE_UNIT, 9 * EVIDENCE_UNIT)
    >>> leader.name is None
    True
    """

    def __init__(self) -> None:
        self._n_sums = self._told = 0
        self._most = 0
        self._n_sums_of: dict[str, int] = {}
        self._told_of: dict[str, int] = {}
        # callers by their numbers of sums, so that a change takes the same time however many there are
        self._with: defaultdict[int, set[str]] = defaultdict(set)

    @property
    def name(self) -> str | None:
        """Who leads; None is nobody, and so is the caller ""."""
        if self._most <= LEAD * self._n_sums:
            return None
        (found,) = self._with[self._most]  # nobody else can be in as many
        return found if found and self._told_of[found] > LEAD * self._told else None

    def put(self, caller: str, old_n: int, new_n: int) -> None:
        """One of a caller's sums, of `old_n`, is now of `new_n` outcomes, both in parts of EVIDENCE_UNIT."""
        told = min(new_n, MOST_TOLD) - min(old_n, MOST_TOLD)
        self._told += told
        self._told_of[caller] = self._told_of.get(caller, 0) + told
        if not self._told_of[caller]:
            del self._told_of[caller]
        if bool(old_n) != bool(new_n):
            self._step(caller, 1 if new_n else -1)

    def _step(self, caller: str, step: int) -> None:
        before = self._n_sums_of.get(caller, 0)
        now = before + step
        self._n_sums += step
        if before:
            self._with[before].discard(caller)
            if not self._with[before]:
                del self._with[before]
        if now:
            self._n_sums_of[caller] = now
            self._with[now].add(caller)
        else:
            self._n_sums_of.pop(caller, None)
        if now > self._most or self._most not in self._with:
            self._most = now

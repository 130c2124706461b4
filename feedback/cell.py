"""Cell: what was told of one agent's intent, by caller, and how much of it counts for whom."""

from __future__ import annotations

from heapq import nsmallest
from typing import NamedTuple

from feedback.caller_cap import Cap, contradiction

Sums = tuple[int, int]
"""(n, s): outcomes and their rewards, in parts of EVIDENCE_UNIT; 0 <= s <= n."""

ZERO: Sums = (0, 0)

LEAST_SHARE = 0.02
"""Who has less of the evidence than this moves nothing, and is not asked whether it contradicts the others."""


class Told(NamedTuple):
    """Of one caller, in parts of an outcome: `n` outcomes and their rewards `s`."""

    caller: str
    n: int
    s: int


class Counted(NamedTuple):
    """What counts of an agent's intent.

    Attributes:
        sums: for everybody.
        beyond: for one caller alone, of each of whom there is such, by name.
        odd: the callers who contradict the others, of whom nothing counts for everybody.
    """

    sums: Sums
    beyond: tuple[Told, ...] = ()
    odd: frozenset[str] = frozenset()


class Cell:
    """Sums over all callers, and those of each.

    Attributes:
        n: of all, in parts of an outcome; so `s` of their rewards.
        callers: of each; "" is nobody's: it counts for everybody, whatever it is.
    """

    __slots__ = ("_counted", "_second", "_top", "callers", "n", "s")

    def __init__(self) -> None:
        self.n = 0
        self.s = 0
        self.callers: dict[str, Sums] = {}
        # who with a name has told most, the first of several, and the most that another one has, "" among them
        self._top: str | None = None
        self._second = 0
        self._counted: tuple[Cap, str | None, Counted] | None = None

    def put(self, caller: str, new: Sums) -> Sums:
        """A caller's sums are now these; what they were."""
        old = self.callers.get(caller, ZERO)
        self._counted = None
        self.n += new[0] - old[0]
        self.s += new[1] - old[1]
        if new == ZERO:
            self.callers.pop(caller, None)
        else:
            self.callers[caller] = new
        if new[0] != old[0]:
            self._rank(caller, old[0], new[0])
        return old

    def counted(self, cap: Cap, leader: str | None) -> Counted:
        """What counts under a cap: the same whatever came first. All that the leader told counts."""
        known = self._counted
        if known is None or known[0] != cap or known[1] != leader:
            known = self._counted = (cap, leader, self._count(cap, leader))
        return known[2]

    def _count(self, cap: Cap, leader: str | None) -> Counted:
        if self._top is None or cap.share >= 1:
            return Counted((self.n, self.s))
        rest: Cell = self
        odd: dict[str, Sums] = {}
        # the farthest from the others first: what it tells may make others look odd; nor does it confirm anybody
        while (caller := rest._oddest(cap, leader)) is not None:
            odd[caller] = self.callers[caller]
            rest = rest._without(caller)
        over = rest._over(cap, leader)
        beyond = {**odd, rest._top: over} if over[0] and rest._top is not None else odd
        if not beyond:
            return Counted((self.n, self.s))
        told = tuple([Told(caller, *beyond[caller]) for caller in sorted(beyond)])
        sums = (self.n - sum([each.n for each in told]), self.s - sum([each.s for each in told]))
        return Counted(sums, told, frozenset(odd))

    def _oddest(self, cap: Cap, leader: str | None) -> str | None:
        """Whose word contradicts that of the others most; None where nobody's does."""
        n_callers = len(self.callers)
        if n_callers < 2:
            return None
        over_n, over_s = self._over(cap, leader)
        n, s, top = self.n - over_n, self.s - over_s, self._top
        least, worst, found = LEAST_SHARE * n, 1.0, None
        for caller, (own_n, own_s) in self.callers.items():
            if own_n <= least or not caller or caller == leader:
                continue
            # of the others, what is within the limit
            others_n, others_s = (self.n - own_n, self.s - own_s) if caller == top else (n - own_n, s - own_s)
            if others_n <= 0:
                continue
            by = contradiction(own_n, own_s, others_n, others_s)
            if by > worst or (by == worst and found is not None and caller < found):
                worst, found = by, caller
        return found

    def _without(self, caller: str) -> Cell:
        rest = Cell()
        for other, sums in self.callers.items():
            if other != caller:
                rest.put(other, sums)
        return rest

    def _over(self, cap: Cap, leader: str | None) -> Sums:
        """What the caller who has told most has told beyond the limit."""
        if self._top is None or self._top == leader:
            return ZERO
        n, s = self.callers[self._top]
        limit = cap.limit(self.n - n, self._second)
        if limit is None or n <= limit:
            return ZERO
        # half up, and never more than there is: rounding down each time would pull the mean towards 0
        kept_s = min((2 * s * limit + n) // (2 * n), limit)
        return n - limit, s - kept_s

    def _rank(self, caller: str, old_n: int, new_n: int) -> None:
        """Who has told most, and the most of any other; all are looked at only where somebody overtakes or falls."""
        top_n = None if self._top is None else self.callers.get(self._top, ZERO)[0]
        if new_n > old_n and top_n is not None:
            if caller == self._top:
                return
            if not caller or new_n < top_n:
                self._second = max(self._second, new_n)
                return
        ranked = nsmallest(2, [(-n, name) for name, (n, _) in self.callers.items() if name])
        self._top = ranked[0][1] if ranked else None
        named = -ranked[1][0] if len(ranked) > 1 else 0
        self._second = max(named, self.callers.get("", ZERO)[0])

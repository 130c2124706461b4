"""Cell: what was told of one agent's intent, by caller, and how much of it counts for whom."""

from __future__ import annotations

from heapq import nsmallest
from typing import NamedTuple

from feedback.caller_cap import Cap, contradicts

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
    """

    sums: Sums
    beyond: tuple[Told, ...] = ()


class Cell:
    """Sums over all callers, and those of each.

    Attributes:
        n: of all, in parts of an outcome; so `s` of their rewards.
        callers: of each; "" is nobody's: it counts for everybody, whatever it is.
    """

    __slots__ = ("_second", "_top", "callers", "n", "s")

    def __init__(self) -> None:
        self.n = 0
        self.s = 0
        self.callers: dict[str, Sums] = {}
        # who with a name has told most, the first of several, and the most that another one has, "" among them
        self._top: str | None = None
        self._second = 0

    def put(self, caller: str, new: Sums) -> Sums:
        """A caller's sums are now these; what they were."""
        old = self.callers.get(caller, ZERO)
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
        if self._top is None or cap.share >= 1:
            return Counted((self.n, self.s))
        over = self._over(cap, leader)
        beyond = {self._top: over} if over[0] else {}
        least = LEAST_SHARE * (self.n - over[0])
        odd = {
            caller: own
            for caller, own in self.callers.items()
            if own[0] > least and caller and caller != leader and self._contradicts(caller, over)
        }
        if odd:
            # who contradicts the others confirms nobody either
            rest = Cell()
            for caller, own in self.callers.items():
                if caller not in odd:
                    rest.put(caller, own)
            over = ZERO if rest._top is None else rest._over(cap, leader)
            beyond = odd if rest._top is None or not over[0] else {**odd, rest._top: over}
        if not beyond:
            return Counted((self.n, self.s))
        told = tuple([Told(caller, *beyond[caller]) for caller in sorted(beyond)])
        return Counted((self.n - sum([each.n for each in told]), self.s - sum([each.s for each in told])), told)

    def is_contradicted(self, caller: str, cap: Cap, leader: str | None) -> bool:
        """Whether what a caller tells contradicts what counts of the others."""
        if self._top is None or caller == leader or caller not in self.callers or cap.share >= 1:
            return False
        return self._contradicts(caller, self._over(cap, leader))

    def _contradicts(self, caller: str, over: Sums) -> bool:
        """With what the caller who has told most has told beyond the limit."""
        n, s = self.callers[caller]
        # of the others, what is within the limit
        others_n, others_s = self.n - n, self.s - s
        if caller != self._top:
            others_n, others_s = others_n - over[0], others_s - over[1]
        return others_n > 0 and contradicts(n, s, others_n, others_s)

    def _over(self, cap: Cap, leader: str | None) -> Sums:
        """What the caller who has told most has told beyond the limit."""
        assert self._top is not None
        if self._top == leader:
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

"""Cell: what was told of one agent's intent, by caller, and how much of it counts for whom."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from itertools import islice
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

    def beyond_of(self, caller: str) -> Sums:
        """What counts for this caller alone."""
        return next((told[1:] for told in self.beyond if told.caller == caller), ZERO)


class _Rest(NamedTuple):
    """Of those who are not odd.

    Attributes:
        n: of all, in parts of an outcome; so `s` of their rewards.
        top: who with a name has told most; "" is nobody.
        over: what that one has told beyond the limit.
    """

    n: int
    s: int
    top: str
    over: Sums


class Cell:
    """Sums over all callers, and those of each.

    Attributes:
        n: of all, in parts of an outcome; so `s` of their rewards.
        callers: of each; "" is nobody's: it counts for everybody, whatever it is.
    """

    __slots__ = ("_counted", "_ranked", "callers", "n", "s")

    def __init__(self) -> None:
        self.n = 0
        self.s = 0
        self.callers: dict[str, Sums] = {}
        # (-n, caller) of all with a name: who has told most comes first, the first by name of several
        self._ranked: list[tuple[int, str]] = []
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
        if new[0] != old[0] and caller:
            if old[0]:
                del self._ranked[bisect_left(self._ranked, (-old[0], caller))]
            if new[0]:
                insort(self._ranked, (-new[0], caller))
        return old

    def counted(self, cap: Cap, leader: str | None) -> Counted:
        """What counts under a cap: the same whatever came first. All that the leader told counts."""
        known = self._counted
        if known is None or known[0] != cap or known[1] != leader:
            known = self._counted = (cap, leader, self._count(cap, leader))
        return known[2]

    def _count(self, cap: Cap, leader: str | None) -> Counted:
        if not self._ranked or cap.share >= 1:
            return Counted((self.n, self.s))
        odd: dict[str, Sums] = {}
        rest = self._rest(odd, cap, leader)
        # the farthest from the others first: what it tells may make others look odd; nor does it confirm anybody
        while (caller := self._oddest(rest, odd, leader)) is not None:
            odd[caller] = self.callers[caller]
            rest = self._rest(odd, cap, leader)
        beyond = {**odd, rest.top: rest.over} if rest.over[0] else odd
        if not beyond:
            return Counted((self.n, self.s))
        told = tuple([Told(caller, *beyond[caller]) for caller in sorted(beyond)])
        sums = (self.n - sum([each.n for each in told]), self.s - sum([each.s for each in told]))
        return Counted(sums, told, frozenset(odd))

    def _rest(self, odd: Mapping[str, Sums], cap: Cap, leader: str | None) -> _Rest:
        """The sums of all but those that are odd, and what the one of them who has told most has beyond the limit."""
        n = self.n - sum([each[0] for each in odd.values()])
        s = self.s - sum([each[1] for each in odd.values()])
        first = list(islice((each for each in self._ranked if each[1] not in odd), 2))
        top = first[0][1] if first else ""
        if not top or top == leader:
            return _Rest(n, s, top, ZERO)
        top_n, top_s = self.callers[top]
        second = max(-first[1][0] if len(first) > 1 else 0, self.callers.get("", ZERO)[0])
        limit = cap.limit(n - top_n, second)
        if limit is None or top_n <= limit:
            return _Rest(n, s, top, ZERO)
        # half up, and never more than there is: rounding down each time would pull the mean towards 0
        kept_s = min((2 * top_s * limit + top_n) // (2 * top_n), limit)
        return _Rest(n, s, top, (top_n - limit, top_s - kept_s))

    def _oddest(self, rest: _Rest, odd: Mapping[str, Sums], leader: str | None) -> str | None:
        """Whose word contradicts that of the others most; None where nobody's does."""
        n, s = rest.n - rest.over[0], rest.s - rest.over[1]
        least, worst, found = LEAST_SHARE * n, 1.0, None
        for ranked_n, caller in self._ranked:
            if -ranked_n <= least:
                break  # nor has anybody behind it
            if caller in odd or caller == leader:
                continue
            own_n, own_s = self.callers[caller]
            # of the others, what is within the limit
            others_n, others_s = (rest.n - own_n, rest.s - own_s) if caller == rest.top else (n - own_n, s - own_s)
            if others_n <= 0:
                continue
            by = contradiction(own_n, own_s, others_n, others_s)
            if by > worst or (by == worst and found is not None and caller < found):
                worst, found = by, caller
        return found

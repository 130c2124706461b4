"""Leader: who has told so much of what is told in a namespace that the fleet is in the main its own."""

from __future__ import annotations

from bisect import bisect_left, insort

from models.events import EVIDENCE_UNIT

LEAD = 2 / 3
"""A caller leads who has told more than this share of what is told in a namespace, by both ways to count it."""

BROAD = 10 * EVIDENCE_UNIT
"""Of each sum so much counts, one way: what was told of a few agents, however much, makes or unmakes no leader."""

DEEP = 100 * EVIDENCE_UNIT
"""And the other way: who tells a little of everything leads nobody who has told much of what it calls."""


class Leader:
    """Counts, of one namespace, how much each caller told; who leads follows from these sums.

    >>> leader = Leader()
    >>> for _ in range(3):
    ...     leader.put("web", 0, 50 * EVIDENCE_UNIT)
    >>> leader.put("app", 0, EVIDENCE_UNIT)
    >>> leader.name
    'web'
    >>> for _ in range(2):
    ...     leader.put("app", 0, 10 * EVIDENCE_UNIT)
    >>> leader.name is None
    True
    """

    def __init__(self) -> None:
        self._broad, self._deep = _Tally(BROAD), _Tally(DEEP)

    @property
    def name(self) -> str | None:
        """Who leads; None is nobody, and so is the caller ""."""
        found = self._broad.first
        return found if found and found == self._deep.first else None

    def put(self, caller: str, old_n: int, new_n: int) -> None:
        """One of a caller's sums, of `old_n`, is now of `new_n` outcomes, both in parts of EVIDENCE_UNIT."""
        self._broad.put(caller, old_n, new_n)
        self._deep.put(caller, old_n, new_n)


class _Tally:
    """How much each caller told, of each sum `most` at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._told = 0
        self._told_of: dict[str, int] = {}
        # (-told, caller), who has told most first: a change takes about the same time however many there are
        self._ranked: list[tuple[int, str]] = []

    @property
    def first(self) -> str | None:
        """Who told more than `LEAD` of it all; None is nobody."""
        if not self._ranked:
            return None
        told, found = self._ranked[0]
        return found if -told > LEAD * self._told else None

    def put(self, caller: str, old_n: int, new_n: int) -> None:
        step = min(new_n, self._most) - min(old_n, self._most)
        if not step:
            return
        self._told += step
        before = self._told_of.pop(caller, 0)
        if before:
            del self._ranked[bisect_left(self._ranked, (-before, caller))]
        if before + step:
            self._told_of[caller] = before + step
            insort(self._ranked, (-(before + step), caller))

"""OutcomeWatch: when outcomes look so wrong that nothing should be learned from them."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass

from models.learning_policy import FreezePolicy

_KEEP = 0.8
"""Of what a rate was, when a window is added to it: the usual rate is that of some five windows."""

_MOST_SILENT = 0.5
"""Where more than this share of all decisions is of callers whose outcomes stopped coming, learning stops."""

_MAX_CALLERS = 10_000
_USUAL = re.compile(r"usual are (\d+) %")


@dataclass(slots=True)
class _Counts:
    """Of one caller, in its present windows: one of decisions, one of outcomes.

    Attributes:
        usual: share of its decisions that usually has an outcome; None before the first window is over.
        is_silent: whether its outcomes stopped coming.
    """

    n_decided: int = 0
    n_settled: int = 0
    usual: float | None = None
    is_silent: bool = False
    n_told: int = 0
    n_odd: int = 0
    is_odd: bool = False


class OutcomeWatch:
    """Counts decisions and outcomes by caller, in windows.

    Where a caller's outcomes contradict earlier ones, or come out of order, too often, or the share of its decisions
    that has an outcome collapses, nothing is learned from it until a whole window of its own is in order. Where most
    decisions are of callers whose outcomes stopped coming, nothing is learned at all.

    >>> watch, policy = OutcomeWatch(), FreezePolicy(window=20)
    >>> for _ in range(60):
    ...     watch.told("web", is_first=True, is_odd=False, policy=policy); watch.decided("web", policy)
    >>> for _ in range(40):
    ...     watch.decided("web", policy)
    >>> watch.reason
    'most decisions are of callers whose outcomes have stopped coming (0 % have one, usual are 100 %)'
    """

    def __init__(self) -> None:
        self._callers: OrderedDict[str, _Counts] = OrderedDict()
        self._n = self._n_silent = self._n_settled = 0
        self._usual: float | None = None
        self._reason: str | None = None
        self._stopped_before: float | None = None

    @property
    def reason(self) -> str | None:
        """Why nothing should be learned now; None where there is no reason."""
        return self._reason

    @property
    def distrusted(self) -> list[str]:
        """Callers from which nothing is learned now."""
        return [caller for caller, counts in self._callers.items() if counts.is_odd or counts.is_silent]

    def resume(self, reason: str) -> None:
        """Go on where an earlier run stopped learning for a reason of this watch: until a whole window is as usual."""
        found = _USUAL.search(reason)
        self._reason = reason
        self._stopped_before = int(found[1]) / 100 if found is not None else 0.0

    def reset(self) -> None:
        """Begin anew: what was seen so far is no reason any longer."""
        self._callers.clear()
        self._n = self._n_silent = self._n_settled = 0
        self._usual = self._reason = self._stopped_before = None

    def forget(self, caller: str) -> None:
        """Keep nothing of a caller."""
        self._callers.pop(caller, None)

    def decided(self, caller: str, policy: FreezePolicy) -> None:
        """Note a decision whose outcome is expected."""
        counts = self._of(caller)
        counts.n_decided += 1
        self._n += 1
        self._n_silent += counts.is_silent
        if counts.n_decided >= policy.window:
            self._close(counts, policy)
        if self._n >= policy.window:
            self._close_all(policy)

    def told(self, caller: str, *, is_first: bool, is_odd: bool, policy: FreezePolicy) -> None:
        """Note an outcome.

        Args:
            caller: in whose name it came.
            is_first: whether it is the first that came of a decision.
            is_odd: whether it contradicts what was told before, or comes before the attempt that it follows.
            policy: what is odd enough.
        """
        counts = self._of(caller)
        counts.n_settled += is_first
        self._n_settled += is_first
        counts.n_told += 1
        counts.n_odd += is_odd
        is_too_odd = policy.enabled and counts.n_odd > policy.odd_share * policy.window
        counts.is_odd = counts.is_odd or is_too_odd
        if counts.n_told >= policy.window:
            counts.is_odd = is_too_odd
            counts.n_told = counts.n_odd = 0

    def trusts(self, caller: str) -> bool:
        """Whether outcomes in this name are learned from."""
        counts = self._callers.get(caller)
        return counts is None or not (counts.is_odd or counts.is_silent)

    def _of(self, caller: str) -> _Counts:
        counts = self._callers.get(caller)
        if counts is None:
            counts = self._callers[caller] = _Counts()
            if len(self._callers) > _MAX_CALLERS:
                self._callers.popitem(last=False)
        return counts

    def _close(self, counts: _Counts, policy: FreezePolicy) -> None:
        # outcomes of earlier decisions count here, those of the last ones in the next window
        rate = min(1.0, counts.n_settled / counts.n_decided)
        counts.n_decided = counts.n_settled = 0
        counts.is_silent = policy.enabled and counts.usual is not None and rate < (1 - policy.rate_drop) * counts.usual
        if not counts.is_silent:
            counts.usual = _mixed(counts.usual, rate)

    def _close_all(self, policy: FreezePolicy) -> None:
        rate, silent = min(1.0, self._n_settled / self._n), self._n_silent / self._n
        self._n = self._n_silent = self._n_settled = 0
        if self._stopped_before is not None:
            if rate < (1 - policy.rate_drop) * self._stopped_before:
                return
            self._stopped_before = None
        if policy.enabled and silent > _MOST_SILENT:
            usual = 0.0 if self._usual is None else self._usual
            self._reason = (
                "most decisions are of callers whose outcomes have stopped coming"
                f" ({100 * rate:.0f} % have one, usual are {100 * usual:.0f} %)"
            )
            return
        self._reason = None
        if self._usual is None or rate >= (1 - policy.rate_drop) * self._usual:
            self._usual = _mixed(self._usual, rate)


def _mixed(usual: float | None, rate: float) -> float:
    return rate if usual is None else _KEEP * usual + (1 - _KEEP) * rate

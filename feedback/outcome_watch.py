"""OutcomeWatch: when outcomes look so wrong that nothing should be learned from them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from models.learning_policy import FreezePolicy

_KEEP = 0.8
"""Of what the rate was, when a window is added to it: the usual rate is that of some five windows."""

_MAX_CALLERS = 10_000


@dataclass(slots=True)
class _Counts:
    """Of one caller, in its present window."""

    n: int = 0
    n_odd: int = 0
    is_distrusted: bool = False


class OutcomeWatch:
    """Counts decisions and outcomes in windows.

    Where the share of decisions that have an outcome collapses, nothing is learned until a whole window is as usual
    again. Where a caller's outcomes contradict earlier ones, or come out of order, too often, nothing is learned from
    this caller until a whole window of its own is in order.

    >>> watch, policy = OutcomeWatch(), FreezePolicy(window=20)
    >>> for _ in range(40):
    ...     watch.told("web", False, policy); watch.decided(policy)
    >>> for _ in range(20):
    ...     watch.decided(policy)
    >>> watch.reason
    'of the last 20 decisions 0 % have an outcome, before it were 100 %'
    """

    def __init__(self) -> None:
        self._n_decided = self._n_told = 0
        self._usual: float | None = None
        self._reason: str | None = None
        self._callers: OrderedDict[str, _Counts] = OrderedDict()

    @property
    def reason(self) -> str | None:
        """Why nothing should be learned now; None where there is no reason."""
        return self._reason

    @property
    def distrusted(self) -> list[str]:
        """Callers from which nothing is learned now."""
        return [caller for caller, counts in self._callers.items() if counts.is_distrusted]

    def decided(self, policy: FreezePolicy) -> None:
        """Note a decision whose outcome is expected."""
        self._n_decided += 1
        if self._n_decided >= policy.window:
            self._close(policy)

    def told(self, caller: str, is_odd: bool, policy: FreezePolicy) -> None:
        """Note an outcome.

        Args:
            caller: in whose name it came.
            is_odd: whether it contradicts what was told before, or comes before the attempt that it follows.
            policy: what is odd enough.
        """
        self._n_told += 1
        counts = self._callers.pop(caller, None) or _Counts()
        self._callers[caller] = counts
        if len(self._callers) > _MAX_CALLERS:
            self._callers.popitem(last=False)
        counts.n += 1
        counts.n_odd += is_odd
        limit = policy.odd_share * policy.window
        if policy.enabled and counts.n_odd > limit:
            counts.is_distrusted = True
        if counts.n >= policy.window:
            counts.is_distrusted = policy.enabled and counts.n_odd > limit
            counts.n = counts.n_odd = 0

    def trusts(self, caller: str) -> bool:
        """Whether outcomes in this name are learned from."""
        counts = self._callers.get(caller)
        return counts is None or not counts.is_distrusted

    def _close(self, policy: FreezePolicy) -> None:
        # outcomes of earlier decisions count here, those of the last ones in the next window
        rate = min(1.0, self._n_told / self._n_decided)
        n, self._n_decided, self._n_told = self._n_decided, 0, 0
        if policy.enabled and self._usual is not None and rate < (1 - policy.rate_drop) * self._usual:
            usual = round(100 * self._usual)
            self._reason = f"of the last {n} decisions {100 * rate:.0f} % have an outcome, before it were {usual} %"
            return
        self._reason = None
        self._usual = rate if self._usual is None else _KEEP * self._usual + (1 - _KEEP) * rate

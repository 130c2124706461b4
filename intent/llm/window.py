"""Window: a limit on what may be used within a sliding span of time, calls or tokens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Use:
    """An amount taken at an instant."""

    at_ms: float
    amount: float

    def settle(self, amount: float | None) -> None:
        """Put the amount right; None leaves what was taken."""
        if amount is not None:
            self.amount = amount


class Window:
    """A sliding log: exact, and as long as the calls of one span, which the rate limit bounds.

    Own code: what is spent on a call is known only afterwards, so that tokens are reserved first and settled later,
    and one class then serves for the calls as well. aiolimiter waits where we want to pass on, and pyrate-limiter and
    limits cannot put right what was taken; none of the three takes our Clock.

    >>> window = Window(60_000)
    >>> use = window.take(0.0, 100)
    >>> window.used(59_999.0)
    100
    >>> use.settle(20)
    >>> window.used(59_999.0), window.used(60_000.0)
    (20, 0)
    """

    def __init__(self, span_ms: float) -> None:
        self._span_ms = span_ms
        self._uses: deque[Use] = deque()

    def used(self, now_ms: float) -> float:
        """What was taken within the span that ends now."""
        while self._uses and self._uses[0].at_ms <= now_ms - self._span_ms:
            self._uses.popleft()
        return sum(use.amount for use in self._uses)

    def take(self, now_ms: float, amount: float) -> Use:
        """Take an amount, whether or not there is room for it."""
        use = Use(now_ms, amount)
        self._uses.append(use)
        return use

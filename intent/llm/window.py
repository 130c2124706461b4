"""Window: a limit on what may be used within a sliding span of time, calls or tokens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Use:
    """An amount taken at an instant; once the span has passed it, it is over."""

    at_ms: float
    amount: int
    is_over: bool = False


class Window:
    """A sliding log: exact, and as long as the calls of one span, which the rate limit bounds.

    Own code: what is spent on a call is known only afterwards, so that tokens are reserved first and settled later,
    and one class then serves for the calls as well. aiolimiter waits where we want to pass on, and pyrate-limiter and
    limits cannot put right what was taken; none of the three takes our Clock.

    >>> window = Window(60_000)
    >>> use = window.take(0.0, 100)
    >>> window.used(59_999.0)
    100
    >>> window.settle(use, 20)
    >>> window.used(59_999.0), window.used(60_000.0)
    (20, 0)
    """

    def __init__(self, span_ms: float) -> None:
        self._span_ms = span_ms
        self._uses: deque[Use] = deque()
        # kept, since a busy hour has tens of thousands of uses and every question asks for their sum
        self._sum = 0

    def used(self, now_ms: float) -> int:
        """What was taken within the span that ends now."""
        while self._uses and self._uses[0].at_ms <= now_ms - self._span_ms:
            gone = self._uses.popleft()
            self._sum -= gone.amount
            gone.is_over = True
        return self._sum

    def take(self, now_ms: float, amount: int) -> Use:
        """Take an amount, whether or not there is room for it."""
        use = Use(now_ms, amount)
        self._uses.append(use)
        self._sum += amount
        return use

    def settle(self, use: Use, amount: int | None) -> None:
        """Put the amount of a use right; None leaves what was taken."""
        if amount is None:
            return
        if not use.is_over:
            self._sum += amount - use.amount
        use.amount = amount

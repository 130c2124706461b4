"""LlmBreaker: leaves a language model alone that does not answer, and asks now and then whether it is back."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

from models.ports import Clock

Ticket = NewType("Ticket", int)
"""Leave to make one call; tells in which of the breaker's states it was given."""


class BreakerState(StrEnum):
    """Whether calls are let through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class LlmBreaker:
    """A circuit breaker (Nygard, Release It!, 2007) whose half-open state admits exactly one probe.

    CLOSED: all calls pass; `failures` in a row trip it. OPEN: none passes until its time is over. HALF_OPEN: one call
    is under way, the probe; its success closes the breaker, its failure opens it for twice as long as before. What a
    call reports that was admitted in an earlier state changes nothing, but a server's wish to be left alone
    (Retry-After) always opens, at once.

    Own code, since the breakers on the registry (aiobreaker, pybreaker, purgatory, circuitbreaker) take no clock, let
    several calls through when half open, and know no Retry-After.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        failures: int = 5,
        open_ms: float = 10_000.0,
        max_open_ms: float = 300_000.0,
        max_retry_after_ms: float = 3_600_000.0,
    ) -> None:
        """Start closed.

        Args:
            clock: tells when the time in OPEN is over.
            failures: so many in a row trip it.
            open_ms: how long it stays open the first time.
            max_open_ms: how long at most where the server names no time.
            max_retry_after_ms: how long at most, whatever the server asks for.
        """
        if failures < 1 or not 0 < open_ms <= max_open_ms:
            raise ValueError(f"needs failures >= 1 and 0 < open_ms <= max_open_ms, got {failures=}, {open_ms=}, "
                             f"{max_open_ms=}")  # fmt: skip
        self._clock = clock
        self._failures = failures
        self._open_ms = open_ms
        self._max_open_ms = max_open_ms
        self._max_retry_after_ms = max_retry_after_ms
        self._state = BreakerState.CLOSED
        self._epoch = 0
        self._n_failed = 0
        self._n_trips = 0
        self._open_until_ms = 0.0

    @property
    def state(self) -> BreakerState:
        """The state as calls find it; OPEN whose time is over stays OPEN until a probe comes."""
        return self._state

    @property
    def retry_after_ms(self) -> float:
        """How long no call will pass; 0 where one may."""
        if self._state is not BreakerState.OPEN:
            return 0.0
        return max(0.0, self._open_until_ms - self._clock.monotonic_ms())

    def admit(self) -> Ticket | None:
        """Leave to make a call, to be given back to one of the three verbs below; None where none passes."""
        if self._state is BreakerState.HALF_OPEN or self.retry_after_ms > 0:
            return None
        if self._state is BreakerState.OPEN:
            self._enter(BreakerState.HALF_OPEN)
        return Ticket(self._epoch)

    def succeeded(self, ticket: Ticket) -> None:
        """The server answered."""
        if ticket != self._epoch:
            return
        self._n_failed = self._n_trips = 0
        if self._state is BreakerState.HALF_OPEN:
            self._enter(BreakerState.CLOSED)

    def failed(self, ticket: Ticket, retry_after_ms: float | None = None) -> None:
        """The server did not answer, or said for how long it will not."""
        if retry_after_ms is not None:
            self._open_for(min(retry_after_ms, self._max_retry_after_ms), is_current=ticket == self._epoch)
        elif ticket == self._epoch:
            self._n_failed += 1
            if self._state is BreakerState.HALF_OPEN or self._n_failed >= self._failures:
                ms = min(self._open_ms * 2.0 ** min(self._n_trips, 30), self._max_open_ms)
                self._open_for(ms, is_current=True)

    def dropped(self, ticket: Ticket) -> None:
        """The call tells nothing of the server: it was given up, or the fault was the question's."""
        if ticket == self._epoch and self._state is BreakerState.HALF_OPEN:
            self._enter(BreakerState.OPEN)

    def _open_for(self, ms: float, *, is_current: bool) -> None:
        until_ms = self._clock.monotonic_ms() + ms
        if is_current:
            self._n_trips += 1
            self._open_until_ms = until_ms
            self._enter(BreakerState.OPEN)
        elif self._state is not BreakerState.HALF_OPEN:
            self._open_until_ms = max(self._open_until_ms, until_ms)
            if self._state is BreakerState.CLOSED:
                self._enter(BreakerState.OPEN)

    def _enter(self, state: BreakerState) -> None:
        self._state = state
        self._epoch += 1
        self._n_failed = 0

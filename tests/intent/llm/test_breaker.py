from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from intent.llm.breaker import BreakerState, LlmBreaker, Ticket
from tests.builders import FakeClock

OPEN_MS = 1000.0


def breaker_of(clock: FakeClock, failures: int = 3) -> LlmBreaker:
    return LlmBreaker(clock, failures=failures, open_ms=OPEN_MS, max_open_ms=4000.0, max_retry_after_ms=60_000.0)


def state_of(breaker: LlmBreaker) -> BreakerState:
    """The state now; a type checker believes that a property does not change."""
    return breaker.state


def ticket_of(breaker: LlmBreaker) -> Ticket:
    ticket = breaker.admit()
    assert ticket is not None
    return ticket


def tripped(clock: FakeClock) -> LlmBreaker:
    breaker = breaker_of(clock)
    for _ in range(3):
        breaker.failed(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.OPEN
    return breaker


def test_failures_in_a_row_trip_it() -> None:
    breaker = breaker_of(FakeClock())
    for _ in range(2):
        breaker.failed(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.CLOSED
    breaker.failed(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.OPEN
    assert breaker.admit() is None
    assert breaker.retry_after_ms == OPEN_MS


def test_a_success_between_starts_the_count_anew() -> None:
    breaker = breaker_of(FakeClock())
    for _ in range(10):
        breaker.failed(ticket_of(breaker))
        breaker.failed(ticket_of(breaker))
        breaker.succeeded(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.CLOSED


def test_a_call_that_says_nothing_counts_nowhere() -> None:
    breaker = breaker_of(FakeClock())
    breaker.failed(ticket_of(breaker))
    breaker.failed(ticket_of(breaker))
    for _ in range(10):
        breaker.dropped(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.CLOSED
    breaker.failed(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.OPEN


def test_half_open_admits_one_probe() -> None:
    clock = FakeClock()
    breaker = tripped(clock)
    clock.advance(OPEN_MS - 1)
    assert breaker.admit() is None
    clock.advance(1)
    assert breaker.admit() is not None
    assert state_of(breaker) is BreakerState.HALF_OPEN
    assert breaker.admit() is None


def test_a_probe_that_succeeds_closes_it() -> None:
    clock = FakeClock()
    breaker = tripped(clock)
    clock.advance(OPEN_MS)
    breaker.succeeded(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.CLOSED
    breaker.failed(ticket_of(breaker))
    assert state_of(breaker) is BreakerState.CLOSED


def test_probes_that_fail_open_it_ever_longer_up_to_the_bound() -> None:
    clock = FakeClock()
    breaker = tripped(clock)
    waits = []
    for _ in range(4):
        clock.advance(breaker.retry_after_ms)
        breaker.failed(ticket_of(breaker))
        waits.append(breaker.retry_after_ms)
    assert waits == [2000.0, 4000.0, 4000.0, 4000.0]
    clock.advance(4000)
    breaker.succeeded(ticket_of(breaker))
    for _ in range(3):
        breaker.failed(ticket_of(breaker))
    assert breaker.retry_after_ms == OPEN_MS


def test_a_dropped_probe_makes_room_for_the_next() -> None:
    clock = FakeClock()
    breaker = tripped(clock)
    clock.advance(OPEN_MS)
    breaker.dropped(ticket_of(breaker))
    assert breaker.admit() is not None
    assert breaker.admit() is None


@pytest.mark.parametrize(("asked_ms", "waits_ms"), [(7000.0, 7000.0), (0.0, 0.0), (1e12, 60_000.0)])
def test_retry_after_opens_at_once_for_as_long_as_asked(asked_ms: float, waits_ms: float) -> None:
    breaker = breaker_of(FakeClock())
    breaker.failed(ticket_of(breaker), retry_after_ms=asked_ms)
    assert state_of(breaker) is BreakerState.OPEN
    assert breaker.retry_after_ms == waits_ms


def test_a_late_success_does_not_close_it() -> None:
    clock = FakeClock()
    breaker = breaker_of(clock)
    late = ticket_of(breaker)
    for _ in range(3):
        breaker.failed(ticket_of(breaker))
    breaker.succeeded(late)
    assert state_of(breaker) is BreakerState.OPEN
    clock.advance(OPEN_MS)
    probe = ticket_of(breaker)
    for _ in range(3):
        breaker.succeeded(late)
        breaker.failed(late)
        breaker.dropped(late)
    assert state_of(breaker) is BreakerState.HALF_OPEN
    breaker.succeeded(probe)
    assert state_of(breaker) is BreakerState.CLOSED


def test_a_late_retry_after_prolongs_but_never_shortens() -> None:
    clock = FakeClock()
    breaker = breaker_of(clock)
    late, later = ticket_of(breaker), ticket_of(breaker)
    breaker.failed(ticket_of(breaker), retry_after_ms=5000.0)
    breaker.failed(late, retry_after_ms=100.0)
    assert breaker.retry_after_ms == 5000.0
    breaker.failed(later, retry_after_ms=9000.0)
    assert breaker.retry_after_ms == 9000.0


def test_a_late_retry_after_does_not_touch_the_probe() -> None:
    clock = FakeClock()
    breaker = breaker_of(clock)
    late = ticket_of(breaker)
    for _ in range(3):
        breaker.failed(ticket_of(breaker))
    clock.advance(OPEN_MS)
    probe = ticket_of(breaker)
    breaker.failed(late, retry_after_ms=9000.0)
    breaker.succeeded(probe)
    assert state_of(breaker) is BreakerState.CLOSED


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"open_ms": 0.0}, {"open_ms": 10.0, "max_open_ms": 5.0}])
def test_numbers_without_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="needs failures"):
        LlmBreaker(FakeClock(), **wrong)  # type: ignore[arg-type]


class AnyOrder(RuleBasedStateMachine):
    """Calls end in any order and in any way: there is never a second probe, and it always recovers."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.breaker = breaker_of(self.clock)
        self.under_way: list[Ticket] = []

    @rule()
    def admit(self) -> None:
        was = self.breaker.state
        ticket = self.breaker.admit()
        if was is BreakerState.HALF_OPEN:
            assert ticket is None
        if ticket is None:
            return
        self.under_way.append(ticket)

    @rule(ms=st.sampled_from([1.0, 999.0, 5000.0]))
    def advance(self, ms: float) -> None:
        self.clock.advance(ms)

    @rule(data=st.data(), how=st.sampled_from(["succeeded", "failed", "dropped", "retry"]))
    def settle(self, data: st.DataObject, how: str) -> None:
        if not self.under_way:
            return
        ticket = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        if how == "retry":
            self.breaker.failed(ticket, retry_after_ms=3000.0)
        else:
            getattr(self.breaker, how)(ticket)

    @invariant()
    def recovers_once_all_calls_are_settled(self) -> None:
        if not self.under_way:
            assert state_of(self.breaker) is not BreakerState.HALF_OPEN
            assert self.breaker.retry_after_ms <= 60_000.0


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_calls_may_end_in_any_order = AnyOrder.TestCase

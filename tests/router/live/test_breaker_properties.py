"""The breaker against a naive one: lists of all that ever happened, looked through anew for each answer."""

from __future__ import annotations

from random import Random
from typing import ClassVar, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from models.live_policy import BreakerPolicy
from router.live.breaker import Breaker
from router.live.breaker_state import BreakerState, TargetKey

KEY = TargetKey("planner", ("default", "refunds", "1.0.0"))
POLICIES = [
    BreakerPolicy(min_calls=3, window_ms=500, open_ms=100, jitter=0.0, half_open_interval_ms=50),
    BreakerPolicy(
        min_calls=3,
        window_ms=300,
        failure_threshold=2,
        open_ms=100,
        open_growth=2.0,
        max_open_ms=300,
        jitter=0.0,
        half_open_max_calls=3,
        half_open_interval_ms=20,
        successes_to_close=2,
    ),
]


class Counted(NamedTuple):
    n: int
    at_ms: float
    failed: bool


class NaiveBreaker:
    """What `Breaker` should be, without a thought of time or memory."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self.policy = policy
        self.state = BreakerState.CLOSED
        self.until_ms = 0.0
        self.n_reopened = 0
        self.outcomes: list[Counted] = []
        self.probes: dict[int, float] = {}
        self.succeeded: set[int] = set()

    def pass_time(self, now_ms: float) -> None:
        if self.state is BreakerState.OPEN and now_ms >= self.until_ms:
            self.state = BreakerState.HALF_OPEN

    def window(self, now_ms: float) -> list[Counted]:
        return [each for each in self.outcomes if each.at_ms > now_ms - self.policy.window_ms]

    def admits(self, now_ms: float) -> bool:
        recent = [at_ms for at_ms in self.probes.values() if at_ms > now_ms - self.policy.half_open_interval_ms]
        is_free = len(recent) < self.policy.half_open_max_calls
        return self.state is BreakerState.CLOSED or (self.state is BreakerState.HALF_OPEN and is_free)

    def record(self, n: int, failed: bool, now_ms: float, retry_after_ms: float) -> None:
        self.take_back(n, keep_probe_success=True)
        self.outcomes.append(Counted(n, now_ms, failed))
        asked_ms = retry_after_ms if failed else 0.0
        if self.state is BreakerState.OPEN:
            self.until_ms = max(self.until_ms, now_ms + asked_ms)
        elif self.state is BreakerState.HALF_OPEN and n in self.probes:
            if failed:
                self.n_reopened += 1
                self.open(now_ms, asked_ms)
                return
            self.succeeded.add(n)
            if len(self.succeeded) >= self.policy.successes_to_close:
                self.__init__(self.policy)  # type: ignore[misc]
        elif self.state is BreakerState.CLOSED:
            if self.is_over(now_ms, failed):
                self.open(now_ms, asked_ms)
            elif asked_ms:
                self.state, self.until_ms = BreakerState.OPEN, now_ms + asked_ms

    def is_over(self, now_ms: float, failed: bool) -> bool:
        outcomes = "".join("F" if each.failed else "s" for each in self.window(now_ms))
        threshold = self.policy.failure_threshold
        if failed and threshold is not None and outcomes.endswith("F" * threshold):
            return True
        n_failures = outcomes.count("F")
        return len(outcomes) >= self.policy.min_calls and n_failures / len(outcomes) > self.policy.failure_share

    def open(self, now_ms: float, asked_ms: float) -> None:
        grown_ms = self.policy.open_ms * self.policy.open_growth**self.n_reopened
        self.state = BreakerState.OPEN
        self.until_ms = now_ms + max(asked_ms, min(grown_ms, self.policy.max_open_ms))
        self.probes, self.succeeded = {}, set()

    def take_back(self, n: int, keep_probe_success: bool = False) -> None:
        self.outcomes = [each for each in self.outcomes if each.n != n]
        if not keep_probe_success:
            self.succeeded.discard(n)


class AnyOrder(RuleBasedStateMachine):
    """Calls are taken, answered, given up, answered again and taken back in any order, by a fake clock."""

    policy: ClassVar[BreakerPolicy] = POLICIES[0]

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0.0
        self.breaker = Breaker(KEY, Random(0))
        self.naive = NaiveBreaker(self.policy)
        self.n_calls = 0
        self.taken_half_open: list[float] = []

    @initialize(is_half_open=st.sampled_from([False, True, True]))
    def begin(self, is_half_open: bool) -> None:
        if is_half_open:
            for _ in range(self.policy.min_calls):
                self.arrive_at_once(1)
                self.answer(0, True, 0.0)
            self.wait(100.0)

    @rule(ms=st.sampled_from([0.5, 5.0, 10.0, 10.0, 20.0, 50.0, 99.0, 100.0, 300.0]))
    def wait(self, ms: float) -> None:
        self.now_ms += ms
        if ms < 50.0:
            self.breaker.due(self.now_ms)
        self.naive.pass_time(self.now_ms)
        if self.naive.state is not BreakerState.HALF_OPEN:
            self.taken_half_open = []

    @rule(n_arrivals=st.integers(1, 6))
    def arrive_at_once(self, n_arrivals: int) -> None:
        for _ in range(n_arrivals):
            self.n_calls += 1
            expected = self.naive.admits(self.now_ms)
            assert self.breaker.admits(self.now_ms, self.policy) == expected
            assert self.breaker.take(("d", self.n_calls), self.now_ms, self.policy) == expected
            if expected and self.naive.state is BreakerState.HALF_OPEN:
                self.naive.probes[self.n_calls] = self.now_ms
                self.taken_half_open.append(self.now_ms)

    @rule(ms=st.sampled_from([5.0, 10.0, 15.0, 20.0, 45.0, 50.0]))
    def arrive_in_two_bursts(self, ms: float) -> None:
        self.arrive_at_once(4)
        self.wait(ms)
        self.arrive_at_once(4)

    @rule(back=st.integers(0, 3), failed=st.booleans())
    def answer_otherwise_later(self, back: int, failed: bool) -> None:
        self.answer(back, False, 0.0)
        self.take_back(back)
        self.answer(back + 1, False, 0.0)
        self.answer(back, failed, 0.0)

    @rule(back=st.integers(0, 12), failed=st.booleans(), retry_after_ms=st.sampled_from([0.0, 0.0, 0.0, 150.0]))
    def answer(self, back: int, failed: bool, retry_after_ms: float) -> None:
        n = max(0, self.n_calls - back)
        before = self.naive.state
        self.breaker.record(("d", n), failed, self.now_ms, self.policy, retry_after_ms)
        self.naive.record(n, failed, self.now_ms, retry_after_ms)
        if self.naive.state is not before:
            self.taken_half_open = []

    @rule(back=st.integers(0, 12))
    def take_back(self, back: int) -> None:
        n = max(0, self.n_calls - back)
        self.breaker.take_back(("d", n), self.now_ms)
        self.naive.take_back(n)

    @rule(back=st.integers(0, 4))
    def give_up(self, back: int) -> None:
        n = max(0, self.n_calls - back)
        self.breaker.give_up(("d", n))
        if n in self.naive.probes:
            self.taken_half_open.remove(self.naive.probes.pop(n))
        self.naive.succeeded.discard(n)

    @invariant()
    def agrees_with_the_naive_one(self) -> None:
        view = self.breaker.view(self.now_ms)
        window = self.naive.window(self.now_ms)
        assert view.state is self.naive.state
        assert (view.n_calls, view.n_failures) == (len(window), sum(each.failed for each in window))
        assert view.next_change_ms == (self.naive.until_ms if self.naive.state is BreakerState.OPEN else None)

    @invariant()
    def no_interval_of_a_half_open_time_has_more_probes_than_configured(self) -> None:
        for start_ms in self.taken_half_open:
            end_ms = start_ms + self.policy.half_open_interval_ms
            n_probes = sum(start_ms <= at_ms < end_ms for at_ms in self.taken_half_open)
            assert n_probes <= self.policy.half_open_max_calls


class AnyOrderWithGrowth(AnyOrder):
    """The same with several probes, failures in a row and growing open times."""

    policy = POLICIES[1]


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=70, stateful_step_count=50, deadline=None)
TestAnyOrderWithGrowth = AnyOrderWithGrowth.TestCase
TestAnyOrderWithGrowth.settings = settings(max_examples=70, stateful_step_count=50, deadline=None)

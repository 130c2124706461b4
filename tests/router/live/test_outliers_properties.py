"""Ejection by failures in a row against a naive one: lists of all that happened, looked through for each answer."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from models.card import AgentKey
from models.live_policy import EjectionPolicy
from router.live.outliers import Ejection, EjectionReason, Group, Outliers

GROUP: Group = ("default", "refund_status")
SHARES = [0.0, 0.25, 0.34, 0.5, 0.67, 1.0]


def agent(n: int) -> AgentKey:
    return ("default", f"agent-{n}", "1.0.0")


class AnyOrder(RuleBasedStateMachine):
    """Outcomes of up to six agents come in any order, are repeated and taken back, by a fake clock."""

    compares: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0.0
        self.outliers = Outliers()
        self.n_calls = 0
        self.calls: dict[int, list[tuple[int, float, bool]]] = {n: [] for n in range(6)}
        self.until_ms = dict.fromkeys(range(6), 0.0)
        self.nth = dict.fromkeys(range(6), 0)

    @initialize(n_agents=st.integers(1, 6), share=st.sampled_from(SHARES))
    def begin(self, n_agents: int, share: float) -> None:
        self.n_agents = n_agents
        self.policy = EjectionPolicy(
            consecutive_failures=1000 if self.compares else 2,
            min_calls=2 if self.compares else 1000,
            window_ms=300,
            base_ms=100,
            max_ms=250,
            max_ejected_share=share,
        )

    @rule(ms=st.sampled_from([1.0, 10.0, 50.0, 100.0, 299.0, 300.0]))
    def wait(self, ms: float) -> None:
        self.now_ms += ms

    @rule(n=st.integers(0, 5), failed=st.sampled_from([True, True, False]), latency_ms=st.sampled_from([10.0, 100.0]))
    def answer(self, n: int, failed: bool, latency_ms: float) -> None:
        n %= self.n_agents
        self.n_calls += 1
        was_ejected = self.n_ejected()
        ejection = self.outliers.record(
            GROUP, agent(n), ("d", self.n_calls), failed, latency_ms, self.n_agents, self.now_ms, self.policy
        )
        if not self.compares:
            assert ejection == self.expected(n, self.n_calls, failed)
        if ejection is not None:
            assert self.n_ejected() == was_ejected + 1
            assert self.n_ejected() <= Fraction(str(self.policy.max_ejected_share)) * self.n_agents
            assert self.n_agents > 1

    @rule(n=st.integers(0, 5), ms=st.sampled_from([0.0, 100.0, 200.0, 500.0, 700.0]))
    def fail_before_and_after(self, n: int, ms: float) -> None:
        for _ in range(2):
            self.answer(n, True, 10.0)
        self.wait(ms)
        for _ in range(2):
            self.answer(n, True, 10.0)

    def expected(self, n: int, call: int, failed: bool) -> Ejection | None:
        if self.now_ms < self.until_ms[n]:
            return None
        self.calls[n].append((call, self.now_ms, failed))
        recent = [each for each in self.calls[n] if each[1] > self.now_ms - self.policy.window_ms]
        if len(recent) < 2 or not (recent[-1][2] and recent[-2][2]):
            return None
        others = sum(self.now_ms < until_ms for until_ms in self.until_ms.values())
        if self.n_agents == 1 or others + 1 > Fraction(str(self.policy.max_ejected_share)) * self.n_agents:
            return None
        forgotten = int((self.now_ms - self.until_ms[n]) // self.policy.window_ms)
        self.nth[n] = max(0, self.nth[n] - forgotten) + 1
        self.until_ms[n] = self.now_ms + min(self.policy.base_ms * self.nth[n], self.policy.max_ms)
        self.calls[n] = []
        reason = EjectionReason.CONSECUTIVE_FAILURES
        return Ejection(GROUP, agent(n), reason, self.now_ms, self.until_ms[n], self.nth[n])

    @rule(n=st.integers(0, 5), back=st.integers(0, 6))
    def take_back(self, n: int, back: int) -> None:
        call = self.n_calls - back
        self.outliers.take_back(GROUP, agent(n), ("d", call), self.now_ms)
        self.calls[n] = [each for each in self.calls[n] if each[0] != call]

    @rule()
    def tell_what_is_due(self) -> None:
        assert all(each.until_ms <= self.now_ms for each in self.outliers.due(self.now_ms))

    def n_ejected(self) -> int:
        return sum(self.outliers.is_ejected(agent(n), GROUP, self.now_ms) for n in range(6))

    @invariant()
    def those_are_ejected_that_should_be(self) -> None:
        assert self.n_ejected() == len(self.outliers.listed(self.now_ms))
        if not self.compares:
            for n in range(6):
                expected = self.now_ms < self.until_ms[n]
                assert self.outliers.is_ejected(agent(n), GROUP, self.now_ms) == expected


class AnyOrderCompared(AnyOrder):
    """The same with ejections by success rate and latency: here only the cap is asserted."""

    compares = True


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=70, stateful_step_count=50, deadline=None)
TestAnyOrderCompared = AnyOrderCompared.TestCase
TestAnyOrderCompared.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)

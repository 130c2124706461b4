"""Leases against a plain list of who holds what."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from models.card import AgentKey
from router.live.leases import Lease, Leases

AGENTS: list[AgentKey] = [("default", name, "1.0.0") for name in "abc"]
agents = st.sampled_from(AGENTS)
durations = st.integers(0, 40).map(float)
picks = st.integers(0, 1_000_000)


class LeaseMachine(RuleBasedStateMachine):
    """Any order of calls while time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.leases = Leases()
        self.now_ms = 0.0
        self.n_ids = 0
        self.held: dict[str, Lease] = {}
        self.over: list[Lease] = []
        self.ended: Counter[str] = Counter()
        self.taken: list[str] = []

    def n_at(self, agent: AgentKey) -> int:
        return sum(lease.agent == agent for lease in self.held.values())

    def end_overdue(self) -> None:
        for lease in [lease for lease in self.held.values() if lease.expires_ms <= self.now_ms]:
            self.over.append(self.held.pop(lease.lease_id))

    @rule(agent=agents, max_inflight=st.integers(0, 4), duration_ms=durations, n=st.integers(1, 6))
    def take_at_once(self, agent: AgentKey, max_inflight: int, duration_ms: float, n: int) -> None:
        for _ in range(n):
            self.n_ids += 1
            lease = Lease(f"d{self.n_ids}", agent, self.now_ms + duration_ms)
            if self.n_at(agent) >= max_inflight:
                self.end_overdue()
            has_room = self.n_at(agent) < max_inflight
            assert self.leases.take(lease.lease_id, agent, max_inflight, lease.expires_ms, self.now_ms) is has_room
            if has_room:
                self.held[lease.lease_id] = lease
                self.taken.append(lease.lease_id)

    @rule(pick=picks, agent=agents, duration_ms=durations)
    def move(self, pick: int, agent: AgentKey, duration_ms: float) -> None:
        if self.taken:
            lease_id = self.taken[pick % len(self.taken)]
            expires_ms = self.now_ms + duration_ms
            assert self.leases.move(lease_id, agent, expires_ms) is (lease_id in self.held)
            if lease_id in self.held:
                self.held[lease_id] = Lease(lease_id, agent, expires_ms)

    @rule(pick=picks)
    def give_back(self, pick: int) -> None:
        if self.taken:
            lease_id = self.taken[pick % len(self.taken)]
            was_held = self.held.pop(lease_id, None) is not None
            assert self.leases.give_back(lease_id) is was_held
            self.ended[lease_id] += was_held

    @rule(ms=st.integers(0, 25))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def expire(self) -> None:
        self.end_overdue()
        expired = self.leases.expire(self.now_ms)
        assert sorted(expired) == sorted(self.over)
        self.ended.update(lease.lease_id for lease in expired)
        self.over.clear()

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.leases) == len(self.held)
        assert [self.leases.in_flight(agent) for agent in AGENTS] == [self.n_at(agent) for agent in AGENTS]
        assert [id for id in self.taken if self.leases.holds(id)] == [id for id in self.taken if id in self.held]

    def teardown(self) -> None:
        self.now_ms += 1000.0
        self.expire()
        assert self.ended == Counter(dict.fromkeys(self.taken, 1))
        assert len(self.leases) == 0
        assert [self.leases.in_flight(agent) for agent in AGENTS] == [0, 0, 0]


LeaseMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_no_lease_is_counted_twice_or_lost = LeaseMachine.TestCase

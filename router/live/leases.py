"""Leases: the places at agents that decisions hold until an outcome gives them back or their time is over."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from models.card import AgentKey

_SPARE_ENTRIES = 64


class Lease(NamedTuple):
    """A place at an agent.

    Attributes:
        expires_ms: instant of the steady clock at which its time is over.
    """

    lease_id: str
    agent: AgentKey
    expires_ms: float


class Leases:
    """Who holds a place where. Each lease ends exactly once: by `give_back` or in the list of `expire`.

    Memory is that of the leases held, each of which is bounded by its time, plus one number for each agent with any.
    The heap has at most twice as many entries as there are leases, and 64.

    >>> leases, agent = Leases(), ("default", "a", "1.0.0")
    >>> leases.take("d1", agent, 1, expires_ms=100.0, now_ms=0.0), leases.take("d2", agent, 1, 100.0, now_ms=50.0)
    (True, False)
    >>> leases.take("d3", agent, 1, expires_ms=200.0, now_ms=100.0), leases.give_back("d1"), leases.in_flight(agent)
    (True, False, 1)
    >>> [lease.lease_id for lease in leases.expire(100.0)]
    ['d1']
    """

    def __init__(self) -> None:
        self._held: dict[str, Lease] = {}
        self._n_at: dict[AgentKey, int] = {}
        # an entry is dead once its lease is gone or has another instant; the dead are dropped when they come up, or
        # together when they outnumber the living
        self._heap: list[tuple[float, str]] = []
        self._over: list[Lease] = []

    def __len__(self) -> int:
        return len(self._held)

    def holds(self, lease_id: str) -> bool:
        """Whether the lease holds a place."""
        return lease_id in self._held

    def in_flight(self, agent: AgentKey) -> int:
        """Places held at an agent."""
        return self._n_at.get(agent, 0)

    @property
    def counts(self) -> Mapping[AgentKey, int]:
        """Places held, by agent; agents with none are not in it."""
        return self._n_at

    def take(self, lease_id: str, agent: AgentKey, max_inflight: int | None, expires_ms: float, now_ms: float) -> bool:
        """Take a place, unless the agent is full.

        Leases whose time is over keep nobody out, even if `expire` has not been called yet; it lists them later.

        Args:
            lease_id: of a decision.
            agent: where.
            max_inflight: places at the agent; None means that there is no limit.
            expires_ms: instant of the steady clock from which the lease is over.
            now_ms: of the steady clock.

        Returns:
            False where the agent is full.

        Raises:
            ValueError: the lease holds a place already.
        """
        held = self._held.get(lease_id)
        if held is not None:
            raise ValueError(f"lease {lease_id!r} holds a place at {held.agent} already, it was to take one at {agent}")
        if max_inflight is not None and self._n_at.get(agent, 0) >= max_inflight:
            self._end_overdue(now_ms)
            if self._n_at.get(agent, 0) >= max_inflight:
                return False
        self._hold(Lease(lease_id, agent, expires_ms))
        return True

    def move(self, lease_id: str, agent: AgentKey, expires_ms: float) -> bool:
        """The plan went on: the lease holds a place at `agent` instead, be that one full or the same as before.

        The caller is calling that agent already, so refusing would only make the count wrong.

        Returns:
            False where the lease holds no place (any more); nothing is taken then.
        """
        if not self._release(lease_id):
            return False
        self._hold(Lease(lease_id, agent, expires_ms))
        self._compact()
        return True

    def give_back(self, lease_id: str) -> bool:
        """Free the place; False where the lease holds none (any more)."""
        if not self._release(lease_id):
            return False
        self._compact()
        return True

    def expire(self, now_ms: float) -> list[Lease]:
        """Free the places of leases whose time is over and list those leases, each one once, those first over first."""
        self._end_overdue(now_ms)
        over, self._over = self._over, []
        return over

    def _hold(self, lease: Lease) -> None:
        self._held[lease.lease_id] = lease
        self._n_at[lease.agent] = self._n_at.get(lease.agent, 0) + 1
        heappush(self._heap, (lease.expires_ms, lease.lease_id))

    def _release(self, lease_id: str) -> bool:
        lease = self._held.pop(lease_id, None)
        if lease is None:
            return False
        n_left = self._n_at[lease.agent] - 1
        if n_left:
            self._n_at[lease.agent] = n_left
        else:
            del self._n_at[lease.agent]
        return True

    def _end_overdue(self, now_ms: float) -> None:
        while self._heap and self._heap[0][0] <= now_ms:
            expires_ms, lease_id = heappop(self._heap)
            lease = self._held.get(lease_id)
            if lease is not None and lease.expires_ms == expires_ms:
                self._release(lease_id)
                self._over.append(lease)

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._held) + _SPARE_ENTRIES:
            self._heap = [(lease.expires_ms, lease.lease_id) for lease in self._held.values()]
            heapify(self._heap)

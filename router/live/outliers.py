"""Outliers: which agents do worse than the others of their intent, and are left out for a while."""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from math import floor
from typing import NamedTuple, TypeAlias

from models.card import AgentKey
from models.live_policy import EjectionPolicy
from router.live.call_window import CallWindow
from router.live.keys import CallId
from router.live.peer_medians import PeerMedians
from router.live.witnesses import Tellers

Group: TypeAlias = tuple[str, str]
"""Namespace and intent."""

_ROUNDING = 1e-9


class EjectionReason(StrEnum):
    """What an agent did worse."""

    CONSECUTIVE_FAILURES = "consecutive_failures"
    SUCCESS_RATE = "success_rate"
    LATENCY = "latency"


class Ejection(NamedTuple):
    """An agent is left out of a group's plans.

    Attributes:
        at_ms: since when.
        until_ms: when it is back.
        nth: how many ejections, this one included, made the time that long.
    """

    group: Group
    agent: AgentKey
    reason: EjectionReason
    at_ms: float
    until_ms: float
    nth: int


class _Record:
    """What is known of an agent in a group; `last` is its last ejection."""

    __slots__ = ("last", "tellers", "window")

    def __init__(self, max_calls: int) -> None:
        self.window = CallWindow(max_calls)
        self.tellers = Tellers(max_calls)
        self.last: Ejection | None = None

    def n_before(self, now_ms: float, policy: EjectionPolicy) -> int:
        """Ejections not forgotten: one is for every `window_ms` since the last was over."""
        if self.last is None:
            return 0
        return max(0, self.last.nth - int(max(0.0, now_ms - self.last.until_ms) // policy.window_ms))


class Outliers:
    """Outlier ejection (Envoy's documentation, "Outlier detection") in groups of the agents that serve one intent.

    An outcome ejects its agent where, within `window_ms`,

    - the last `consecutive_failures` of its calls failed, whatever others do, or
    - it has `min_calls`, and its success rate lies more than `success_gap` below the median of its peers, or
    - it has `min_calls` successes of known latency, and their mean is more than `latency_factor` times the median of
      its peers' means (failures do not count: a fast one would hide how slow an agent is, a time-out is a failure).

    Peers are the other agents of the group with as many calls, ejected ones left out. With fewer than two the
    comparison is left out, since of two agents that differ nothing tells which is the outlier. Medians may be older
    than the outcome by as many outcomes as the group has agents, and by a sixtieth of the window (`PeerMedians`).

    Where tellers are named, failures count as `Tellers` says, and those in a row eject only where they are spread.

    No act makes more than floor(max_ejected_share * n_agents) of a group ejected, and one alone never is. An ejection
    ends by time alone: after `base_ms` times the number of ejections, this one included, at most `max_ms`. One earlier
    ejection is forgotten for each `window_ms` that an agent is back. Its window begins empty when it is back; outcomes
    that come while it is ejected count for nothing.

    At most `max_records` (group, agent) pairs are kept; those without calls in the window and without ejections to
    remember are let go of as outcomes come in. At the bound goes the pair whose last outcome is the oldest, an ejected
    one only where all are. `now_ms` is of a clock that never goes back.
    """

    def __init__(self, max_records: int = 20_000, max_calls: int = 1000) -> None:
        """Start without knowledge; `max_calls` is how many of the newest calls a window holds at most."""
        if max_records < 1:
            raise ValueError(f"needs max_records >= 1, got {max_records}")
        self._max_records = max_records
        self._max_calls = max_calls
        self._records: OrderedDict[tuple[Group, AgentKey], _Record] = OrderedDict()
        self._peers: dict[Group, PeerMedians] = {}
        self._ejected: dict[Group, dict[AgentKey, Ejection]] = {}

    def __len__(self) -> int:
        return len(self._records)

    @property
    def has_ejected(self) -> bool:
        """False only where nobody is ejected anywhere."""
        return bool(self._ejected)

    def record(
        self,
        group: Group,
        agent: AgentKey,
        call_id: CallId,
        failed: bool,
        latency_ms: float | None,
        n_agents: int,
        now_ms: float,
        policy: EjectionPolicy,
        *,
        began_ms: float | None = None,
        teller: str | None = None,
        share: float = 1.0,
    ) -> Ejection | None:
        """Count an outcome; the ejection that follows from it, None where none does.

        Args:
            group: of the agent's peers.
            agent: whose outcome it is.
            call_id: the call; where it is in the window already it is replaced.
            failed: whether the failure is the agent's.
            latency_ms: None where it is unknown.
            n_agents: how many agents the group has now.
            now_ms: when the outcome came.
            policy: where it is not `enabled`, what is known of the group is forgotten and nobody of it is ejected.
            began_ms: when the call was taken. One from before the agent's last ejection was over counts for nothing;
                None where that is unknown: it counts.
            teller: in whose name it came; None where that is unknown: it counts, and ejects alone.
            share: of the outcomes of other tellers, 0..1: up to it a teller's failures count.
        """
        if not policy.enabled:
            self._forget_group(group)
            return None
        record = self._find_or_make(group, agent, now_ms)
        last = record.last
        if last is not None and (now_ms < last.until_ms or (began_ms is not None and began_ms < last.until_ms)):
            return None
        tellers = record.tellers
        if teller is not None and not tellers.counts(teller, call_id, failed, now_ms, policy.window_ms, share):
            record.window.remove(call_id)
            return None
        record.window.add(call_id, failed, now_ms, policy.window_ms, None if failed else latency_ms)
        peers = self._peers[group]
        peers.n_outcomes += 1
        self._sweep(now_ms)
        reason = self._cause(peers, agent, record, now_ms, policy, teller is None)
        if reason is None or self._n_ejected(group, now_ms) >= _most_ejected(n_agents, policy):
            return None
        nth = record.n_before(now_ms, policy) + 1
        until_ms = now_ms + min(policy.base_ms * nth, max(policy.base_ms, policy.max_ms))
        return self._eject(Ejection(group, agent, reason, now_ms, until_ms, nth), record)

    def take_back(self, group: Group, agent: AgentKey, call_id: CallId, now_ms: float) -> None:
        """An outcome counts no more: all counts become what they would be without it; an ejection stays."""
        record = self._records.get((group, agent))
        if record is not None:
            record.window.trim(now_ms)
            record.window.remove(call_id)
            record.tellers.take_back(call_id)

    def is_ejected(self, agent: AgentKey, group: Group, now_ms: float) -> bool:
        """Whether it is to be left out, unless the group is in panic."""
        ejected = self._ejected.get(group)
        if ejected is None:
            return False
        ejection = ejected.get(agent)
        return ejection is not None and now_ms < ejection.until_ms

    def in_panic(self, group: Group, n_agents: int, n_unavailable: int, now_ms: float, policy: EjectionPolicy) -> bool:
        """Whether less than `panic_share` of the group is able, so that ejections count for nothing.

        Args:
            group: the group.
            n_agents: how many agents it has.
            n_unavailable: those of them that are neither ejected nor able.
            now_ms: the time.
            policy: of the namespace.
        """
        n_ejected = self._n_ejected(group, now_ms)
        return n_ejected > 0 and n_agents - n_ejected - n_unavailable < policy.panic_share * n_agents - _ROUNDING

    def due(self, now_ms: float) -> list[Ejection]:
        """The ejections that are over, each told once; it is for those who write events.

        Whether anybody asks changes nothing in what `is_ejected` says.
        """
        over = [each for ejected in self._ejected.values() for each in ejected.values() if each.until_ms <= now_ms]
        for ejection in over:
            self._leave_ejected(ejection.group, ejection.agent)
        return sorted(over, key=lambda ejection: ejection.until_ms)

    def listed(self, now_ms: float) -> list[Ejection]:
        """The ejections that are not over."""
        return [each for ejected in self._ejected.values() for each in ejected.values() if now_ms < each.until_ms]

    def _cause(
        self,
        peers: PeerMedians,
        agent: AgentKey,
        record: _Record,
        now_ms: float,
        policy: EjectionPolicy,
        is_alone: bool,
    ) -> EjectionReason | None:
        window, n_in_a_row = record.window, policy.consecutive_failures
        if window.n_failed_in_a_row >= n_in_a_row and (is_alone or record.tellers.are_spread(n_in_a_row)):
            return EjectionReason.CONSECUTIVE_FAILURES
        if window.n_calls >= policy.min_calls:
            rate = peers.success_rate_beside(agent, now_ms, policy)
            if rate is not None and window.success_rate < rate - policy.success_gap - _ROUNDING:
                return EjectionReason.SUCCESS_RATE
        if window.n_latencies >= policy.min_calls:
            mean_ms = peers.latency_ms_beside(agent, now_ms, policy)
            if mean_ms is not None and window.mean_latency_ms > mean_ms * policy.latency_factor:
                return EjectionReason.LATENCY
        return None

    def _n_ejected(self, group: Group, now_ms: float) -> int:
        ejected = self._ejected.get(group)
        return 0 if ejected is None else sum(now_ms < each.until_ms for each in ejected.values())

    def _eject(self, ejection: Ejection, record: _Record) -> Ejection:
        record.last = ejection
        record.window.clear()
        record.tellers.begin_anew()
        self._ejected.setdefault(ejection.group, {})[ejection.agent] = ejection
        self._peers[ejection.group].expire()
        return ejection

    def _find_or_make(self, group: Group, agent: AgentKey, now_ms: float) -> _Record:
        key = (group, agent)
        record = self._records.get(key)
        if record is not None:
            self._records.move_to_end(key)
            return record
        if len(self._records) >= self._max_records:
            self._make_room(now_ms)
        record = self._records[key] = _Record(self._max_calls)
        peers = self._peers.get(group)
        if peers is None:
            peers = self._peers[group] = PeerMedians()
        peers.windows[agent] = record.window
        return record

    def _make_room(self, now_ms: float) -> None:
        for _ in range(len(self._records)):
            group, agent = next(iter(self._records))
            if not self.is_ejected(agent, group, now_ms):
                break
            self._records.move_to_end((group, agent))
        self._forget(*next(iter(self._records)))

    def _sweep(self, now_ms: float) -> None:
        (group, agent), record = next(iter(self._records.items()))
        record.window.trim(now_ms)
        if record.window.n_calls:
            return
        if record.last is None or now_ms >= record.last.until_ms + record.last.nth * record.window.window_ms:
            self._forget(group, agent)
        else:
            # what has only an ejection to remember must not keep the next ones from being looked at
            self._records.move_to_end((group, agent))

    def _forget(self, group: Group, agent: AgentKey) -> None:
        del self._records[group, agent]
        peers = self._peers[group]
        del peers.windows[agent]
        if not peers.windows:
            del self._peers[group]
        self._leave_ejected(group, agent)

    def _forget_group(self, group: Group) -> None:
        peers = self._peers.get(group)
        for agent in list(peers.windows) if peers is not None else ():
            self._forget(group, agent)

    def _leave_ejected(self, group: Group, agent: AgentKey) -> None:
        ejected = self._ejected.get(group)
        if ejected is not None and ejected.pop(agent, None) is not None and not ejected:
            del self._ejected[group]


def _most_ejected(n_agents: int, policy: EjectionPolicy) -> int:
    return floor(policy.max_ejected_share * n_agents + _ROUNDING) if n_agents > 1 else 0

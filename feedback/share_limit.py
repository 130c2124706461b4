"""ShareLimit: how fast an agent's share of an intent may rise. Falls are never limited."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from models.card import AgentKey

HOUR_MS = 3_600_000.0
_LEAST = 20
"""Decisions of an hour before which shares of it say nothing."""

_MAX_GROUPS = 10_000


@dataclass(slots=True)
class _Hours:
    """Decisions by agent within the present hour and the one before."""

    began_ms: float
    now: dict[AgentKey, int] = field(default_factory=dict)
    before: dict[AgentKey, int] = field(default_factory=dict)


class ShareLimit:
    """Counts decisions by group (an intent of a namespace) and hour, on a steady clock.

    >>> limit, old, new = ShareLimit(), ("default", "old", "1.0.0"), ("default", "new", "1.0.0")
    >>> for n in range(100):
    ...     limit.note("refund", old, 0.0)
    >>> for n in range(30):
    ...     limit.note("refund", old if n % 5 else new, HOUR_MS)
    >>> limit.allows("refund", new, HOUR_MS, max_rise=0.1), limit.allows("refund", old, HOUR_MS, max_rise=0.1)
    (False, True)
    """

    def __init__(self) -> None:
        self._groups: OrderedDict[Hashable, _Hours] = OrderedDict()

    def note(self, group: Hashable, agent: AgentKey, now_ms: float) -> None:
        """An agent was chosen."""
        hours = self._hours(group, now_ms)
        hours.now[agent] = hours.now.get(agent, 0) + 1

    def allows(self, group: Hashable, agent: AgentKey, now_ms: float, max_rise: float) -> bool:
        """Whether one more decision leaves the agent's share within what it was in the hour before, plus `max_rise`.

        Without an hour before there is nothing that it could have risen from.
        """
        hours = self._hours(group, now_ms)
        n_before, n_now = sum(hours.before.values()), sum(hours.now.values())
        if not n_before or n_now < _LEAST:
            return True
        most = hours.before.get(agent, 0) / n_before + max_rise
        return (hours.now.get(agent, 0) + 1) / (n_now + 1) <= most

    def _hours(self, group: Hashable, now_ms: float) -> _Hours:
        hours = self._groups.get(group)
        if hours is None:
            hours = self._groups[group] = _Hours(now_ms)
            if len(self._groups) > _MAX_GROUPS:
                self._groups.popitem(last=False)
        elif now_ms - hours.began_ms >= HOUR_MS:
            is_next = now_ms - hours.began_ms < 2 * HOUR_MS
            hours.before, hours.now, hours.began_ms = (hours.now if is_next else {}), {}, now_ms
        return hours

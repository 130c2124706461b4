"""Sessions: which agent of a session awaits an answer, and how often in a row its agents have failed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from models.card import AgentKey

MAX_SESSIONS = 100_000


class SessionKey(NamedTuple):
    """A session as its caller names it: another caller's session of the same name is another session.

    Attributes:
        caller: who asks, as known by its key; None means that callers cannot be told apart.
        namespace: of the request.
        session_id: from the request.
    """

    caller: str | None
    namespace: str
    session_id: str


class Waiting(NamedTuple):
    """An agent that asked back.

    Attributes:
        intent: that it was asked for.
        until_ms: instant of the steady clock from which it no longer waits.
    """

    agent: AgentKey
    intent: str
    until_ms: float


class _Failures(NamedTuple):
    n: int
    until_ms: float


class Sessions:
    """A memory that expires. It tells, and pins nothing: a clear new intent is the reader's to prefer.

    Bounds: of `max_sessions` sessions that wait, and as many that have failures, the one heard of longest ago is
    forgotten: its next answer is routed as any request is, and its failures count from 0 again.

    >>> sessions, session, agent = Sessions(), SessionKey("shop", "default", "s1"), ("default", "a", "1.0.0")
    >>> sessions.awaits(session, agent, "refund", now_ms=0.0, ttl_ms=900.0)
    >>> sessions.waiting(session, now_ms=899.0).intent, sessions.waiting(session, now_ms=900.0)
    ('refund', None)
    """

    def __init__(self, *, max_sessions: int = MAX_SESSIONS) -> None:
        self._max_sessions = max_sessions
        self._waiting: OrderedDict[SessionKey, Waiting] = OrderedDict()
        self._failures: OrderedDict[SessionKey, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._failures)

    def awaits(self, session: SessionKey, agent: AgentKey, intent: str, now_ms: float, ttl_ms: float) -> None:
        """An agent asked back; it takes the place of one that did before.

        Args:
            session: of the request that it served.
            agent: that waits.
            intent: that it was asked for.
            now_ms: of the steady clock.
            ttl_ms: how long it waits; 0 means not at all.
        """
        self._waiting.pop(session, None)
        if ttl_ms > 0:
            _trim(self._waiting, now_ms, self._max_sessions)
            self._waiting[session] = Waiting(agent, intent, now_ms + ttl_ms)

    def waiting(self, session: SessionKey, now_ms: float) -> Waiting | None:
        """Who waits for the session's answer; None where nobody does."""
        waiting = self._waiting.get(session)
        if waiting is not None and waiting.until_ms <= now_ms:
            del self._waiting[session]
            return None
        return waiting

    def done(self, session: SessionKey) -> bool:
        """The answer was given, or another intent came; False where nobody waited."""
        return self._waiting.pop(session, None) is not None

    def failed_again(self, session: SessionKey, now_ms: float, ttl_ms: float) -> int:
        """An agent failed the session, whichever it was.

        Args:
            session: of the request.
            now_ms: of the steady clock.
            ttl_ms: after so long without another failure they count from 0.

        Returns:
            How many failed in a row, this one included.
        """
        n = self.n_failures(session, now_ms) + 1
        self._failures.pop(session, None)
        _trim(self._failures, now_ms, self._max_sessions)
        self._failures[session] = _Failures(n, now_ms + ttl_ms)
        return n

    def n_failures(self, session: SessionKey, now_ms: float) -> int:
        """How many agents failed the session in a row."""
        failures = self._failures.get(session)
        return 0 if failures is None or failures.until_ms <= now_ms else failures.n

    def forget(self, session_id: str, caller: str | None) -> None:
        """Forget all sessions of a name, or those of one caller; None as caller means of any."""
        memories: tuple[dict[SessionKey, Any], ...] = (self._waiting, self._failures)
        for memory in memories:
            for key in [key for key in memory if key.session_id == session_id and caller in (None, key.caller)]:
                del memory[key]

    def succeeded(self, session: SessionKey) -> None:
        """An agent served the session: its failures count from 0."""
        self._failures.pop(session, None)


def _trim(memory: OrderedDict[SessionKey, Waiting] | OrderedDict[SessionKey, _Failures], now_ms: float, n: int) -> None:
    """Make room for one more, and drop the oldest whose time is over; two at most, so that no call takes long."""
    for _ in range(2):
        oldest = next(iter(memory), None)
        if oldest is None or (memory[oldest].until_ms > now_ms and len(memory) < n):
            return
        del memory[oldest]

"""Breakers: the board of all breakers, from callers to agents (SPEC R9) and before shared dependencies (SPEC A13)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from random import Random
from types import MappingProxyType

from models.card import AgentKey
from models.live_policy import BreakerPolicy, DependencyPolicy
from router.live.breaker import NAMED, Breaker
from router.live.breaker_state import (
    BreakerKey,
    BreakerReason,
    BreakerState,
    BreakerView,
    DependencyKey,
    TargetKey,
    Transition,
)
from router.live.keys import CallId

_NO_TARGETS: Mapping[AgentKey, Breaker] = MappingProxyType({})


class Breakers:
    """One breaker for each key that outcomes came for lately; what has none is closed.

    Breakers that are not closed lie apart, so that the usual look, at a target that is well, is one miss in a small
    dict.

    At most `max_breakers` are kept, each with the newest `max_calls` calls of its window. Closed ones without calls in
    their window are let go of as outcomes come in; at the bound goes the closed one whose last outcome is the oldest,
    and only where all are open or half open, the one of them that has been so for the longest time.

    Args:
        rng: draws the jitter of open times.
        max_breakers: bound on the number of breakers.
        max_calls: bound on the calls of a breaker: with more of them in `window_ms` its window is a shorter one. About
            200 bytes each.
    """

    def __init__(self, rng: Random, max_breakers: int = 10_000, max_calls: int = 2000) -> None:
        if max_breakers < 1:
            raise ValueError(f"a board needs max_breakers >= 1, got {max_breakers}")
        self._rng = rng
        self._max_breakers = max_breakers
        self._max_calls = max_calls
        self._closed: OrderedDict[BreakerKey, Breaker] = OrderedDict()
        self._troubled: OrderedDict[BreakerKey, Breaker] = OrderedDict()
        self._troubled_targets: dict[str, dict[AgentKey, Breaker]] = {}

    def __len__(self) -> int:
        return len(self._closed) + len(self._troubled)

    def troubled_targets(self, caller: str) -> Mapping[AgentKey, Breaker]:
        """The breakers of a caller that are not closed, by target; targets that are not in here are admitted."""
        return self._troubled_targets.get(caller, _NO_TARGETS)

    def admits(self, key: BreakerKey, now_ms: float, policy: BreakerPolicy) -> bool:
        """Whether `take` would let a call through now; changes nothing."""
        breaker = self._troubled.get(key)
        return breaker is None or breaker.admits(now_ms, policy)

    def take(self, key: BreakerKey, call_id: CallId, now_ms: float, policy: BreakerPolicy) -> bool:
        """Let a call through, or not (`Breaker.take`). One that several breakers have to let through asks each of them.

        Where a later one refuses, `give_up` the call at the earlier ones.
        """
        breaker = self._troubled.get(key)
        return breaker is None or breaker.take(call_id, now_ms, policy)

    def give_up(self, key: BreakerKey, call_id: CallId) -> None:
        """A call that was let through is not made (`Breaker.give_up`)."""
        breaker = self._troubled.get(key)
        if breaker is not None:
            breaker.give_up(call_id)

    def record(
        self,
        key: TargetKey,
        call_id: CallId,
        failed: bool,
        now_ms: float,
        policy: BreakerPolicy,
        retry_after_ms: float | None = None,
        *,
        began_ms: float | None = None,
    ) -> tuple[Transition, ...]:
        """Count an outcome that is charged to an agent (`Breaker.record`), and tell what changed, oldest first."""
        if not policy.enabled:
            return self._forget(key, BreakerReason.SWITCHED_OFF, now_ms)
        breaker, forgotten = self._find_or_make(key, now_ms)
        changes = breaker.record(call_id, failed, now_ms, policy, retry_after_ms, began_ms=began_ms)
        return self._settle(key, breaker, forgotten + changes, now_ms)

    def record_dependency(
        self,
        key: DependencyKey,
        call_id: CallId,
        failed: bool,
        agent: AgentKey,
        n_dependents: int,
        now_ms: float,
        policy: DependencyPolicy,
        *,
        named: bool = False,
        began_ms: float | None = None,
    ) -> tuple[Transition, ...]:
        """Count an outcome of an agent that depends on `key`, and tell what changed, oldest first.

        The window opens the breaker only where its failures came from `policy.min_agents` agents, or from all that
        there are, or where one of them named the dependency. A Retry-After is the agent's and counts for nothing here.

        Args:
            key: the dependency.
            call_id: the call.
            failed: whether the failure may be the dependency's.
            agent: whose call it was.
            n_dependents: how many agents depend on it.
            now_ms: when the outcome came.
            policy: of the namespace.
            named: whether the outcome said that it was this dependency that failed.
            began_ms: as in `Breaker.record`.
        """
        if not policy.enabled:
            return self._forget(key, BreakerReason.SWITCHED_OFF, now_ms)
        breaker, forgotten = self._find_or_make(key, now_ms)
        changes = breaker.record(
            call_id,
            failed,
            now_ms,
            policy,
            began_ms=began_ms,
            source=NAMED if named else agent,
            min_sources=min(policy.min_agents, n_dependents),
        )
        return self._settle(key, breaker, forgotten + changes, now_ms)

    def take_back(self, key: BreakerKey, call_id: CallId, now_ms: float) -> None:
        """An outcome counts no more (`Breaker.take_back`)."""
        breaker = self._find(key)
        if breaker is not None:
            breaker.take_back(call_id, now_ms)

    def due(self, now_ms: float) -> list[Transition]:
        """The open times that are over and of which nothing has told yet; looks at each breaker that is not closed.

        Calls meet the state that it is by its time whether this is asked or not; it is for those who write events.
        """
        changes = [breaker.due(now_ms) for breaker in self._troubled.values()]
        return sorted((change for change in changes if change is not None), key=lambda change: change.at_ms)

    def view(self, key: BreakerKey, now_ms: float) -> BreakerView | None:
        """What a breaker shows of itself; None where there is none, as it is closed and had no outcome lately."""
        breaker = self._find(key)
        return None if breaker is None else breaker.view(now_ms)

    def listed(self, now_ms: float) -> list[BreakerView]:
        """All breakers, those first that are not closed."""
        return [breaker.view(now_ms) for held in (self._troubled, self._closed) for breaker in held.values()]

    def _find(self, key: BreakerKey) -> Breaker | None:
        return self._closed.get(key) or self._troubled.get(key)

    def _find_or_make(self, key: BreakerKey, now_ms: float) -> tuple[Breaker, tuple[Transition, ...]]:
        breaker = self._find(key)
        if breaker is not None:
            return breaker, ()
        forgotten: tuple[Transition, ...] = ()
        if len(self) >= self._max_breakers:
            oldest = next(iter(self._closed or self._troubled))
            forgotten = self._forget(oldest, BreakerReason.FORGOTTEN, now_ms)
        breaker = self._closed[key] = Breaker(key, self._rng, self._max_calls)
        return breaker, forgotten

    def _settle(
        self, key: BreakerKey, breaker: Breaker, changes: tuple[Transition, ...], now_ms: float
    ) -> tuple[Transition, ...]:
        if breaker.is_closed:
            if self._troubled.pop(key, None) is not None:
                self._leave_caller(key)
            self._closed[key] = breaker
            self._closed.move_to_end(key)
        elif self._closed.pop(key, None) is not None:
            self._troubled[key] = breaker
            if isinstance(key, TargetKey):
                self._troubled_targets.setdefault(key.caller, {})[key.target] = breaker
        self._sweep(now_ms)
        return changes

    def _sweep(self, now_ms: float) -> None:
        # one for each outcome is enough: no more than one is made for each
        oldest = next(iter(self._closed), None)
        if oldest is not None and self._closed[oldest].is_idle(now_ms):
            del self._closed[oldest]

    def _forget(self, key: BreakerKey, reason: BreakerReason, now_ms: float) -> tuple[Transition, ...]:
        self._closed.pop(key, None)
        breaker = self._troubled.pop(key, None)
        if breaker is None:
            return ()
        self._leave_caller(key)
        state = breaker.view(now_ms).state
        return (Transition(key, state, BreakerState.CLOSED, reason, now_ms, None),)

    def _leave_caller(self, key: BreakerKey) -> None:
        if isinstance(key, TargetKey):
            targets = self._troubled_targets[key.caller]
            del targets[key.target]
            if not targets:
                del self._troubled_targets[key.caller]

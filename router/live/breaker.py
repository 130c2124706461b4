"""Breaker: the circuit breaker (Nygard, Release It!, 2007) of one target or dependency, a state machine without I/O."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from math import inf
from random import Random

from models.live_policy import BreakerPolicy
from router.live.breaker_state import BreakerKey, BreakerReason, BreakerState, BreakerView, Transition
from router.live.call_window import CallWindow
from router.live.keys import CallId

NAMED = "named"
"""The source of failures that are known to be the breaker's own: one of them is spread enough for any `min_sources`."""

_MAX_PLACES = 1000
_MAX_PROBES = 2 * _MAX_PLACES
_MAX_EXPONENT = 300


class Breaker:
    """Closed: all calls pass. Open: none, for a time. Half open: a few probes, whose outcomes decide.

    The window holds every outcome recorded in the last `window_ms` since the breaker last closed. Only while it is
    closed does the window open it: where the share of failures is over `failure_share` among at least `min_calls`, or
    with `failure_threshold` failures in a row within the window. While it is open no outcome changes its state. While
    it is half open only the outcomes of this half-open time's probes do: one failure opens it again,
    `successes_to_close` successes close it. A failure with a Retry-After opens a closed breaker for that time and
    lengthens an open one's; while it is half open, it counts with a probe only.

    The policy comes with each call and may change in between. `now_ms` is of a clock that never goes back.

    Args:
        key: names it in what it returns.
        rng: draws the jitter of open times.
        max_calls: at most so many calls are in the window, the newest.
    """

    __slots__ = (
        "_n_reopened",
        "_places",
        "_probes",
        "_reason",
        "_rng",
        "_since_ms",
        "_state",
        "_succeeded",
        "_until_ms",
        "_window",
        "key",
    )

    def __init__(self, key: BreakerKey, rng: Random, max_calls: int = 2000) -> None:
        self.key = key
        self._rng = rng
        self._window = CallWindow(max_calls)
        self._state = BreakerState.CLOSED
        self._reason: BreakerReason | None = None
        self._since_ms = -inf
        self._until_ms = -inf
        self._n_reopened = 0
        # when the newest probes were let through: what their rate is held by
        self._places: deque[float] = deque(maxlen=_MAX_PLACES)
        self._probes: OrderedDict[CallId, float] = OrderedDict()
        self._succeeded: set[CallId] = set()

    @property
    def is_closed(self) -> bool:
        """Whether all calls pass."""
        return self._state is BreakerState.CLOSED

    def admits(self, now_ms: float, policy: BreakerPolicy) -> bool:
        """Whether `take` would let a call through now; changes nothing."""
        if self._state is BreakerState.CLOSED or not policy.enabled:
            return True
        if now_ms < self._until_ms:
            return False
        places, n_max = self._places, policy.half_open_max_calls
        return len(places) < n_max or places[-n_max] + policy.half_open_interval_ms <= now_ms

    def take(self, call_id: CallId, now_ms: float, policy: BreakerPolicy) -> bool:
        """Let a call through, or not.

        While half open it becomes a probe: in any `half_open_interval_ms` of one half-open time at most
        `half_open_max_calls` are let through. The same call twice is one probe.
        """
        if self._state is BreakerState.CLOSED or not policy.enabled or call_id in self._probes:
            return True
        if not self.admits(now_ms, policy):
            return False
        self._places.append(now_ms)
        self._probes[call_id] = now_ms
        if len(self._probes) > _MAX_PROBES:
            self._probes.popitem(last=False)
        return True

    def give_up(self, call_id: CallId) -> None:
        """This call was not made: a probe's place is free again at once, and what comes of it is no probe's outcome.

        Without this the place is free after `half_open_interval_ms`, and the outcome counts whenever it comes.
        """
        taken_ms = self._probes.pop(call_id, None)
        if taken_ms is not None and taken_ms in self._places:
            self._places.remove(taken_ms)
        self._succeeded.discard(call_id)

    def record(
        self,
        call_id: CallId,
        failed: bool,
        now_ms: float,
        policy: BreakerPolicy,
        retry_after_ms: float | None = None,
        *,
        began_ms: float | None = None,
        source: Hashable | None = None,
        min_sources: int = 1,
    ) -> tuple[Transition, ...]:
        """Count an outcome, and tell which changes that made, oldest first (the end of an open time may be among them).

        Args:
            call_id: the call; where it is in the window already it is replaced.
            failed: whether the failure is the target's.
            now_ms: when the outcome came.
            policy: where it is not `enabled`, the outcome counts for nothing.
            retry_after_ms: the target asked not to be called for so long; counts with a failure only.
            began_ms: when the call was let through. One from before the breaker last closed counts for nothing, as the
                closing knows better; None where that is unknown: it counts.
            source: where a failure came from, or NAMED.
            min_sources: failures of fewer sources do not open it.
        """
        due = self.due(now_ms)
        changes = () if due is None else (due,)
        is_stale = began_ms is not None and began_ms < self._since_ms and self._state is BreakerState.CLOSED
        if is_stale or not policy.enabled:
            return changes
        self._window.add(call_id, failed, now_ms, policy.window_ms, source=source)
        change = self._judge(call_id, failed, now_ms, policy, retry_after_ms if failed else None, min_sources)
        return changes if change is None else (*changes, change)

    def take_back(self, call_id: CallId, now_ms: float) -> None:
        """An outcome counts no more: all counts become what they would be without it; the state stays.

        A probe is a probe again whose outcome is still to come.
        """
        self._window.trim(now_ms)
        self._window.remove(call_id)
        self._succeeded.discard(call_id)

    def due(self, now_ms: float) -> Transition | None:
        """The end of the open time, told once; None where there is none to tell.

        Whether anybody asks changes nothing in what calls meet: half open is what an open breaker is by its time.
        """
        if self._state is not BreakerState.OPEN or now_ms < self._until_ms:
            return None
        return self._enter(BreakerState.HALF_OPEN, BreakerReason.OPEN_TIME_OVER, self._until_ms)

    def view(self, now_ms: float) -> BreakerView:
        """State and counts now; the window's length is that of the last outcome's policy."""
        self._window.trim(now_ms)
        state, reason, since_ms = self._state, self._reason, self._since_ms
        if state is BreakerState.OPEN and now_ms >= self._until_ms:
            state, reason, since_ms = BreakerState.HALF_OPEN, BreakerReason.OPEN_TIME_OVER, self._until_ms
        return BreakerView(
            self.key,
            state,
            reason,
            self._window.n_calls,
            self._window.n_failures,
            None if since_ms == -inf else since_ms,
            self._until_ms if state is BreakerState.OPEN else None,
        )

    def is_idle(self, now_ms: float) -> bool:
        """Whether it is closed and no call is in its window: nothing is lost by forgetting it."""
        self._window.trim(now_ms)
        return self._state is BreakerState.CLOSED and self._window.n_calls == 0

    def _judge(
        self,
        call_id: CallId,
        failed: bool,
        now_ms: float,
        policy: BreakerPolicy,
        retry_after_ms: float | None,
        min_sources: int,
    ) -> Transition | None:
        if self._state is BreakerState.OPEN:
            self._until_ms = max(self._until_ms, now_ms + (retry_after_ms or 0.0))
            return None
        if self._state is BreakerState.HALF_OPEN:
            if call_id not in self._probes:
                return None
            return self._judge_probe(call_id, failed, now_ms, policy, retry_after_ms)
        reason = self._cause(policy, min_sources)
        if reason is not None:
            return self._open(reason, now_ms, max(self._draw_open_ms(policy), retry_after_ms or 0.0))
        if retry_after_ms:
            return self._open(BreakerReason.RETRY_AFTER, now_ms, retry_after_ms)
        return None

    def _judge_probe(
        self, call_id: CallId, failed: bool, now_ms: float, policy: BreakerPolicy, retry_after_ms: float | None
    ) -> Transition | None:
        if failed:
            self._n_reopened += 1
            open_ms = max(self._draw_open_ms(policy), retry_after_ms or 0.0)
            return self._open(BreakerReason.PROBE_FAILED, now_ms, open_ms)
        self._succeeded.add(call_id)
        if len(self._succeeded) < policy.successes_to_close:
            return None
        self._n_reopened = 0
        self._window.clear()
        self._forget_probes()
        return self._enter(BreakerState.CLOSED, BreakerReason.PROBES_SUCCEEDED, now_ms)

    def _cause(self, policy: BreakerPolicy, min_sources: int) -> BreakerReason | None:
        window = self._window
        is_spread = min_sources <= 1 or window.n_failing_sources >= min_sources or window.is_failing(NAMED)
        if not is_spread:
            return None
        n_calls = window.n_calls
        # by division, whose rounding is that of the share as it was written: 29 of 100 are not over 0.29
        if n_calls >= policy.min_calls and window.n_failures / n_calls > policy.failure_share:
            return BreakerReason.FAILURE_SHARE
        threshold = policy.failure_threshold
        if threshold is not None and window.n_failed_in_a_row >= threshold:
            return BreakerReason.CONSECUTIVE_FAILURES
        return None

    def _draw_open_ms(self, policy: BreakerPolicy) -> float:
        growth = policy.open_growth ** min(self._n_reopened, _MAX_EXPONENT)
        longest_ms = max(policy.open_ms, policy.max_open_ms)
        return min(policy.open_ms * growth, longest_ms) * (1 + policy.jitter * self._rng.uniform(-1, 1))

    def _open(self, reason: BreakerReason, now_ms: float, open_ms: float) -> Transition:
        self._forget_probes()
        self._until_ms = now_ms + open_ms
        return self._enter(BreakerState.OPEN, reason, now_ms)

    def _forget_probes(self) -> None:
        self._places.clear()
        self._probes.clear()
        self._succeeded.clear()

    def _enter(self, state: BreakerState, reason: BreakerReason, at_ms: float) -> Transition:
        before, self._state, self._reason, self._since_ms = self._state, state, reason, at_ms
        next_change_ms = self._until_ms if state is BreakerState.OPEN else None
        return Transition(self.key, before, state, reason, at_ms, next_change_ms)

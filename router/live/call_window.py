"""CallWindow: the calls of a sliding window with running counts, from which single calls can be taken out again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias

from router.live.keys import CallId

# number, at_ms, failed, latency_us, source; a plain tuple, since the garbage collector need not look at these again
_Call: TypeAlias = tuple[int, float, bool, int | None, Hashable | None]


class CallWindow:
    """What was recorded at most a window's length ago, in the order of recording.

    A call counts while `at_ms > now_ms - window_ms`. The counts are those of the last look: `add` and `trim` let go of
    what is too old, in constant time for each call over its life. At most `max_calls` are held; at the bound the
    oldest goes, so that a window with more traffic is a shorter one.

    >>> window = CallWindow(max_calls=100)
    >>> for at_ms, failed in [(0, False), (10, True), (20, True)]:
    ...     window.add(("d1", at_ms), failed, at_ms, window_ms=100)
    >>> window.n_calls, window.n_failures, window.n_failed_in_a_row
    (3, 2, 2)
    >>> window.remove(("d1", 20))
    True
    >>> window.trim(105)
    >>> window.n_calls, window.n_failures, window.n_failed_in_a_row
    (1, 1, 1)
    """

    __slots__ = (
        "_calls",
        "_failing",
        "_last_success",
        "_latency_us",
        "_max_calls",
        "_n_added",
        "_n_failed_in_a_row",
        "_n_failures",
        "_n_latencies",
        "_window_ms",
    )

    def __init__(self, max_calls: int) -> None:
        if max_calls < 1:
            raise ValueError(f"a window needs max_calls >= 1, got {max_calls}")
        self._max_calls = max_calls
        self._n_added = 0
        self._window_ms = 0.0
        self._calls: OrderedDict[CallId, _Call] = OrderedDict()
        self._failing: dict[Hashable, int] = {}
        self._last_success = 0
        self._n_failures = 0
        self._n_failed_in_a_row = 0
        self._n_latencies = 0
        self._latency_us = 0

    @property
    def window_ms(self) -> float:
        """Its length, as it was last given; 0 before the first call."""
        return self._window_ms

    @property
    def n_calls(self) -> int:
        """Calls in the window."""
        return len(self._calls)

    @property
    def n_failures(self) -> int:
        """Those of them that failed."""
        return self._n_failures

    @property
    def success_rate(self) -> float:
        """Share of the calls that did not fail; 1 where there is none."""
        return 1 - self._n_failures / len(self._calls) if self._calls else 1.0

    @property
    def n_failed_in_a_row(self) -> int:
        """Failures of the window since its last success."""
        return self._n_failed_in_a_row

    @property
    def n_failing_sources(self) -> int:
        """Different sources, None apart, that failures of the window came from."""
        return len(self._failing)

    @property
    def n_latencies(self) -> int:
        """Calls of the window with a known latency."""
        return self._n_latencies

    @property
    def mean_latency_ms(self) -> float:
        """Mean of the known latencies; 0 where there is none."""
        return self._latency_us / (1000 * self._n_latencies) if self._n_latencies else 0.0

    def is_failing(self, source: Hashable) -> bool:
        """Whether a failure of the window came from `source`."""
        return source in self._failing

    def add(
        self,
        call_id: CallId,
        failed: bool,
        now_ms: float,
        window_ms: float,
        latency_ms: float | None = None,
        source: Hashable | None = None,
    ) -> None:
        """Record a call; one that is in the window already is replaced.

        Args:
            call_id: of the call.
            failed: whether it failed.
            now_ms: of a clock that never goes back.
            window_ms: length of the window from now on.
            latency_ms: None where it is unknown, or is not to count.
            source: of whose failures `n_failing_sources` tells; None where that is not asked for.
        """
        self.remove(call_id)
        self.trim(now_ms, window_ms)
        if len(self._calls) >= self._max_calls:
            self._leave(self._calls.popitem(last=False)[1])
        self._n_added += 1
        # whole microseconds: a sum of floats would keep a rest of what was taken out
        latency_us = None if latency_ms is None else round(latency_ms * 1000)
        self._calls[call_id] = (self._n_added, now_ms, failed, latency_us, source)
        if failed:
            self._n_failures += 1
            self._n_failed_in_a_row += 1
            if source is not None:
                self._failing[source] = self._failing.get(source, 0) + 1
        else:
            self._n_failed_in_a_row = 0
            self._last_success = self._n_added
        if latency_us is not None:
            self._n_latencies += 1
            self._latency_us += latency_us

    def remove(self, call_id: CallId) -> bool:
        """Make all counts what they would be without this call; whether it was in the window."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return False
        self._leave(call)
        if call[0] == self._last_success:
            self._find_last_success()
        return True

    def trim(self, now_ms: float, window_ms: float | None = None) -> None:
        """Let go of what is too old; None leaves the length as it was last given."""
        if window_ms is not None:
            self._window_ms = window_ms
        before_ms = now_ms - self._window_ms
        calls = self._calls
        while calls and next(iter(calls.values()))[1] <= before_ms:
            self._leave(calls.popitem(last=False)[1])

    def clear(self) -> None:
        """Let go of all calls."""
        self._calls.clear()
        self._failing.clear()
        self._last_success = 0
        self._n_failures = 0
        self._n_failed_in_a_row = 0
        self._n_latencies = 0
        self._latency_us = 0

    def _leave(self, call: _Call) -> None:
        number, _, failed, latency_us, source = call
        if failed:
            self._n_failures -= 1
            if number > self._last_success:
                self._n_failed_in_a_row -= 1
            if source is not None:
                n_left = self._failing[source] - 1
                if n_left:
                    self._failing[source] = n_left
                else:
                    del self._failing[source]
        if latency_us is not None:
            self._n_latencies -= 1
            self._latency_us -= latency_us

    def _find_last_success(self) -> None:
        self._last_success = self._n_failed_in_a_row = 0
        for number, _, failed, _, _ in reversed(self._calls.values()):
            if not failed:
                self._last_success = number
                return
            self._n_failed_in_a_row += 1

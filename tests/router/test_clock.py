from __future__ import annotations

import time

from router.clock import SystemClock


def test_the_wall_clock_counts_milliseconds_since_the_epoch() -> None:
    assert abs(SystemClock().now_ms() - time.time() * 1000) < 60_000


def test_the_steady_clock_does_not_go_back() -> None:
    clock = SystemClock()
    read = [clock.monotonic_ms() for _ in range(100)]
    assert read == sorted(read)

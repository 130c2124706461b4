"""The clock of the machine."""

from __future__ import annotations

import time


class SystemClock:
    """Time as the operating system tells it."""

    def now_ms(self) -> float:
        """Wall clock, milliseconds since the epoch; may step when the system's time is set."""
        return time.time() * 1000

    def monotonic_ms(self) -> float:
        """Steady clock, milliseconds since some fixed instant."""
        return time.monotonic() * 1000

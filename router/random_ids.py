"""Random ids and seeds, in an order that databases like."""

from __future__ import annotations

import os

from models.ports import Clock
from router.service import Ids

_N_DIGITS = 16_384
"""Hexadecimal digits asked of the system at once: one call for some two hundred decisions."""

_N_OF_ID = 20
_N_OF_SEED = 16


def random_ids(clock: Clock) -> Ids:
    """Ids of 32 hexadecimal digits, 12 of the time in milliseconds and 20 (80 bits) of chance, and seeds of 63 bits.

    Ids made one after another stand side by side in an index, so that a write touches few pages of it: the idea of
    UUID version 7 (RFC 9562, 5.7).
    """
    digits = _Digits()
    return Ids(
        new=lambda: f"{int(clock.now_ms()):012x}{digits.take(_N_OF_ID)}",
        seed=lambda: int(digits.take(_N_OF_SEED), 16) >> 1,
    )


class _Digits:
    """The system's random digits, fetched in blocks."""

    def __init__(self) -> None:
        self._block = ""
        self._at = 0

    def take(self, n: int) -> str:
        """The next `n` digits; none is given out twice."""
        start, end = self._at, self._at + n
        if end > len(self._block):
            self._block = os.urandom(_N_DIGITS // 2).hex()
            start, end = 0, n
        self._at = end
        return self._block[start:end]

"""Draws of a decision: numbers that follow from its recorded seed."""

from __future__ import annotations

_MASK = (1 << 64) - 1


def draw_of(seed: int, nth: int = 0) -> float:
    """The `nth` draw in [0, 1) of a decision's seed (taken modulo 2^64): the top 53 bits of SplitMix64.

    Written out here (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", fig. 17), so that a
    recorded seed gives the same draw under every Python and in every language a record may be replayed in.

    >>> draw_of(0), draw_of(0, 1)
    (0.8833108082136426, 0.43152799704850997)
    """
    z = (seed + (nth + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53

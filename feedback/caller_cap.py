"""The cap on a caller: how much of the evidence on an agent's intent may be one caller's."""

from __future__ import annotations

from typing import NamedTuple


class Fit(NamedTuple):
    """How new evidence of a caller comes to stand beside its older evidence, all in parts of an outcome.

    Attributes:
        kept_n: outcomes of its older evidence that stay; so `kept_s` of their rewards.
        added_n: outcomes of its new evidence that count; so `added_s` of their rewards.
    """

    kept_n: int
    kept_s: int
    added_n: int
    added_s: int


def limit_of(own: int, others: int, share: float, free: int) -> int | None:
    """The most evidence that a caller may have on an agent's intent; None while nobody else has posted there.

    What it has already is not taken from it: it grows no more.

    Args:
        own: evidence that it has, in parts of an outcome; so `others` of all other callers.
        share: the share of all evidence that it may have, 0..1.
        free: evidence that it may have in any case.

    >>> limit_of(5, 0, 0.1, 20), limit_of(5, 900, 0.1, 20), limit_of(5, 90, 0.1, 20), limit_of(500, 90, 0.1, 20)
    (None, 100, 20, 500)
    """
    if others <= 0 or share >= 1:
        return None
    # 1e-9: 0.1 / 0.9 * 900 is 100, whichever way it was rounded
    return max(own, free, int(share / (1 - share) * others + 1e-9))


def fit(old: tuple[int, int], new: tuple[int, int], limit: int | None) -> Fit:
    """Makes room: beyond the limit, the older evidence shrinks for the newer one, its mean stays.

    >>> fit((100, 50), (10, 10), 100)
    Fit(kept_n=90, kept_s=45, added_n=10, added_s=10)
    >>> fit((100, 50), (10, 10), None)
    Fit(kept_n=100, kept_s=50, added_n=10, added_s=10)
    """
    (old_n, old_s), (new_n, new_s) = old, new
    if limit is None or old_n + new_n <= limit:
        return Fit(old_n, old_s, new_n, new_s)
    added_n = min(new_n, limit)
    added_s = new_s * added_n // new_n if new_n else 0
    kept_n = limit - added_n
    # half up: rounding down each time would pull the mean of a busy caller towards 0
    kept_s = min((2 * old_s * kept_n + old_n) // (2 * old_n), kept_n) if old_n else 0
    return Fit(kept_n, kept_s, added_n, added_s)

"""The cap on a caller: how much of the evidence on an agent's intent may be one caller's.

Few callers keep each other at what each may have in any case (`caller_free`). The default of 40 was chosen by these
simulations; `callers` are the honest ones:

                     callers        caller_free: 20          40          50         100
    gap closed             1  .79 (.58), never capped
                           2                .74 (.49)   .77 (.56)   .77 (.56)   .78 (.56)
                           4                .77 (.59)   .77 (.56)   .77 (.56)   .78 (.58)
    best of three          1  .98 (.98), never capped
                           2                .97 (.91)   .97 (.94)   .98 (.98)   .92 (.64)
                           4                .98 (.96)   .98 (.98)   .92 (.63)   .93 (.64)
    a mean moves by        1, of 500        .09         .09         .09         .14
                           1, of 2,000      .09         .09         .09         .09
                           4, of 500        .17         .17         .17         .17
                           4, of 2,000      .17         .17         .17         .17
                           12, of 400       .09         .09         .11

*Gap closed* is the part of the gap from static to clairvoyant that is closed in the last 1,000 of 5,000 outcomes of
the fixture of nine agents: the mean (the least) of 24 seeds. The least is chance more than cap: a seed's figure has a
standard deviation of .09, and is no better where nobody is capped. *Best of three* is the share that the best of
agents of quality .75, .68 and .60 has of the second half of 4,000 decisions: the mean (the least) of 6 seeds. *A mean
moves by* is the most by which 1,000 false outcomes of one caller move a posterior mean, where honest callers have
posted so many outcomes, together, on each agent's intent. Where four of them hold each other at `caller_free`, a fifth
caller has a fifth of the evidence, whatever it is: the cap protects where others have nine times `caller_free`.
"""

from __future__ import annotations

from typing import NamedTuple

from models.events import EVIDENCE_UNIT


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
        free: evidence that it may have beyond that share, up to one outcome more than all others have: what is hardly
            known is not told by one alone.

    >>> limit_of(5, 0, 0.1, 20), limit_of(5, 900, 0.1, 20), limit_of(5, 90, 0.1, 20), limit_of(500, 90, 0.1, 20)
    (None, 100, 20, 500)
    >>> limit_of(0, 2 * EVIDENCE_UNIT, 0.1, 40 * EVIDENCE_UNIT) / EVIDENCE_UNIT
    3.0
    """
    if others <= 0 or share >= 1:
        return None
    # 1e-9: 0.1 / 0.9 * 900 is 100, whichever way it was rounded
    return max(own, min(free, others + EVIDENCE_UNIT), int(share / (1 - share) * others + 1e-9))


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

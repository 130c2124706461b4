"""The cap on a caller: how much of what it told of an agent's intent counts for others.

A caller's own decisions go by all that it told itself. For those of others it counts

- as far as another caller has told as much, or up to a share of all evidence: what nobody else has seen moves nobody;
- while it does not contradict what the others tell: who sees an agent do otherwise than everybody else has other work
  for it, or lies, and either way says nothing of what others are to expect.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from models.events import EVIDENCE_UNIT
from models.learning_policy import LearningPolicy

MARGIN = 0.05
"""Mean rewards that are no farther apart than this contradict each other in no case."""
ERRORS = 3.0
"""So many standard errors of the difference beyond the margin make a contradiction."""


class Cap(NamedTuple):
    """The limits of the policy.

    Attributes:
        share: of all evidence on an agent's intent that may be one caller's, 0..1; 1 caps nobody.
        free: evidence of a caller that counts in any case, in parts of an outcome.
    """

    share: float
    free: int

    def limit(self, others: int, second: int) -> int | None:
        """The most that counts of the caller who has told most, in parts of an outcome; None is without limit.

        Nobody else is above it, as nobody else has told more than `second`.

        Args:
            others: what all the others have told together.
            second: the most that one of them has told.

        >>> Cap(0.1, 0).limit(900, 50), Cap(0.1, 0).limit(90, 60), Cap(0.1, 0).limit(0, 0), Cap(0.1, 5).limit(0, 0)
        (100, 60, 0, 5)
        """
        if self.share >= 1:
            return None
        # 1e-9: 0.1 / 0.9 * 900 is 100, whichever way it was rounded
        return max(self.free, second, int(self.share / (1 - self.share) * others + 1e-9))


def contradiction(own_n: int, own_s: int, others_n: int, others_s: int) -> float:
    """How far two mean rewards are apart, by what chance and a margin explain: over 1 they contradict each other.

    The standard error is that of Agresti and Caffo (2000), "Simple and effective confidence intervals for proportions":
    each side has one success and one failure more than it has, so that a handful that are all alike are no certainty.

    Args:
        own_n: in parts of an outcome, over 0; so all others.

    >>> u = EVIDENCE_UNIT
    >>> [round(contradiction(20 * u, s * u, 200 * u, 160 * u), 2) for s in (0, 8, 16)]
    [4.44, 1.04, 0.0]
    >>> [contradiction(1000 * u, 1000 * u, n * u, 0) > 1 for n in (1, 3)]
    [False, True]
    """
    n, other_n = own_n / EVIDENCE_UNIT + 2, others_n / EVIDENCE_UNIT + 2
    mean, other_mean = (own_s / EVIDENCE_UNIT + 1) / n, (others_s / EVIDENCE_UNIT + 1) / other_n
    apart = abs(mean - other_mean) - MARGIN
    if apart <= 0:
        return 0.0
    return apart / (ERRORS * sqrt(mean * (1 - mean) / n + other_mean * (1 - other_mean) / other_n))


def cap_of(policy: LearningPolicy) -> Cap:
    """The cap that a policy sets.

    >>> cap_of(LearningPolicy(caller_free=2.0))
    Cap(share=0.1, free=2000000)
    """
    return Cap(policy.caller_share, int(policy.caller_free * EVIDENCE_UNIT))

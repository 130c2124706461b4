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

MARGIN = 0.1
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

        Nobody else can be above it, as nobody else has told more than `second`.

        Args:
            others: what all the others have told together.
            second: the most that one of them has told.

        >>> Cap(0.1, 0).limit(900, 80), Cap(0.1, 0).limit(90, 60), Cap(0.1, 0).limit(0, 0), Cap(0.1, 5).limit(0, 0)
        (100, 60, 0, 5)
        """
        if self.share >= 1:
            return None
        # 1e-9: 0.1 / 0.9 * 900 is 100, whichever way it was rounded
        return max(self.free, second, int(self.share / (1 - self.share) * others + 1e-9))


def contradicts(own_n: int, own_s: int, others_n: int, others_s: int) -> bool:
    """Whether two mean rewards are farther apart than chance and a margin explain (two-proportion z-test, pooled).

    Args:
        own_n: in parts of an outcome, over 0; so all others.

    >>> u = EVIDENCE_UNIT
    >>> contradicts(20 * u, 0, 200 * u, 160 * u), contradicts(20 * u, 13 * u, 200 * u, 160 * u)
    (True, False)
    >>> contradicts(1000 * u, 1000 * u, 2 * u, 0)
    False
    """
    apart = abs(own_s / own_n - others_s / others_n) - MARGIN
    if apart <= 0:
        return False
    # one success and one failure more: a handful that are all alike are no certainty
    pooled = (own_s + others_s + EVIDENCE_UNIT) / (own_n + others_n + 2 * EVIDENCE_UNIT)
    return apart > ERRORS * sqrt(pooled * (1 - pooled) * EVIDENCE_UNIT * (1 / own_n + 1 / others_n))


def cap_of(policy: LearningPolicy) -> Cap:
    """The cap that a policy sets.

    >>> cap_of(LearningPolicy(caller_free=2.0))
    Cap(share=0.1, free=2000000)
    """
    return Cap(policy.caller_share, int(policy.caller_free * EVIDENCE_UNIT))

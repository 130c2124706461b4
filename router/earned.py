"""Earned: what is known of an agent's quality, beside what its card claims."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from feedback.learner import Learner
from models.answer import Answer
from models.learning_policy import LearningPolicy
from router.snapshot import Entry

INTERVAL = 0.95
"""Probability with which quality lies in the interval."""

Share = Annotated[float, Field(ge=0, le=1)]


class Earned(Answer):
    """Quality on one intent.

    Attributes:
        declared: on the card.
        quality: mean of the posterior: what routing goes by.
        low: of the 95 % interval of the posterior; so is `high`.
        n_outcomes: evidence of this version's own, in outcomes.
        n_counted: so many of them count for everybody; the rest does in the decisions of who told it alone.
        reward: their mean reward; None where there are none.
    """

    declared: Share
    quality: Share
    low: Share
    high: Share
    n_outcomes: float
    n_counted: float
    reward: Share | None


def earned(learner: Learner, entry: Entry, policy: LearningPolicy) -> Earned:
    """What is known of one capability, given that its intent is meant.

    The interval has equal tails of the Beta distribution (the inverse of the regularized incomplete beta function).
    """
    # not when the service starts: only who looks at an agent needs it
    from scipy.special import betaincinv

    intent = entry.capability.intent
    (alpha,), (beta,) = learner.posterior([entry.agent], [(intent, 1.0)], policy)
    tail = (1 - INTERVAL) / 2
    n_outcomes, worth = learner.evidence_of(entry.agent, intent)
    return Earned(
        declared=entry.capability.quality,
        quality=alpha / (alpha + beta),
        low=float(betaincinv(alpha, beta, tail)),
        high=float(betaincinv(alpha, beta, 1 - tail)),
        n_outcomes=n_outcomes,
        n_counted=learner.n_counted(entry.agent, intent, policy),
        reward=worth / n_outcomes if n_outcomes > 0 else None,
    )

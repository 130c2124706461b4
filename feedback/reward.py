"""Reward: what an outcome is worth to learning, 0..1."""

from __future__ import annotations

from feedback.attribution import Charge, Party
from models.learning_policy import RewardPolicy
from models.outcome import Outcome, OutcomeStatus

ANSWERED = frozenset({OutcomeStatus.SUCCEEDED, OutcomeStatus.LOW_CONFIDENCE})
"""Ends with an answer whose quality can be judged."""


def reward(outcome: Outcome, charged: Charge, slice_ms: float, policy: RewardPolicy) -> float | None:
    """What an outcome is worth, 0..1; None where the agent is not to be judged by it.

    An answer is worth its status, blended with the quality given by the caller or a judge; a success that took longer
    than `slow_after` of its slice loses up to `slow_penalty`, in proportion to how far into the rest it got. Any other
    end is worth its status.

    Args:
        outcome: what came of the call.
        charged: to whom it was charged; only what is charged to the agent counts.
        slice_ms: the time that the plan gave the call.
        policy: what each status is worth.

    >>> agent = Charge(Party.AGENT, failed=False)
    >>> done = Outcome(decision_id="d", status=OutcomeStatus.SUCCEEDED, latency_ms=1500)
    >>> reward(done, agent, 2000, RewardPolicy())
    1.0
    >>> reward(done, agent, 2000, RewardPolicy(slow_penalty=0.4))
    0.8
    >>> judged = done.model_copy(update={"quality": 0.5})
    >>> reward(judged, agent, 2000, RewardPolicy()), reward(judged, agent, 2000, RewardPolicy(quality_weight=0.5))
    (0.5, 0.75)
    >>> reward(Outcome(decision_id="d", status=OutcomeStatus.SCHEMA_MISMATCH), agent, 2000, RewardPolicy())
    0.1
    >>> reward(done, Charge(Party.CALLER, failed=True), 2000, RewardPolicy()) is None
    True
    """
    if charged.party is not Party.AGENT:
        return None
    worth: float | None = getattr(policy, outcome.status.value, None)
    if worth is None:
        return None
    if outcome.status in ANSWERED:
        if outcome.quality is not None:
            worth = (1 - policy.quality_weight) * worth + policy.quality_weight * outcome.quality
        worth -= policy.slow_penalty * _slowness(outcome.latency_ms, slice_ms, policy.slow_after)
    return min(max(worth, 0.0), 1.0)


def _slowness(latency_ms: float | None, slice_ms: float, slow_after: float) -> float:
    """0 up to `slow_after` of the slice, 1 from the whole of it on."""
    if latency_ms is None or slice_ms <= 0:
        return 0.0
    used = latency_ms / slice_ms
    if slow_after >= 1:
        return 0.0
    return min(max((used - slow_after) / (1 - slow_after), 0.0), 1.0)

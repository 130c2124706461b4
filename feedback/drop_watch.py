"""The watch over new classifiers: whether the rewards of what they read drop below the mean before."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from feedback.promote import LIMITS
from models.outcome import Outcome
from models.promotion import Baseline

_LEAST_DEVIATION = sqrt(0.05 * 0.95)
"""Of one reward, as in the drift detection: where nothing ever failed, one failure is no proof."""


def worth(outcome: Outcome, intent: str | None, reward: float | None) -> float | None:
    """What an outcome says of the reading that led to it, 0..1; None where it says nothing.

    A reading that was corrected was wrong, whatever the agent made of the request.

    Args:
        outcome: of the first attempt.
        intent: the one that was routed by.
        reward: what the agent gets for it; None where it is not to be judged by it.
    """
    if outcome.correct_intent is not None:
        if outcome.correct_intent != intent:
            return 0.0
        return 1.0 if reward is None else reward
    return reward


def baseline_of(rewards: Sequence[float]) -> Baseline:
    """What a candidate is measured by.

    >>> baseline_of([1.0, 0.0, 1.0, 0.0])
    Baseline(n=4, mean=0.5, deviation=0.5, skewness=0.0)
    """
    if not rewards:
        return Baseline(n=0, mean=0.0, deviation=_LEAST_DEVIATION)
    mean = sum(rewards) / len(rewards)
    deviation = max(sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards)), _LEAST_DEVIATION)
    skewness = sum((reward - mean) ** 3 for reward in rewards) / len(rewards) / deviation**3
    return Baseline(n=len(rewards), mean=min(max(mean, 0.0), 1.0), deviation=deviation, skewness=skewness)


def threshold_for(skewness: float, slack: float, threshold: float) -> float:
    """The threshold with which skewed rewards raise as few false alarms as others do with `threshold`.

    False alarms come at a rate of exp(-theta h), where E exp(theta (-z - k)) = 1 (Siegmund 1985): theta is 2k without
    skew, and by the third cumulant the root of theta^2 s/6 + theta/2 - k = 0 with it, s the skewness of -z.

    >>> [round(threshold_for(skewness, 0.1, 40.0), 1) for skewness in (0.0, -0.87, -4.13)]
    [40.0, 42.2, 49.0]
    """
    s = max(0.0, -skewness)
    if s < 1e-6 or slack <= 0:
        return threshold
    theta = (sqrt(0.25 + 4 * s * slack / 6) - 0.5) * 3 / s
    return threshold * 2 * slack / theta


class Watch:
    """Whether rewards have dropped below the mean before: one-sided CUSUM (Page 1954).

    C = max(0, C - z - k) with z = (reward - mean) / deviation; alarm where C > h. The mean counts as one standard error
    less than it was measured, so that one that was measured too high does not make for false alarms. With k = 0.1,
    h = 40, and 20,000 rewards of 0 and 1 about 0.7 before, a drop of 20 / 10 / 5 points is seen after 127 / 321 / 1,190
    outcomes (medians).

    Args:
        baseline: the mean before.
        slack: k.
        threshold: h, where rewards are not skewed.

    Attributes:
        threshold: h, as it holds.
    """

    def __init__(self, baseline: Baseline, *, slack: float = LIMITS.slack, threshold: float = LIMITS.threshold) -> None:
        self.threshold = threshold_for(baseline.skewness, slack, threshold)
        self._mean = baseline.mean - baseline.deviation / sqrt(max(baseline.n, 1))
        self._deviation = baseline.deviation
        self._slack = slack
        self._rewards: dict[str, float] = {}
        self._total = self._sum = 0.0
        self._has_alarm = self._is_stale = False

    @property
    def n(self) -> int:
        """Decisions that count."""
        return len(self._rewards)

    @property
    def mean(self) -> float | None:
        """Their mean reward; None where there are none."""
        self._settle()
        return self._total / len(self._rewards) if self._rewards else None

    @property
    def level(self) -> float:
        """C."""
        self._settle()
        return self._sum

    @property
    def has_alarm(self) -> bool:
        """Whether C ever was above h, by the rewards as they are known now."""
        self._settle()
        return self._has_alarm

    def tell(self, decision_id: str, reward: float | None) -> None:
        """Take the reward of a decision; another one for the same decision replaces it in its place."""
        before = self._rewards.get(decision_id)
        if before == reward:
            return
        if before is None and reward is not None:
            self._rewards[decision_id] = reward
            self._add(reward)
            return
        if reward is None:
            del self._rewards[decision_id]
        else:
            self._rewards[decision_id] = reward
        self._is_stale = True

    def _settle(self) -> None:
        """Begin again where a reward was replaced: a sum that is cut off at 0 cannot be taken back."""
        if self._is_stale:
            self._total = self._sum = 0.0
            self._has_alarm = self._is_stale = False
            for each in self._rewards.values():
                self._add(each)

    def _add(self, reward: float) -> None:
        z = (reward - self._mean) / self._deviation
        self._total += reward
        self._sum = max(0.0, self._sum - z - self._slack)
        self._has_alarm = self._has_alarm or self._sum > self.threshold

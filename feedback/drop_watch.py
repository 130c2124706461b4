"""The watch over new classifiers: whether the rewards of what they read drop below the mean before."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

from feedback.promote import LIMITS
from models.promotion import Baseline

_LEAST_DEVIATION = sqrt(0.05 * 0.95)
"""Of one reward, as in the drift detection: where nothing ever failed, one failure is no proof."""


MAX_CALLERS = 16
"""So many callers are told apart at a time: those without whom the sum would be least."""


def worth(corrected: str | None, intent: str | None, reward: float | None) -> float | None:
    """What an outcome says of the reading that led to it, 0..1; None where it says nothing.

    A reading that was corrected was wrong, whatever the agent made of the request. Only corrections that were accepted
    count: whoever may tell outcomes could otherwise condemn any reading.

    Args:
        corrected: the intent that was meant, by an accepted correction; None where there is none.
        intent: the one that was routed by.
        reward: what the agent gets for it; None where it is not to be judged by it.

    >>> worth(None, "refund", 0.7), worth("cancel", "refund", 0.7), worth("refund", "refund", None)
    (0.7, 0.0, 1.0)
    """
    if corrected is None:
        return reward
    if corrected != intent:
        return 0.0
    return 1.0 if reward is None else reward


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


def limit_on(n_told: int, n: int, threshold: float) -> float:
    """The most that one caller's outcomes may add to the sum: three quarters of its share, of the threshold.

    Others must have seen the rest by themselves. Of a drop that all see, their part is 1 - share, and 1 - 0.75 share is
    asked of them: in the mean it is found after at most 1.25 times the outcomes. No limit is on who told half or more
    of all that is known.

    Args:
        n_told: outcomes of this caller.
        n: of all, at least 1.
        threshold: h.

    >>> limit_on(10, 100, 40.0), limit_on(40, 100, 40.0), limit_on(50, 100, 40.0)
    (3.0, 12.0, inf)
    """
    return inf if 2 * n_told >= n else 0.75 * threshold * n_told / n


class Watch:
    """Whether rewards have dropped below the mean before: one-sided CUSUM (Page 1954).

    C = max(0, C - z - k) with z = (reward - mean) / deviation; alarm where C > h. The mean counts as one standard error
    less than it was measured, so that one that was measured too high does not make for false alarms. With k = 0.1,
    h = 40, and 20,000 rewards of 0 and 1 about 0.7 before, a drop of 20 / 10 / 5 points is seen after 127 / 321 / 1,190
    outcomes (medians).

    No caller brings the alarm about alone: of each, C is kept without its outcomes too, and what these add to it counts
    up to `limit_on`. (Capping the steps themselves, as the detection of drift does, is not enough here: one who tells
    nothing but failures refills at once what the others' successes take away, and so keeps C from ever falling.)

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
        self._told: dict[str, tuple[float, str]] = {}
        self._begin()

    def _begin(self) -> None:
        self._total = self._sum = 0.0
        self._n = 0
        self._n_by: dict[str, int] = {}
        self._without: dict[str, float] = {}
        self._has_alarm = self._is_stale = False

    @property
    def n(self) -> int:
        """Decisions that count."""
        return len(self._told)

    @property
    def mean(self) -> float | None:
        """Their mean reward; None where there are none."""
        self._settle()
        return self._total / len(self._told) if self._told else None

    @property
    def level(self) -> float:
        """C, of which no caller's outcomes make up more than they may."""
        self._settle()
        return self._allowed()

    @property
    def has_alarm(self) -> bool:
        """Whether the level ever was above h, by the rewards as they are known now."""
        self._settle()
        return self._has_alarm

    def tell(self, decision_id: str, reward: float | None, caller: str = "") -> None:
        """Take the reward of a decision; another one for the same decision replaces it in its place.

        Args:
            decision_id: of the decision.
            reward: 0..1; None where it says nothing, or no longer.
            caller: in whose name it came.
        """
        before, now = self._told.get(decision_id), None if reward is None else (reward, caller)
        if before == now:
            return
        if now is None:
            del self._told[decision_id]
        else:
            self._told[decision_id] = now
        if before is None and now is not None:
            self._add(*now)
        else:
            self._is_stale = True

    def _settle(self) -> None:
        """Begin again where a reward was replaced: a sum that is cut off at 0 cannot be taken back."""
        if self._is_stale:
            self._begin()
            for told in self._told.values():
                self._add(*told)

    def _add(self, reward: float, caller: str) -> None:
        step = (self._mean - reward) / self._deviation - self._slack
        without = self._without
        without.setdefault(caller, self._sum)  # so far there was nothing of it
        if len(without) > 1:
            for name, level in without.items():
                if name != caller:
                    without[name] = max(0.0, level + step)
        self._sum = max(0.0, self._sum + step)
        self._total += reward
        self._n += 1
        self._n_by[caller] = self._n_by.get(caller, 0) + 1
        if len(without) > MAX_CALLERS:
            del without[max(without, key=without.__getitem__)]
        if self._sum > self.threshold and not self._has_alarm:
            self._has_alarm = self._allowed() > self.threshold

    def _allowed(self) -> float:
        limits = (level + limit_on(self._n_by[name], self._n, self.threshold) for name, level in self._without.items())
        return min(self._sum, *limits) if self._without else 0.0

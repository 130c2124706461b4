"""Drift: an agent that does worse than what is known of it is found, and its evidence given up."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt

from models.learning_policy import DriftPolicy

RECENT = 25
"""Outcomes of the mean (EWMA) that tells how well an agent does now."""

MAX_CALLERS = 16
"""So many callers are told apart in a sum; what smaller ones put in counts as a crowd's."""

_CROWD = "\n"
"""No caller has this name."""


@dataclass(slots=True)
class Drift:
    """What is watched of one agent.

    Attributes:
        cusum: C, what speaks for a fall of the agent's quality since it last was as good as known.
        parts: of which caller how much of C is.
        recent: EWMA of its rewards; None before the first.
        n_outcomes: since the first one, or the last alarm.
        is_demoted: whether there was an alarm that is not cleared.
        inherited_n: factor on the evidence inherited from its predecessor, 0..1; so `inherited_s` on their rewards.
    """

    cusum: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    recent: float | None = None
    n_outcomes: int = 0
    is_demoted: bool = False
    inherited_n: float = 1.0
    inherited_s: float = 1.0

    def learn_one(self, reward: float, expected: float, caller: str, limit: float, policy: DriftPolicy) -> bool:
        """Takes an outcome; whether it raises an alarm.

        One-sided CUSUM (Page 1954): z = (q - p) / sqrt(p (1 - p)), C = max(0, C - z - slack), alarm when C > threshold.

        Args:
            reward: q, 0..1.
            expected: p, the posterior mean before it, counted within [.05, .95].
            caller: in whose name it came.
            limit: the most of C that may be this caller's (`limit_on`).
            policy: slack and threshold.

        >>> drift = Drift()
        >>> [drift.learn_one(0.0, 0.8, "", inf, DriftPolicy(threshold=5)) for _ in range(3)], round(drift.cusum, 9)
        ([False, False, True], 5.25)
        """
        self.n_outcomes += 1
        rate = 1 / RECENT if self.is_demoted else max(1 / RECENT, 1 / self.n_outcomes)
        self.recent = reward if self.recent is None else self.recent + rate * (reward - self.recent)
        if self.is_demoted and self.n_outcomes >= policy.clear_after:
            self.is_demoted = False
        p = min(max(expected, 0.05), 0.95)
        step = (p - reward) / sqrt(p * (1 - p)) - policy.slack
        if step > 0:
            step = min(step, max(limit - self.parts.get(caller, 0.0), 0.0))
            self._note(caller, step)
        elif self.cusum > 0:
            left = max(self.cusum + step, 0.0) / self.cusum
            self.parts = {name: part * left for name, part in self.parts.items()} if left > 0 else {}
        self.cusum = max(self.cusum + step, 0.0)
        return self.cusum > policy.threshold

    def alarm(self, n: float, s: float, policy: DriftPolicy) -> tuple[float, float]:
        """The agent is demoted; by which factors its outcomes and their rewards shrink.

        f = min(1, keep / n) and f * r, r = clip(recent mean / mean so far, .1, 1).

        Args:
            n: outcomes on all its intents, what it inherited included; so `s` of their rewards.
            policy: how many outcomes are kept.
        """
        f = min(1.0, policy.keep / n) if n > 0 else 1.0
        r = min(max((self.recent or 0.0) * n / s, 0.1), 1.0) if s > 0 else 1.0
        self.cusum, self.parts, self.n_outcomes, self.is_demoted = 0.0, {}, 0, True
        self.scale(f, f * r)
        return f, f * r

    def scale(self, by_n: float, by_s: float) -> None:
        """What was inherited shrinks."""
        self.inherited_n *= by_n
        self.inherited_s *= by_s

    def withdraw(self, caller: str) -> None:
        """What a caller put in counts no longer: it contradicts what all others tell."""
        self.cusum = max(self.cusum - self.parts.pop(caller, 0.0), 0.0)

    def forget(self, caller: str) -> bool:
        """What a caller put in counts as a crowd's; whether there was any."""
        part = self.parts.pop(caller, None)
        if part is not None:
            self.parts[_CROWD] = self.parts.get(_CROWD, 0.0) + part
        return part is not None

    def _note(self, caller: str, step: float) -> None:
        self.parts[caller] = self.parts.get(caller, 0.0) + step
        while len(self.parts) > MAX_CALLERS:
            least = min((part, name) for name, part in self.parts.items() if name != _CROWD)[1]
            self.parts[_CROWD] = self.parts.get(_CROWD, 0.0) + self.parts.pop(least)


def limit_on(share: float, caller_share: float, threshold: float) -> float:
    """The most of C that may be one caller's: nobody raises an alarm alone but who told half of what is known.

    Args:
        share: the part of the agent's evidence that is the caller's, 0..1.
        caller_share: the cap on callers (policy), 0..1.
        threshold: of the alarm.

    >>> limit_on(0.05, 0.1, 25.0), limit_on(0.3, 0.1, 25.0), limit_on(0.5, 0.1, 25.0)
    (5.0, 15.0, inf)
    """
    part = 2 * max(share, caller_share)
    return threshold * part if part < 1 else inf

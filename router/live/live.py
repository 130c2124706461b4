"""Live: all live state of one process, in one place. Nothing in here waits; one thread uses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from router.live.breaker_state import Transition
from router.live.breakers import Breakers
from router.live.health import Health
from router.live.leases import Leases
from router.live.open_decisions import OpenDecision, OpenDecisions
from router.live.outliers import Ejection, Outliers
from router.live.poison import Poison
from router.live.quotas import Quotas
from router.live.retry_tokens import RetryTokens
from router.live.sessions import Sessions
from router.live.witnesses import Witnesses


@dataclass(slots=True)
class Live:
    """What is known of agents, callers and decisions now.

    Attributes:
        rng: of the jitter of breakers.
        witnesses: say whose failures count in health, and in the breakers of dependencies.
        posting: callers that have posted an outcome; places are taken for these alone, since nothing would give them
            back for the others.
        changes: of breakers and ejections, that nobody has written down yet.
        recharged: earlier outcomes (decision and attempt) that are charged to another than before, the same.
    """

    rng: Random
    health: Health = field(default_factory=Health)
    outliers: Outliers = field(default_factory=Outliers)
    witnesses: Witnesses = field(default_factory=Witnesses)
    leases: Leases = field(default_factory=Leases)
    quotas: Quotas = field(default_factory=Quotas)
    retry_tokens: RetryTokens = field(default_factory=RetryTokens)
    poison: Poison = field(default_factory=Poison)
    sessions: Sessions = field(default_factory=Sessions)
    opened: OpenDecisions = field(default_factory=OpenDecisions)
    posting: set[str] = field(default_factory=set)
    changes: list[Transition | Ejection] = field(default_factory=list)
    recharged: list[tuple[OpenDecision, int]] = field(default_factory=list)
    breakers: Breakers = field(init=False)

    def __post_init__(self) -> None:
        """Breakers draw from `rng`."""
        self.breakers = Breakers(self.rng)

    def told_recharged(self) -> list[tuple[OpenDecision, int]]:
        """The outcomes that are charged to another, which is written down now."""
        recharged, self.recharged = self.recharged, []
        return recharged

    def told_changes(self) -> list[Transition | Ejection]:
        """The changes, which are written down now."""
        changes, self.changes = self.changes, []
        return changes

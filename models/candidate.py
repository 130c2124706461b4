"""Candidate: an agent that was looked at, and what the ranking made of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from models.answer import Answer

Share = Annotated[float, Field(ge=0, le=1)]
FeatureName = Literal["similarity", "quality", "health", "load", "cost", "latency"]


class Stage(StrEnum):
    """Where a candidate was taken out before ranking."""

    VERSION = "version"
    EXCLUDED = "excluded"
    PAYLOAD = "payload"
    MAX_COST_LEVEL = "max_cost_level"
    MIN_QUALITY = "min_quality"
    DEADLINE = "deadline"
    DOWN = "down"
    BREAKER = "breaker"
    DEPENDENCY = "dependency"
    EJECTED = "ejected"
    CAPACITY = "capacity"
    QUOTA = "quota"
    SHARE = "share"


NOT_NOW = frozenset(
    {
        Stage.DEADLINE,
        Stage.DOWN,
        Stage.BREAKER,
        Stage.DEPENDENCY,
        Stage.EJECTED,
        Stage.CAPACITY,
        Stage.QUOTA,
    }
)
"""Stages that say something of the instant, not of the agent."""


class Features(Answer):
    """The features of a candidate, each 0..1, larger is better; `cost` is 1 - share of the dearest's cost."""

    similarity: Share
    quality: Share
    health: Share
    load: Share
    cost: Share


class Contributions(Answer):
    """w * log feature for the merit's features; -lambda * share for cost, -nu * share for latency."""

    similarity: float
    quality: float
    health: float
    load: float
    cost: float
    latency: float


class Change(Answer):
    """A feature's value as it counts and as it would have to be, 0..1, larger is better.

    `cost` is 1 - share of the dearest's cost, `latency` 1 - share of the slowest's (only where nu > 0). Their `to` is
    measured on the dearest and the slowest as they stand, also where the change itself would bring those down.
    """

    model_config = ConfigDict(populate_by_name=True)

    feature: FeatureName
    from_: Annotated[float, Field(serialization_alias="from", validation_alias="from")]
    to: float

    def members(self) -> dict[str, Any]:
        """`from` is a word of Python's own."""
        return {"feature": self.feature, "from": self.from_, "to": self.to}


class WhyNot(Answer):
    """The smallest change with which this candidate would have had the highest utility.

    Attributes:
        changes: one change where one suffices, else a joint one (every feature that weighs, by the same fraction of
            the way to its best); empty if it had the highest utility already and lost the draw, or the tie.
        text: the same in words.
    """

    changes: list[Change]
    text: str


class Candidate(Answer):
    """An agent that was looked at; only permitted ones are ever listed.

    Attributes:
        predicted: the probability that it does well on this very request, as its success head says; None where none was
            asked. The feature `quality` is made of it and of what is known of the intent.
    """

    agent_id: str
    namespace: str
    version: str
    intent: str
    cost_level: int
    predicted: Share | None = None
    features: Features | None = None
    contributions: Contributions | None = None
    merit: float | None = None
    utility: float | None = None
    propensity: Share | None = None
    excluded: Stage | None = None
    why_not: WhyNot | None = None

"""Learned: what the learner says of the contenders of one decision."""

from __future__ import annotations

from typing import NamedTuple

from models.learning_policy import LearningMode


class Said(NamedTuple):
    """What a success head said of a contender.

    Attributes:
        predicted: the probability that it does well on the request, 0..1.
        trust: how much of the mean that makes up, 0..1.
    """

    predicted: float
    trust: float


class Foreseen(NamedTuple):
    """What success heads said; all sequences are in the order of the contenders.

    Attributes:
        said: None for an agent that has no head.
        alpha: without what was said; so is `beta`.
    """

    said: tuple[Said | None, ...]
    alpha: tuple[float, ...]
    beta: tuple[float, ...]


class Learned(NamedTuple):
    """Posteriors and how they are used; all sequences are in the order of the contenders.

    Attributes:
        mode: of learning, as it holds for this decision: what may not be explored is exploited.
        alpha: of the Beta distribution of each contender's quality; so is `beta`.
        floor: share of such decisions that is spread evenly over all contenders.
        temperature: of the draws, in mode `explore`.
        version: of the weights.
        heads: what was blended into alpha and beta; None where no head said anything.
    """

    mode: LearningMode
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    floor: float
    temperature: float
    version: int
    heads: Foreseen | None = None

    @property
    def draws(self) -> bool:
        """Whether quality is drawn, as against its mean."""
        return self.mode == "explore"

    @property
    def means(self) -> list[float]:
        """Mean quality of each contender, 0..1."""
        return [alpha / (alpha + beta) for alpha, beta in zip(self.alpha, self.beta, strict=True)]

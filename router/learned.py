"""Learned: what the learner says of the contenders of one decision."""

from __future__ import annotations

from typing import NamedTuple

from feedback.success_slates import Foretold
from models.learning_policy import LearningMode


class Learned(NamedTuple):
    """Posteriors and how they are used; all sequences are in the order of the contenders.

    Attributes:
        mode: of learning, as it holds for this decision: what may not be explored is exploited.
        alpha: of the Beta distribution of each contender's quality; so is `beta`.
        floor: share of such decisions that is spread evenly over all contenders.
        temperature: of the draws, in mode `explore`.
        version: of the weights.
        foretold: what success heads said, which is blended into alpha and beta; None for an agent without one, empty
            where none was asked.
    """

    mode: LearningMode
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    floor: float
    temperature: float
    version: int
    foretold: tuple[Foretold | None, ...] = ()

    @property
    def draws(self) -> bool:
        """Whether quality is drawn, as against its mean."""
        return self.mode == "explore"

    @property
    def means(self) -> list[float]:
        """Mean quality of each contender, 0..1."""
        return [alpha / (alpha + beta) for alpha, beta in zip(self.alpha, self.beta, strict=True)]

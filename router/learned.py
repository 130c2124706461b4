"""Learned: what the learner says of the contenders of one decision."""

from __future__ import annotations

from typing import NamedTuple

from models.learning_policy import LearningMode


class Learned(NamedTuple):
    """Posteriors and how they are used; all sequences are in the order of the contenders.

    Attributes:
        mode: of learning.
        alpha: of the Beta distribution of each contender's quality; so is `beta`.
        floor: share of such decisions that is spread evenly over all contenders; 0 explores nothing.
        temperature: of the draws, in mode `explore`.
        version: of the weights.
    """

    mode: LearningMode
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    floor: float
    temperature: float
    version: int

    @property
    def draws(self) -> bool:
        """Whether quality is drawn, as against its mean."""
        return self.mode == "explore" and self.floor > 0

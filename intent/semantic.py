"""Semantic head: a linear classifier over vectors, with prototypes that show how near anything known is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class SemanticScores(NamedTuple):
    """What the head says of a vector.

    Attributes:
        logits: float32, shape (n_labels,).
        nearness: float32, shape (n_labels,): cosine of each label's nearest prototype.
    """

    logits: Floats
    nearness: Floats


@dataclass(frozen=True, slots=True)
class Semantic:
    """Multinomial logistic regression over unit vectors (fitted by `intent.fit`).

    Attributes:
        weights: float32, shape (n_labels, dim).
        bias: float32, shape (n_labels,).
        prototypes: float32, shape (n_prototypes, dim), unit length, those of a label side by side.
        first: int64, shape (n_labels,): where each label's prototypes begin; every label has at least one.
    """

    weights: Floats
    bias: Floats
    prototypes: Floats
    first: NDArray[np.int64]

    def score(self, vector: bytes) -> SemanticScores:
        """Scores of a vector (float32 little-endian, unit length)."""
        point = np.frombuffer(vector, dtype="<f4")
        nearness = np.maximum.reduceat(self.prototypes @ point, self.first)
        return SemanticScores(self.weights @ point + self.bias, nearness)

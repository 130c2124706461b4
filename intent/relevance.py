"""Relevance: does a text mean an intent, whatever else it means?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intent.confidence import Confidence
from intent.lexical import LexicalScores

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Relevance:
    """A linear classifier for each label against all else, over grams and vector together (fitted by `intent.fit`).

    This is binary relevance (Tsoumakas and Katakis 2007, "Multi-label classification: an overview"): labels are judged
    one by one, so that a text may mean several of them or none.

    Attributes:
        lexical: float32, shape (n_rows, n_labels), over the rows of the lexical classifier.
        vectors: float32, shape (n_labels, dim); dim is 0 where no vectors were at hand.
        centre: float32, shape (dim,): what is taken from a vector first; a text without one counts as the centre.
        bias: float32, shape (n_labels,).
        confidence: from a score to the probability that the label is meant.
        least: from this probability on it counts as meant.
    """

    lexical: Floats
    vectors: Floats
    centre: Floats
    bias: Floats
    confidence: Confidence
    least: float

    def scores(self, words: LexicalScores, vector: bytes | None) -> Floats:
        """Signed distance from each label's border.

        Args:
            words: what the lexical classifier found in the text.
            vector: float32 little-endian, unit length; None where there is none to be trusted.
        """
        found: Floats = (
            self.bias + words.values @ self.lexical.take(words.rows, axis=0) if words.rows.size else self.bias.copy()
        )
        if vector is not None and self.centre.size:
            found += self.vectors @ (np.frombuffer(vector, dtype="<f4") - self.centre)
        return found

    def probabilities(self, scores: Floats) -> NDArray[np.float64]:
        """That each label is meant, 0..1, from its score."""
        (slope,) = self.confidence.weights
        logits = np.clip(slope * scores.astype(np.float64) + self.confidence.bias, -30.0, 30.0)
        found: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-logits))
        return found

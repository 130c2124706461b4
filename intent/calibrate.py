"""Calibration: from similarities to confidences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """Platt scaling (Platt 1999) of a neighbour's similarity and its lead over the best other one.

    confidence = 1 / (1 + exp(-(bias + similarity_weight * similarity + lead_weight * min(lead, max_lead))))

    The shipped numbers come from `benchmarks/fit_confidence.py`, which fits them on the validation parts of CLINC150
    and BANKING77 (in scope and out of scope in equal parts), never on a test file.
    """

    similarity_weight: float = 10.62
    lead_weight: float = 12.38
    bias: float = -7.89
    max_lead: float = 0.2

    def confidences(self, similarities: Sequence[float]) -> list[float]:
        """Probability, 0..1, that each neighbour is the one meant.

        Args:
            similarities: cosines, best first; where there is one only, its lead is taken over a similarity of 0.
        """
        if not similarities:
            return []
        best = similarities[0]
        runner_up = similarities[1] if len(similarities) > 1 else 0.0
        leads = [best - runner_up, *(similarity - best for similarity in similarities[1:])]
        return [self._confidence(similarity, lead) for similarity, lead in zip(similarities, leads, strict=True)]

    def _confidence(self, similarity: float, lead: float) -> float:
        score = self.bias + self.similarity_weight * similarity + self.lead_weight * min(lead, self.max_lead)
        return 1.0 / (1.0 + math.exp(-score))

"""Heads: the fitted classifiers over one set of intents, swapped as a whole when the cards change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intent.confidence import Confidence, RiskTable
from intent.lexical import Lexical, LexicalScores
from intent.relevance import Relevance
from intent.semantic import Semantic, SemanticScores

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

SCORE_SCALE = 4
"""Turns lexical scores, whose margins are near 1, into something like log-odds."""

MAX_LEAD = 6.0
"""A lead beyond this adds no confidence: the others are out of the question."""


RELEVANCE_WEIGHT = 3.0
"""Of the scores of relevance beside log-probabilities, where there are any: 0.9 and 1.5 points of the best reading on
the two domains of NLU++ (held-out folds of the training part), nothing where nearly all texts mean one intent."""


@lru_cache(maxsize=8)
def _as_set(labels: tuple[str, ...]) -> frozenset[str]:
    return frozenset(labels)


class Ranked(NamedTuple):
    """Labels with their confidences, best first.

    Attributes:
        places: positions in the labels.
        confidences: 0..1, descending; they add up to at most 1, what is left is for something else altogether
            (those of `further` are judged one by one and may add up to more).
    """

    places: list[int]
    confidences: list[float]


@dataclass(frozen=True, slots=True)
class Stage:
    """How the readings of a stage are judged: is the text in scope at all, and is the intent then right?

    Attributes:
        in_scope: probability that the text means one of the intents, from the stage's features.
        is_right: probability that the best one is meant, given that one is.
        risk: held-out readings of it.
    """

    in_scope: Confidence
    is_right: Confidence
    risk: RiskTable

    def confidence(self, features: Sequence[float]) -> float:
        """Probability, 0..1, that the best intent is meant."""
        return self.in_scope.of(features) * self.is_right.of(features)


@dataclass(frozen=True, slots=True)
class Heads:
    """A lexical and a semantic classifier over the same labels, and how sure each may be.

    Attributes:
        labels: the intents.
        semantic: None where no example has a vector that is to be trusted.
        lexical_stage: judges readings by the lexical classifier alone.
        full_stage: judges readings by both.
        lexical_weight: of the lexical scores beside the log-probabilities of the semantic head.
        early: from this confidence on the lexical reading stands without the encoder.
        languages: what a part of the examples is in; empty where that is not known.
        relevance: says what a text means besides; None where no example means several intents.
        digest: of all that decides how they read; "" where they were not read from a model folder.
    """

    labels: tuple[str, ...]
    lexical: Lexical
    semantic: Semantic | None
    lexical_stage: Stage
    full_stage: Stage
    lexical_weight: float
    early: float
    languages: frozenset[str] = frozenset()
    relevance: Relevance | None = None
    digest: str = ""

    @property
    def known(self) -> frozenset[str]:
        """The labels as a set."""
        return _as_set(self.labels)

    def by_lexical(self, scores: LexicalScores, allowed: Bools, n: int, stage: Stage | None = None) -> Ranked:
        """The best `n` of the allowed labels by the lexical classifier alone.

        Args:
            scores: of the text.
            allowed: bool, shape (n_labels,), at least one True.
            n: how many.
            stage: judges the reading; None takes the lexical one.
        """
        judge = stage or self.lexical_stage
        fused = np.where(allowed, scores.scores * SCORE_SCALE, -np.inf)
        return _ranked(
            fused, n, lambda best, lead: judge.confidence([best / SCORE_SCALE, min(lead, MAX_LEAD), scores.coverage])
        )

    def by_both(
        self,
        scores: LexicalScores,
        vector: bytes,
        allowed: Bools,
        n: int,
        stage: Stage | None = None,
        semantic: SemanticScores | None = None,
    ) -> Ranked:
        """The best `n` of the allowed labels by both classifiers.

        Args:
            scores: of the text.
            vector: of the text.
            allowed: bool, shape (n_labels,), at least one True.
            n: how many.
            stage: judges the reading; None takes the full one. One for heads without relevance takes no notice of it.
            semantic: what the semantic head says of the vector, where that was asked already.
        """
        assert self.semantic is not None
        judge = stage or self.full_stage
        features = FullFeatures.of(self, scores, vector, allowed, semantic)
        n_features = len(judge.in_scope.weights)
        return _ranked(features.fused, n, lambda _, lead: judge.confidence(features.values(lead)[:n_features]))

    def further(self, scores: LexicalScores, vector: bytes | None, allowed: Bools, best: int) -> Ranked:
        """What the text means besides `best`, of the allowed labels, each with a probability of its own."""
        relevance = self.relevance
        if relevance is None:
            return Ranked([], [])
        probabilities = relevance.probabilities(relevance.scores(scores, vector))
        meant = np.flatnonzero(allowed & (probabilities >= relevance.least)).tolist()
        places = sorted((place for place in meant if place != best), key=lambda place: -probabilities[place])
        return Ranked(places, probabilities[places].tolist())


def lexical_features(scores: LexicalScores, allowed: Bools, lead: float) -> list[float]:
    """Best score, lead over the next, coverage."""
    return [float(scores.scores[allowed].max()), min(lead, MAX_LEAD), scores.coverage]


@dataclass(frozen=True, slots=True)
class FullFeatures:
    """What the full stage judges a reading by.

    Attributes:
        fused: float64, shape (n_labels,): log-probability by vector + weighted other scores; -inf where not allowed.
        relevance: the highest one's score and that of the best label; None where the heads have no relevance.
    """

    fused: NDArray[np.float64]
    logit: float
    nearness: float
    own_nearness: float
    lexical: float
    relevance: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        heads: Heads,
        scores: LexicalScores,
        vector: bytes,
        allowed: Bools,
        semantic: SemanticScores | None = None,
    ) -> FullFeatures:
        """Of one text; `semantic` is what the semantic head says of its vector, where that was asked already."""
        assert heads.semantic is not None
        if semantic is None:
            semantic = heads.semantic.score(vector)
        logits = np.where(allowed, semantic.logits, -np.inf).astype(np.float64)
        top = logits.max()
        logits -= top
        log_probability = logits - math.log(np.exp(logits).sum())
        fused = log_probability + heads.lexical_weight * scores.scores
        borders = None if heads.relevance is None else heads.relevance.scores(scores, vector)
        if borders is not None:
            fused = fused + RELEVANCE_WEIGHT * borders
        place = int(fused.argmax())
        return cls(
            fused=fused,
            logit=float(top),
            nearness=float(semantic.nearness[allowed].max()),
            own_nearness=float(semantic.nearness[place]),
            lexical=float(scores.scores[allowed].max()),
            relevance=None if borders is None else (float(borders[allowed].max()), float(borders[place])),
        )

    def values(self, lead: float) -> list[float]:
        """The features, in the order of the stage's weights."""
        found = [self.logit, self.nearness, self.own_nearness, self.lexical, min(lead, MAX_LEAD)]
        return found if self.relevance is None else [*found, *self.relevance]


def lead_of(fused: NDArray[np.floating]) -> float:
    """How far the best is before the next; MAX_LEAD where there is one only."""
    if np.isfinite(fused).sum() < 2:
        return MAX_LEAD
    second, first = np.partition(fused, -2)[-2:]
    return float(first - second)


def _ranked(fused: NDArray[np.floating], n: int, confidence_of: Callable[[float, float], float]) -> Ranked:
    """The best `n`; the confidence in the best one comes from its score and its lead."""
    places = (-fused).argsort(kind="stable")[: max(n, 2)]
    scores = [score for score in fused.take(places).tolist() if score > -math.inf]
    lead = scores[0] - scores[1] if len(scores) > 1 else MAX_LEAD
    top = confidence_of(scores[0], lead)
    weights = [math.exp(score - scores[0]) for score in scores[1:n]]
    rest = sum(weights)
    others = [min(top, (1 - top) * weight / (1 + rest)) for weight in weights]
    return Ranked(places.tolist()[: len(others) + 1], [top, *others])

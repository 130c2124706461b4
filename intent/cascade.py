"""Cascade: the fitted heads over what a request may mean, and the index where the heads do not reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intent.calibrate import Calibration
from intent.confidence import RiskTable
from intent.expressed import in_order
from intent.heads import Heads, Ranked
from intent.lexical import LexicalScores
from intent.normalize import match_form
from intent.prior import PRIOR, stage_by_both
from intent.seam import Sides, seam
from intent.semantic import SemanticScores
from models.policy import Confidence
from models.ports import Embedded, IntentSource
from models.reading import Alternative, Neighbour

N_FOUND = 6
LIKELY = 0.5
"""Where a second intent is as likely as not, too, the best one is no answer by itself."""

_MAX_REACHES = 512


class Seen(NamedTuple):
    """What the semantic head says of a vector, worked out beforehand.

    Attributes:
        by: the heads it belongs to; the scores of others mean other labels.
    """

    scores: SemanticScores
    by: Heads


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a stage makes of a text.

    Attributes:
        found: intents with their confidences, best first; empty where the stage has nothing to say.
        accept: from which confidence on the best may be acted on.
        wishes: where the text means several intents, all of them, as far as can be told in the order in which it
            expresses them; empty where it means one.
        scores: what the lexical classifier said of the text, for the stage that follows.
        by: whose scores they are; those of other heads mean other labels.
    """

    found: tuple[Alternative, ...] = ()
    accept: float = 1.01
    wishes: tuple[Alternative, ...] = ()
    scores: LexicalScores | None = field(default=None, compare=False)
    by: Heads | None = field(default=None, compare=False)

    @property
    def confidence(self) -> float:
        """That of the best; 0 where there is none."""
        return self.found[0].confidence if self.found else 0.0

    @property
    def is_sure(self) -> bool:
        """Whether the best may be acted on: it is sure enough, and no other would be if it were not for the best."""
        is_rivalled = len(self.found) > 1 and self.found[1].confidence >= max(self.accept, LIKELY)
        return bool(self.found) and self.confidence >= self.accept and not is_rivalled


class _Reach(NamedTuple):
    """How far heads reach into a source.

    Attributes:
        allowed: bool, shape (n_labels,): which labels may be read; None where none of them may.
        is_whole: whether the heads know all intents of the source.
    """

    allowed: NDArray[np.bool_] | None
    is_whole: bool


class Cascade:
    """Judges texts and vectors by the heads in force; they are swapped by one assignment.

    Attributes:
        generation: rises with each swap, and is never that of a cascade beside it; 0 before the first one.
    """

    def __init__(self, calibration: Calibration, generations: Iterator[int] | None = None) -> None:
        """Begin without heads.

        Args:
            calibration: of similarities.
            generations: where the next generation's number comes from; None counts from 1.
        """
        self._calibration = calibration
        self._generations = count(1) if generations is None else generations
        self._heads: Heads | None = None
        self._reaches: dict[frozenset[str], _Reach] = {}
        self.generation = 0

    def use(self, heads: Heads | None) -> None:
        """Put heads in force; None leaves everything to the index."""
        self._heads, self._reaches = heads, {}
        self.generation = next(self._generations)

    def beside(self) -> Cascade:
        """Another one without heads, whose generations are told apart from those of this one."""
        return Cascade(self._calibration, self._generations)

    @property
    def heads(self) -> Heads | None:
        """The heads in force; None where everything is left to the index."""
        return self._heads

    @property
    def is_lexical(self) -> bool:
        """Whether the heads in force do without vectors."""
        return self._heads is not None and self._heads.semantic is None

    def by_words(self, text: str, source: IntentSource, thresholds: Confidence, *, alone: bool) -> Verdict:
        """By the words of a text.

        Args:
            text: normalized.
            source: what may be read.
            thresholds: of the namespace.
            alone: True where the encoder does not know the language; else it is sure only where a vector adds nothing.
        """
        heads = self._heads
        allowed = None if heads is None else self._reach(heads, source).allowed
        if heads is None or allowed is None:
            return Verdict()
        stage = heads.lexical_stage if heads.semantic is None or not alone else PRIOR.foreign_stage
        scores = heads.lexical.score(match_form(text))
        ranked = heads.by_lexical(scores, allowed, N_FOUND, stage)
        accept = _accept(thresholds, stage.risk)
        wishes = _wishes(text, heads, scores, ranked, None, allowed) if alone else ()
        return Verdict(_named(heads, ranked), accept if alone else max(accept, heads.early), wishes, scores, heads)

    def seen(self, embedded: Embedded) -> Seen | None:
        """The part of `by_vector` that takes longest and needs the vector alone; may run in any thread."""
        heads = self._heads
        if heads is None or heads.semantic is None or not embedded.is_trusted:
            return None
        return Seen(heads.semantic.score(embedded.vector), heads)

    def by_vector(
        self,
        text: str,
        embedded: Embedded,
        neighbours: Sequence[Neighbour],
        source: IntentSource,
        thresholds: Confidence,
        words: Verdict | None = None,
        languages: frozenset[str] | None = None,
        seen: Seen | None = None,
    ) -> Verdict:
        """By words and vector; intents that the heads do not know yet are judged by their nearest texts.

        Args:
            text: normalized; the one that was embedded.
            embedded: its vector, to be trusted.
            neighbours: the nearest intents of `source`, best first.
            source: what may be read.
            thresholds: of the namespace.
            words: the verdict on the words of the same text; None judges them here.
            languages: what the encoder was made for; None where that is not known.
            seen: of the same vector; None looks at it here.
        """
        heads = self._heads
        allowed = None if heads is None else self._reach(heads, source).allowed
        near = self._near(neighbours, thresholds) if neighbours else Verdict()
        if heads is None or allowed is None or heads.semantic is None:
            return near
        scores = _scores(words, heads) or heads.lexical.score(match_form(text))
        semantic = seen.scores if seen is not None and seen.by is heads else None
        stage = stage_by_both(heads, text, languages)
        ranked = heads.by_both(scores, embedded.vector, allowed, N_FOUND, stage, semantic)
        wishes = _wishes(text, heads, scores, ranked, embedded.vector, allowed)
        known = Verdict(_named(heads, ranked), _accept(thresholds, stage.risk), wishes)
        if not near.found or near.found[0].intent in heads.labels or near.confidence <= known.confidence:
            return known
        return near

    def seam(self, text: str, source: IntentSource, words: Verdict | None = None) -> Sides | None:
        """Where a text, normalized, may be cut in two wishes; heads that know of several need no such help.

        Args:
            text: normalized.
            source: what may be read.
            words: the verdict on the words of the same text; None judges them here.
        """
        heads = self._heads
        allowed = None if heads is None or heads.relevance is not None else self._reach(heads, source).allowed
        if heads is None or allowed is None:
            return None
        return seam(text, heads.lexical, allowed, _scores(words, heads))

    def wants_neighbours(self, source: IntentSource) -> bool:
        """Whether the heads leave anything to the index."""
        heads = self._heads
        return heads is None or heads.semantic is None or not self._reach(heads, source).is_whole

    def _near(self, neighbours: Sequence[Neighbour], thresholds: Confidence) -> Verdict:
        confidences = self._calibration.confidences([neighbour.similarity for neighbour in neighbours])
        found = (
            Alternative(neighbour.intent, confidence)
            for neighbour, confidence in zip(neighbours, confidences, strict=True)
        )
        return Verdict(tuple(found), _accept(thresholds, RiskTable.empty()))

    def _reach(self, heads: Heads, source: IntentSource) -> _Reach:
        intents = source.intents
        reach = self._reaches.get(intents)
        if reach is None:
            mask = np.array([label in intents for label in heads.labels], dtype=np.bool_)
            reach = _Reach(mask if mask.any() else None, intents <= heads.known)
            if len(self._reaches) < _MAX_REACHES:
                self._reaches[intents] = reach
        return reach


def _scores(words: Verdict | None, heads: Heads) -> LexicalScores | None:
    """Those of the verdict; None where other heads gave them, swapped while the encoder ran."""
    return words.scores if words is not None and words.by is heads else None


def _named(heads: Heads, ranked: Ranked) -> tuple[Alternative, ...]:
    return tuple(
        Alternative(heads.labels[place], confidence)
        for place, confidence in zip(ranked.places, ranked.confidences, strict=True)
    )


def _wishes(
    text: str,
    heads: Heads,
    scores: LexicalScores,
    ranked: Ranked,
    vector: bytes | None,
    allowed: NDArray[np.bool_],
) -> tuple[Alternative, ...]:
    """The best of the ranked labels and what the text means besides; none where it means nothing besides."""
    best = ranked.places[0]
    further = heads.further(scores, vector, allowed, best)
    if not further.places or heads.relevance is None:
        return ()
    confidences = {best: ranked.confidences[0], **dict(zip(*further, strict=True))}
    places = list(confidences)[:N_FOUND]
    order = in_order(match_form(text), scores, heads.lexical, heads.relevance.lexical, places)
    return tuple(Alternative(heads.labels[place], confidences[place]) for place in order)


def _accept(thresholds: Confidence, table: RiskTable) -> float:
    """From which confidence on a reading is acted on: as the stated risk needs it, else the policy's own figure."""
    if thresholds.risk is None:
        return thresholds.accept
    return table.threshold(thresholds.risk) if len(table.confidences) else 1 - thresholds.risk

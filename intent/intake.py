"""Intake: from an utterance to a reading, or an honest "not sure"."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from intent.cascade import Cascade, Verdict
from intent.embed_pool import EmbedPool
from intent.language import UNDETERMINED, language_of, may_be_in
from intent.normalize import gist, has_words, normalize
from intent.rules import Rules
from intent.split import split
from models.policy import Confidence
from models.ports import Embedded, IntentSource
from models.reading import (
    Alternative,
    Certainty,
    IntentSourceName,
    Neighbour,
    Reading,
    RequestedPreference,
)

N_ALTERNATIVES = 5
LEAST_OF_PART = 0.7
"""A part of a sentence counts as a wish of its own only from this confidence on."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What belongs to one request while its text is read."""

    source: IntentSource
    rules: Rules
    namespace: str
    thresholds: Confidence
    until_s: float


class Intake:
    """Reads utterances by a cascade, cheapest stage first: rules, identical examples, words, then words and vector.

    Attributes:
        cascade: the heads in force.
    """

    def __init__(self, pool: EmbedPool, cascade: Cascade, *, inline_rows: int = 20_000) -> None:
        """Put the stages together.

        Args:
            pool: the encoder.
            cascade: judges words and vectors.
            inline_rows: larger indexes are searched in a worker thread.
        """
        self.cascade = cascade
        self._pool = pool
        self._inline_rows = inline_rows

    async def read(
        self,
        utterance: str,
        source: IntentSource,
        *,
        rules: Rules,
        namespace: str,
        thresholds: Confidence,
        wait_ms: float,
    ) -> Reading:
        """What the utterance means, read over the intents of `source`.

        Args:
            wait_ms: how long the encoder may take in all.

        Raises:
            OverloadedError: too many utterances wait for the encoder.
            TimeoutError: the encoder did not answer within `wait_ms`.
        """
        asked = _Asked(
            source=source,
            rules=rules,
            namespace=namespace,
            thresholds=thresholds,
            until_s=asyncio.get_running_loop().time() + wait_ms / 1000,
        )
        text = normalize(utterance)
        reading = await self._read_whole(text, asked)
        pieces = split(text)
        if len(pieces) == 1 or (reading.source == "lexical" and reading.confidence == 1.0):
            return reading
        wishes = _wishes([await self._read_whole(piece, asked) for piece in pieces])
        # a rule for the whole sentence was not made for its parts
        if len(wishes) < 2 or (reading.source == "rule" and reading.intent not in [each.intent for each in wishes]):
            return reading
        first, *others = wishes
        return replace(first, text=text, preference=reading.preference, parts=tuple(others))

    async def _read_whole(self, text: str, asked: _Asked) -> Reading:
        """The reading of a text that is taken to want one thing."""
        source, thresholds = asked.source, asked.thresholds
        preference = asked.rules.preference(text, asked.namespace)
        if not has_words(text):
            return _nothing(text, preference)
        ruled = asked.rules.intent(text, asked.namespace, source.intents)
        if ruled is not None:
            return _of_verdict(text, Verdict((ruled,), thresholds.accept), thresholds, "rule", preference)
        exact = source.exact(text)
        if exact:
            return _of_exact(text, exact, preference)
        verdict = self.cascade.by_words(text, source, thresholds, alone=False)
        if verdict.is_sure:
            return _of_verdict(text, verdict, thresholds, "lexical", preference)
        reading = await self._by_vector(text, text, asked, preference, verdict)
        short = gist(text)
        if reading.certainty is Certainty.SURE or short == text:
            return reading
        # An id, an amount or an emoji drags a short sentence away from every example: look again without it.
        again = await self._by_vector(text, short, asked, preference)
        return again if again.confidence > reading.confidence else reading

    async def reread(self, reading: Reading, source: IntentSource) -> Reading:
        """The same utterance read over the intents of another source; one without a vector stays as it is."""
        if reading.vector is None:
            return reading
        embedded = Embedded(reading.vector, 0.0)
        return await self._judged(reading.text, reading.text, embedded, source, reading.preference, Confidence())

    async def _by_vector(
        self,
        text: str,
        embedded_text: str,
        asked: _Asked,
        preference: RequestedPreference | None,
        words: Verdict | None = None,
    ) -> Reading:
        missing = "encoder: not made for this language"
        if self._is_made_for(embedded_text):
            left_s = asked.until_s - asyncio.get_running_loop().time()
            embedded = await self._pool.embed(embedded_text, wait_ms=left_s * 1000)
            if embedded.is_trusted:
                return await self._judged(
                    text, embedded_text, embedded, asked.source, preference, asked.thresholds, words
                )
            missing = "encoder: too many unknown tokens"
        verdict = self.cascade.by_words(embedded_text, asked.source, asked.thresholds, alone=True)
        if not verdict.found:
            return _nothing(text, preference, degraded=(missing,))
        return _of_verdict(text, verdict, asked.thresholds, "lexical", preference, degraded=(missing,))

    def _is_made_for(self, text: str) -> bool:
        """Whether the encoder may have been made for the language of a text.

        A language that cannot be told is taken to be that of the examples: with heads that do without vectors, because
        the encoder was not made for most examples, it was not made for this text either.
        """
        if not may_be_in(text, self._pool.embedder.languages):
            return False
        return not self.cascade.is_lexical or language_of(text) != UNDETERMINED

    async def _judged(
        self,
        text: str,
        embedded_text: str,
        embedded: Embedded,
        source: IntentSource,
        preference: RequestedPreference | None,
        thresholds: Confidence,
        words: Verdict | None = None,
    ) -> Reading:
        neighbours = await self._neighbours(source, embedded) if self.cascade.wants_neighbours(source) else ()
        languages = self._pool.embedder.languages
        verdict = self.cascade.by_vector(embedded_text, embedded, neighbours, source, thresholds, words, languages)
        if not verdict.found:
            return _nothing(text, preference)
        return _of_verdict(text, verdict, thresholds, "semantic", preference, vector=embedded.vector)

    async def _neighbours(self, source: IntentSource, embedded: Embedded) -> Sequence[Neighbour]:
        if source.n_rows <= self._inline_rows:
            return source.neighbours(embedded.vector, N_ALTERNATIVES + 1)
        return await asyncio.to_thread(source.neighbours, embedded.vector, N_ALTERNATIVES + 1)


def _wishes(readings: Sequence[Reading]) -> list[Reading]:
    """The sure ones among the readings of a sentence's parts, in order, each intent once."""
    first: dict[str | None, Reading] = {}
    for reading in readings:
        if reading.certainty is Certainty.SURE and reading.confidence >= LEAST_OF_PART:
            first.setdefault(reading.intent, reading)
    return list(first.values())


def _of_verdict(
    text: str,
    verdict: Verdict,
    thresholds: Confidence,
    source: IntentSourceName,
    preference: RequestedPreference | None,
    *,
    vector: bytes | None = None,
    degraded: tuple[str, ...] = (),
) -> Reading:
    best, *others = verdict.found
    if verdict.is_sure:
        certainty = Certainty.SURE
    else:
        certainty = Certainty.AMBIGUOUS if best.confidence >= thresholds.plausible else Certainty.OUT_OF_SCOPE
    return Reading(
        text=text,
        language=language_of(text),
        certainty=certainty,
        intent=best.intent,
        confidence=best.confidence,
        source=source,
        alternatives=tuple(others[:N_ALTERNATIVES]),
        vector=vector,
        preference=preference,
        degraded=degraded,
    )


def _of_exact(text: str, intents: Sequence[str], preference: RequestedPreference | None) -> Reading:
    """An utterance that stands on cards word for word: certain, unless several intents claim it."""
    share = 1.0 / len(intents)
    return Reading(
        text=text,
        language=language_of(text),
        certainty=Certainty.SURE if len(intents) == 1 else Certainty.AMBIGUOUS,
        intent=intents[0],
        confidence=share,
        source="lexical",
        alternatives=tuple(Alternative(intent, share) for intent in intents[1:]),
        preference=preference,
    )


def _nothing(text: str, preference: RequestedPreference | None, degraded: tuple[str, ...] = ()) -> Reading:
    return Reading(
        text=text,
        language=language_of(text),
        certainty=Certainty.OUT_OF_SCOPE,
        intent=None,
        confidence=0.0,
        source="semantic",
        preference=preference,
        degraded=degraded,
    )

"""Intake: from an utterance to a reading, or an honest "not sure"."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from intent.cascade import Cascade, Seen, Verdict
from intent.embed_pool import EmbedPool
from intent.language import UNDETERMINED, language_of, may_be_in
from intent.normalize import gist, has_words, normalize
from intent.parts import FAIRLY_SURE, joined, rivalled
from intent.readings import N_ALTERNATIVES, nothing, of_exact, of_verdict
from intent.rules import Rules
from intent.split import split
from models.errors import OverloadedError
from models.policy import Confidence
from models.ports import Embedded, IntentSource
from models.reading import (
    Certainty,
    Neighbour,
    Reading,
    RequestedPreference,
)

MAX_LOOKS = 6
"""So many texts are embedded for an utterance at most; each piece has a first look before any has a second one."""

SHARE_OF_PIECES, MAX_S_OF_PIECES = 0.5, 0.5
"""Of the time that is left once the whole is read, and seconds, for its pieces: agents need what remains."""


@dataclass(slots=True)
class _Asked:
    """What belongs to one request while its text is read.

    Attributes:
        until_s: instant of the loop's clock at which the encoder is no longer waited for.
        n_looks: how often the encoder may still be asked.
        n_ahead: how many texts are still to come; each gets a first look before any gets a second one.
    """

    source: IntentSource
    rules: Rules
    namespace: str
    thresholds: Confidence
    until_s: float
    n_looks: int = MAX_LOOKS
    n_ahead: int = 0


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

    def beside(self, cascade: Cascade) -> Intake:
        """Another one with the same encoder and other heads."""
        return Intake(self._pool, cascade, inline_rows=self._inline_rows)

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
            TimeoutError: the encoder did not read the utterance within `wait_ms`; its pieces may be late.
        """
        asked = _Asked(
            source=source,
            rules=rules,
            namespace=namespace,
            thresholds=thresholds,
            until_s=asyncio.get_running_loop().time() + wait_ms / 1000,
        )
        text = normalize(utterance)
        glance = self._at_a_glance(text, asked)
        reading = await self._looked_into(text, glance, asked)
        if reading.parts or (reading.source == "lexical" and reading.confidence == 1.0):
            return reading
        pieces = split(text)
        if len(pieces) == 1:
            return await self._told_from_rival(reading, glance, asked)
        glances = [self._at_a_glance(piece, asked) for piece in pieces]
        if not any(self._may_want_else(*each, reading, asked) for each in zip(pieces, glances, strict=True)):
            return reading
        try:
            return joined(reading, await self._read_pieces(pieces, glances, asked))
        except (TimeoutError, OverloadedError):
            return replace(reading, degraded=(*reading.degraded, "parts: no time to read them"))

    async def _told_from_rival(self, reading: Reading, glance: Reading | Verdict, asked: _Asked) -> Reading:
        """The reading of a sentence without joints; ambiguous if it may still want two things."""
        if reading.certainty is not Certainty.SURE or reading.source == "rule" or reading.confidence >= FAIRLY_SURE:
            return reading
        sides = self.cascade.seam(reading.text, asked.source, None if isinstance(glance, Reading) else glance)
        if sides is None:
            return reading
        try:
            return rivalled(
                reading, await self._read_pieces(sides, [self._at_a_glance(s, asked) for s in sides], asked)
            )
        except (TimeoutError, OverloadedError):
            return replace(reading, degraded=(*reading.degraded, "parts: no time to read them"))

    async def _read_pieces(
        self, pieces: Sequence[str], glances: Sequence[Reading | Verdict], asked: _Asked
    ) -> list[Reading]:
        """One reading a piece, in order."""
        now_s = asyncio.get_running_loop().time()
        asked.until_s = now_s + min(SHARE_OF_PIECES * (asked.until_s - now_s), MAX_S_OF_PIECES)
        found = []
        for number, (piece, glance) in enumerate(zip(pieces, glances, strict=True), 1):
            asked.n_ahead = len(pieces) - number
            found.append(await self._looked_into(piece, glance, asked))
        return found

    def _may_want_else(self, piece: str, glance: Reading | Verdict, whole: Reading, asked: _Asked) -> bool:
        """Whether a piece is worth the encoder's time: at a glance it wants something else, or nothing can be told."""
        if isinstance(glance, Reading):
            return glance.intent not in (None, whole.intent)
        if whole.certainty is not Certainty.SURE or not glance.found:
            return True
        if self.cascade.wants_neighbours(asked.source) or not self._is_made_for(piece):
            return True
        return glance.found[0].intent != whole.intent and glance.confidence >= asked.thresholds.plausible

    async def _looked_into(self, text: str, glance: Reading | Verdict, asked: _Asked) -> Reading:
        """The reading of a text that is taken to want one thing, with the encoder where a glance was not enough."""
        if isinstance(glance, Reading):
            return glance
        preference = asked.rules.preference(text, asked.namespace)
        reading = await self._by_vector(text, text, asked, preference, glance)
        short = gist(text)
        if reading.certainty is Certainty.SURE or short == text or asked.n_looks <= asked.n_ahead:
            return reading
        # An id, an amount or an emoji drags a short sentence away from every example: look again without it.
        try:
            again = await self._by_vector(text, short, asked, preference)
        except (TimeoutError, OverloadedError):
            return replace(reading, degraded=(*reading.degraded, "encoder: no time for a second look"))
        return again if again.confidence > reading.confidence else reading

    def _at_a_glance(self, text: str, asked: _Asked) -> Reading | Verdict:
        """The reading of a text by rules, examples and words, where they are sure of it; else what its words say."""
        source, thresholds = asked.source, asked.thresholds
        preference = asked.rules.preference(text, asked.namespace)
        if not has_words(text):
            return nothing(text, preference)
        ruled = asked.rules.intent(text, asked.namespace, source.intents)
        if ruled is not None:
            return of_verdict(text, Verdict((ruled,), thresholds.accept), thresholds, "rule", preference)
        exact = source.exact(text)
        if exact:
            return of_exact(text, exact, preference)
        verdict = self.cascade.by_words(text, source, thresholds, alone=False)
        return of_verdict(text, verdict, thresholds, "lexical", preference) if verdict.is_sure else verdict

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
            asked.n_looks -= 1
            left_s = asked.until_s - asyncio.get_running_loop().time()
            embedded, seen = await self._pool.embed_and(embedded_text, self.cascade.seen, wait_ms=left_s * 1000)
            if embedded.is_trusted:
                return await self._judged(
                    text, embedded_text, embedded, asked.source, preference, asked.thresholds, words, seen
                )
            missing = "encoder: too many unknown tokens"
        verdict = self.cascade.by_words(embedded_text, asked.source, asked.thresholds, alone=True)
        if not verdict.found:
            return nothing(text, preference, degraded=(missing,))
        return of_verdict(text, verdict, asked.thresholds, "lexical", preference, degraded=(missing,))

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
        seen: Seen | None = None,
    ) -> Reading:
        neighbours = await self._neighbours(source, embedded) if self.cascade.wants_neighbours(source) else ()
        languages = self._pool.embedder.languages
        verdict = self.cascade.by_vector(
            embedded_text, embedded, neighbours, source, thresholds, words, languages, seen
        )
        if not verdict.found:
            return nothing(text, preference)
        return of_verdict(text, verdict, thresholds, "semantic", preference, vector=embedded.vector)

    async def _neighbours(self, source: IntentSource, embedded: Embedded) -> Sequence[Neighbour]:
        if source.n_rows <= self._inline_rows:
            return source.neighbours(embedded.vector, N_ALTERNATIVES + 1)
        return await asyncio.to_thread(source.neighbours, embedded.vector, N_ALTERNATIVES + 1)

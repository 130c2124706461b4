"""Reading: what intake understood of an utterance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

IntentSourceName = Literal["caller", "rule", "lexical", "semantic", "llm"]
RequestedPreference = Literal["auto", "cheapest", "best"]


class Certainty(StrEnum):
    """How far a reading may be acted on."""

    SURE = "sure"
    AMBIGUOUS = "ambiguous"
    OUT_OF_SCOPE = "out_of_scope"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An intent near an utterance.

    Attributes:
        intent: its name.
        similarity: cosine of the utterance and the nearest text of the intent, -1..1.
    """

    intent: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """An intent the utterance might mean, with the calibrated probability, 0..1, that it does."""

    intent: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What intake understood.

    Attributes:
        text: the normalized utterance.
        language: BCP 47 primary tag, "und" where it could not be told.
        certainty: whether `intent` may be acted on.
        intent: the best reading whatever the certainty; None only where there is nothing to read over.
        confidence: calibrated probability, 0..1, that `intent` is meant.
        source: which stage read it.
        alternatives: other intents, best first, with their confidences.
        vector: float32 little-endian; None where no encoder was needed or its vector is not to be trusted.
        preference: what the sentence itself asks for ("in depth"); None says nothing.
        degraded: what was left out and why.
        parts: where a sentence wants several things, the readings of the others, in order; this one is of the first.
    """

    text: str
    language: str
    certainty: Certainty
    intent: str | None
    confidence: float
    source: IntentSourceName
    alternatives: tuple[Alternative, ...] = ()
    vector: bytes | None = None
    preference: RequestedPreference | None = None
    degraded: tuple[str, ...] = ()
    parts: tuple[Reading, ...] = ()

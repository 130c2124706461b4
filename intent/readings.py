"""Readings: what the stages of intake find, as what intake answers."""

from __future__ import annotations

from collections.abc import Sequence

from intent.cascade import Verdict
from intent.language import language_of
from intent.parts import with_wishes
from models.policy import Confidence
from models.reading import Alternative, Certainty, IntentSourceName, Reading, RequestedPreference

N_ALTERNATIVES = 5


def of_verdict(
    text: str,
    verdict: Verdict,
    thresholds: Confidence,
    source: IntentSourceName,
    preference: RequestedPreference | None,
    *,
    vector: bytes | None = None,
    degraded: tuple[str, ...] = (),
) -> Reading:
    """What a stage that found anything makes of a text."""
    best, *others = verdict.found
    if verdict.is_sure:
        certainty = Certainty.SURE
    else:
        certainty = Certainty.AMBIGUOUS if best.confidence >= thresholds.plausible else Certainty.OUT_OF_SCOPE
    reading = Reading(
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
    return with_wishes(reading, verdict.wishes, accept=verdict.accept, plausible=thresholds.plausible)


def of_exact(text: str, intents: Sequence[str], preference: RequestedPreference | None) -> Reading:
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


def nothing(text: str, preference: RequestedPreference | None, degraded: tuple[str, ...] = ()) -> Reading:
    """A text in which no stage found anything."""
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

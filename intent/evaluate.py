"""Evaluation: labelled texts read by heads and encoder as the service would read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intent.exam import RISKS, at_risk, auroc, expected_calibration_error, fpr_at_recall, macro_f1
from intent.fit_stages import OUT_OF_SCOPE_SHARE
from intent.heads import Heads, Ranked
from intent.language import may_be_in
from intent.normalize import match_form, normalize
from intent.prior import PRIOR, stage_by_both
from intent.vector_cache import Progress, silent
from models.ports import Embedded

Embed = Callable[[str], Embedded]
_EVERY = 64


@dataclass(frozen=True, slots=True)
class Read:
    """A labelled text and what became of it.

    Attributes:
        expected: None out of scope.
        intent: the best reading, whatever its confidence.
        confidence: 0..1.
        is_early: whether it came without the encoder.
        ms: how long it took, the encoder included.
    """

    expected: str | None
    intent: str
    confidence: float
    is_early: bool
    ms: float


def read_all(
    heads: Heads,
    embed: Embed,
    texts: Sequence[tuple[str, str | None]],
    progress: Progress = silent,
    languages: frozenset[str] | None = None,
) -> list[Read]:
    """Read (text as it was written, intent) one after the other.

    Args:
        heads: with all of their labels allowed.
        embed: text → vector.
        texts: None is the intent of one that is out of scope.
        progress: told of the reading.
        languages: what the encoder was made for; None means all of which it knows the tokens.
    """
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    found = []
    for number, (raw, expected) in enumerate(texts, 1):
        started = time.perf_counter()
        text = normalize(raw)
        ranked, is_early = _read(heads, embed, text, allowed, languages)
        ms = 1000 * (time.perf_counter() - started)
        found.append(Read(expected, heads.labels[ranked.places[0]], ranked.confidences[0], is_early, ms))
        if number % _EVERY == 0 or number == len(texts):
            progress(number, len(texts))
    return found


def figures(heads: Heads, readings: Sequence[Read]) -> dict[str, Any]:
    """What readings are worth: accuracy and the like over those in scope, the rest over all.

    `coverage_at_risk` takes thresholds from the risk tables of the heads, never from these readings;
    `wrong_at_risk` is the share of all of them that was then answered wrongly.
    """
    inside = [each for each in readings if each.expected is not None]
    expected, read = [str(each.expected) for each in inside], [each.intent for each in inside]
    in_scope = np.array([each.expected is not None for each in readings])
    is_right = np.array([each.intent == each.expected for each in readings])
    confidences = np.array([each.confidence for each in readings])
    risk = (heads.lexical_stage if heads.semantic is None else heads.full_stage).risk
    risks = at_risk(confidences, is_right, in_scope, {each: risk.threshold(each) for each in RISKS})
    p50, p95, p99 = np.percentile([each.ms for each in readings], (50, 95, 99)).tolist()
    positive, negative = confidences[in_scope], confidences[~in_scope]
    return {
        "n": len(inside),
        "n_out_of_scope": len(negative),
        "n_labels": len(heads.labels),
        "accuracy": float(is_right[in_scope].mean()),
        "macro_f1": macro_f1(expected, read),
        "oos_auroc": auroc(positive, negative) if len(negative) else None,
        "oos_fpr95": fpr_at_recall(positive, negative) if len(negative) else None,
        "ece": expected_calibration_error(confidences, is_right),
        "lexical_share": float(np.mean([each.is_early for each in inside])),
        "lexical_accuracy": _accuracy([each for each in inside if each.is_early]),
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
        "coverage_at_risk": risks["coverage"],
        "wrong_at_risk": risks["wrong"],
        "threshold_at_risk": risks["thresholds"],
        "out_of_scope_share": {"test": len(negative) / len(readings), "assumed": OUT_OF_SCOPE_SHARE},
    }


def unknown_labels(heads: Heads, texts: Sequence[tuple[str, str | None]]) -> Mapping[str, int]:
    """Intents of the texts that the heads do not know → how many texts have them."""
    known = heads.known
    counts: dict[str, int] = {}
    for _, intent in texts:
        if intent is not None and intent not in known:
            counts[intent] = counts.get(intent, 0) + 1
    return counts


def _read(
    heads: Heads, embed: Embed, text: str, allowed: NDArray[np.bool_], languages: frozenset[str] | None
) -> tuple[Ranked, bool]:
    """The reading, and whether it came early."""
    scores = heads.lexical.score(match_form(text))
    ranked = heads.by_lexical(scores, allowed, 1)
    if heads.semantic is None or ranked.confidences[0] >= heads.early:
        return ranked, True
    embedded = embed(text) if may_be_in(text, languages) else None
    if embedded is not None and embedded.is_trusted:
        stage = stage_by_both(heads, text, languages)
        return heads.by_both(scores, embedded.vector, allowed, 1, stage), False
    return heads.by_lexical(scores, allowed, 1, PRIOR.foreign_stage), False


def _accuracy(readings: Sequence[Read]) -> float | None:
    return sum(each.intent == each.expected for each in readings) / len(readings) if readings else None

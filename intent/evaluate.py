"""Evaluation: labelled texts read by heads and encoder as the service would read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intent.exam import RISKS, at_risk, auroc, expected_calibration_error, fpr_at_recall, macro_f1, set_scores
from intent.fit_stages import OUT_OF_SCOPE_SHARE
from intent.heads import Heads, Ranked
from intent.language import may_be_in
from intent.normalize import match_form, normalize
from intent.prior import PRIOR, stage_by_both
from intent.vector_cache import Progress, silent
from models.policy import Confidence
from models.ports import Embedded

Embed = Callable[[str], Embedded]
Meant = str | frozenset[str] | None
"""What a text means: an intent, several of them, or nothing that is known (None, or an empty set)."""

_EVERY = 64


@dataclass(frozen=True, slots=True)
class Read:
    """A labelled text and what became of it.

    Attributes:
        expected: None, or no intents, out of scope.
        intent: the best reading, whatever its confidence.
        confidence: 0..1.
        is_early: whether it came without the encoder.
        ms: how long it took, the encoder included.
        further: intents that it means besides, with their probabilities.
    """

    expected: Meant
    intent: str
    confidence: float
    is_early: bool
    ms: float
    further: tuple[tuple[str, float], ...] = ()

    @property
    def meant(self) -> frozenset[str]:
        """All that is expected."""
        if self.expected is None:
            return frozenset()
        return frozenset((self.expected,)) if isinstance(self.expected, str) else self.expected

    @property
    def is_right(self) -> bool:
        """Whether the best reading is one of those expected."""
        return self.intent in self.meant

    def named(self, least: float) -> frozenset[str]:
        """The intents read with at least this confidence; none where the best one is not."""
        if self.confidence < least:
            return frozenset()
        return frozenset((self.intent, *(intent for intent, confidence in self.further if confidence >= least)))


def read_all(
    heads: Heads,
    embed: Embed,
    texts: Sequence[tuple[str, Meant]],
    progress: Progress = silent,
    languages: frozenset[str] | None = None,
) -> list[Read]:
    """Read (text as it was written, what it means) one after the other.

    Args:
        heads: with all of their labels allowed.
        embed: text → vector.
        texts: None is what one means that is out of scope.
        progress: told of the reading.
        languages: what the encoder was made for; None means all of which it knows the tokens.
    """
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    found = []
    for number, (raw, expected) in enumerate(texts, 1):
        started = time.perf_counter()
        text = normalize(raw)
        ranked, further, is_early = _read(heads, embed, text, allowed, languages)
        ms = 1000 * (time.perf_counter() - started)
        besides = tuple((heads.labels[place], each) for place, each in zip(*further, strict=True))
        found.append(Read(expected, heads.labels[ranked.places[0]], ranked.confidences[0], is_early, ms, besides))
        if number % _EVERY == 0 or number == len(texts):
            progress(number, len(texts))
    return found


def figures(heads: Heads, readings: Sequence[Read]) -> dict[str, Any]:
    """What readings are worth: accuracy and the like over those in scope, the rest over all.

    `coverage_at_risk` takes thresholds from the risk tables of the heads, never from these readings;
    `wrong_at_risk` is the share of all of them that was then answered wrongly.
    """
    inside = [each for each in readings if each.meant]
    single = [(each.expected, each.intent) for each in inside if isinstance(each.expected, str)]
    in_scope = np.array([bool(each.meant) for each in readings])
    is_right = np.array([each.is_right for each in readings])
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
        "macro_f1": macro_f1(*zip(*single, strict=True)) if single else None,
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


def figures_of_sets(readings: Sequence[Read]) -> dict[str, Any]:
    """What readings are worth where texts mean several intents, or none.

    Named are intents whose confidence is `plausible` or more, acted on those of `accept` or more, by the policy's
    defaults.
    """
    meant, thresholds = [each.meant for each in readings], Confidence()
    named = set_scores([each.named(thresholds.plausible) for each in readings], meant)
    acted = set_scores([each.named(thresholds.accept) for each in readings], meant)
    return {
        "n_multi": sum(len(each) > 1 for each in meant),
        "set_named": named,
        "set_acted_on": acted,
    }


def unknown_labels(heads: Heads, texts: Sequence[tuple[str, Meant]]) -> Mapping[str, int]:
    """Intents of the texts that the heads do not know → how many texts have them."""
    known = heads.known
    counts: dict[str, int] = {}
    for _, meant in texts:
        for intent in (meant,) if isinstance(meant, str) else meant or ():
            if intent not in known:
                counts[intent] = counts.get(intent, 0) + 1
    return counts


def _read(
    heads: Heads, embed: Embed, text: str, allowed: NDArray[np.bool_], languages: frozenset[str] | None
) -> tuple[Ranked, Ranked, bool]:
    """The reading, what is meant besides, and whether both came without the encoder."""
    scores = heads.lexical.score(match_form(text))
    ranked = heads.by_lexical(scores, allowed, 1)
    if heads.semantic is None or ranked.confidences[0] >= heads.early:
        return ranked, heads.further(scores, None, allowed, ranked.places[0]), True
    embedded = embed(text) if may_be_in(text, languages) else None
    vector = embedded.vector if embedded is not None and embedded.is_trusted else None
    if vector is not None:
        ranked = heads.by_both(scores, vector, allowed, 1, stage_by_both(heads, text, languages))
    else:
        ranked = heads.by_lexical(scores, allowed, 1, PRIOR.foreign_stage)
    return ranked, heads.further(scores, vector, allowed, ranked.places[0]), False


def _accuracy(readings: Sequence[Read]) -> float | None:
    return sum(each.is_right for each in readings) / len(readings) if readings else None

"""Training: from labelled texts to heads and the figures of their exam. Needs scikit-learn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from intent.exam import RISKS, at_risk, auroc, expected_calibration_error, fpr_at_recall
from intent.examples import distinct
from intent.fit import fit_and_judge
from intent.fit_classifiers import NO_WEIGHTS, Example, Weights
from intent.fit_stages import Judged
from intent.heads import Heads
from intent.label_text import with_label_texts
from intent.language import are_mostly_others
from intent.multi import NO_MULTI, Multi
from intent.normalize import has_words, normalize
from intent.vector_cache import Progress, VectorCache, silent, trusted
from models.errors import ModelError


class Trained(NamedTuple):
    """Heads and what they are worth.

    Attributes:
        metrics: figures of the exam, as the manifest keeps them.
        n_examples: distinct texts that were fitted on, label texts included.
    """

    heads: Heads
    metrics: dict[str, Any]
    n_examples: int


def train(
    examples: Sequence[Example],
    vectors: VectorCache,
    *,
    held_out: Sequence[Example] = (),
    out_of_scope: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = silent,
    multi: Multi = NO_MULTI,
    weights: Weights = NO_WEIGHTS,
) -> Trained:
    """Embed what is not embedded yet, fit, and examine.

    Args:
        examples: texts as they were written; repeated ones count once, the name of an intent is one more.
        vectors: of the encoder that the heads are for.
        held_out: labelled texts beside the examples, to fit confidences on and to examine by; none means
            cross-validation.
        out_of_scope: texts that mean none of the intents.
        seed: of folds and clusters.
        progress: told of the embedding.
        multi: texts that mean several intents, as they were written; its `none` are among the `out_of_scope`.
        weights: what normalized examples count that count otherwise than 1.

    Raises:
        ModelError: the examples have fewer than two intents, or nothing is held out but out-of-scope texts.
    """
    multi = multi.normalized()
    known = [Example(*pair) for pair in with_label_texts(distinct(examples), multi.intents)]
    intents = {example.intent for example in known} | multi.intents
    if len(intents) < 2:
        raise ModelError(f"the examples have {len(intents)} intent(s), classifiers need at least 2")
    kept = [example for example in distinct(held_out) if example.intent in intents]
    unknown = (text for text, meant in multi.held_out if intents.isdisjoint(meant))
    outside = _outside(held_out, (*out_of_scope, *unknown), intents)
    started = time.perf_counter()
    texts = [text for text, _ in (*known, *kept, *multi.examples, *multi.held_out)]
    embedded = vectors.of([*texts, *outside], progress)
    embedded_at = time.perf_counter()
    fitted_on = (text for text, _ in (*known, *multi.examples))
    usable = {} if are_mostly_others(fitted_on, vectors.embedder.languages) else trusted(embedded)
    heads, judged = fit_and_judge(
        known, usable, held_out=kept, out_of_scope=outside, seed=seed, multi=multi, weights=weights
    )
    metrics: dict[str, Any] = {"n_labels": len(heads.labels), "n_examples": len(known), "n_held_out": len(kept)}
    metrics |= {"n_out_of_scope": len(outside), "has_semantic_head": heads.semantic is not None}
    if multi.examples:
        metrics |= {"n_multi": len(multi.examples), "set_f1": None if judged is None else judged.set_f1}
    metrics |= {"embed_s": round(embedded_at - started, 2), "fit_s": round(time.perf_counter() - embedded_at, 2)}
    if judged is not None:
        measured_on = "held-out texts" if kept or multi.held_out else "cross-validation"
        metrics |= {"measured_on": measured_on, **_figures(heads, judged)}
    return Trained(heads, metrics, len(known) + len(multi.examples))


def _outside(held_out: Sequence[Example], out_of_scope: Sequence[str], intents: set[str]) -> list[str]:
    """Normalized texts that mean none of the intents."""
    found = [text for text in map(normalize, out_of_scope) if has_words(text)]
    found += [example.text for example in distinct(held_out) if example.intent not in intents]
    return list(dict.fromkeys(found))


def _figures(heads: Heads, judged: Judged) -> dict[str, Any]:
    """By the readings that the confidences were fitted on, so these are flattered by some thousandths."""
    risk = (heads.lexical_stage if heads.semantic is None else heads.full_stage).risk
    found: dict[str, Any] = {}
    inside, outside = judged.in_scope, ~judged.in_scope
    if inside.any():
        found["accuracy"] = float(judged.is_right[inside].mean())
        found["lexical_share"] = float(judged.is_early[inside].mean())
        found |= _named(
            at_risk(judged.confidences, judged.is_right, inside, {each: risk.threshold(each) for each in RISKS})
        )
    if inside.any() and outside.any():
        positive, negative = judged.confidences[inside], judged.confidences[outside]
        found |= {"oos_auroc": auroc(positive, negative), "oos_fpr95": fpr_at_recall(positive, negative)}
    found["ece"] = expected_calibration_error(judged.confidences, judged.is_right)
    return found


def _named(risks: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {f"{name}_at_risk": values for name, values in risks.items()}

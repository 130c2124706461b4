"""Fitting confidences on held-out readings. Needs SciPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from intent.confidence import Confidence, RiskTable
from intent.heads import SCORE_SCALE, FullFeatures, Heads, Stage, lead_of, lexical_features
from intent.multi import MultiExample
from intent.normalize import match_form

LEAST_HELD_OUT = 300
"""With fewer held-out readings the shipped confidences are better than fitted ones."""

OUT_OF_SCOPE_WEIGHT = 0.3
"""Share of the weight that out-of-scope texts have when confidences are fitted."""

OUT_OF_SCOPE_SHARE = 0.2
"""Share of the requests that is taken to be out of scope when thresholds for a stated risk are read off: how many such
texts were held out says nothing about how many will come."""

PRIOR_READINGS = 3000
"""As so many held-out readings the shipped confidences count where no out-of-scope texts were given."""

RIDGE = 1e-4
EARLY_OUT_OF_SCOPE, EARLY_WITHHELD = 0.025, 0.01
"""At most this share of the out-of-scope texts may be read without the encoder, which knows them better: of those that
were given, and of the texts of withheld intents, whose words are like those of the others."""

EARLY_LOSS = 0.001
"""At most this share of all readings in scope may be wrong for want of the encoder."""

_Bools = NDArray[np.bool_]
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How both stages read a text that they were not fitted on.

    Attributes:
        intent: what it means; None out of scope.
        lexical: features of the lexical stage.
        by_lexical: what it reads.
        full: features of the full stage; None where the text has no vector.
        by_both: what it reads.
        also: what else it means.
        relevance: float32 and bool, shape (n_labels,): each label's score, and whether the text means it; None for
            heads without relevance.
    """

    intent: str | None
    lexical: list[float]
    by_lexical: str
    full: list[float] | None = None
    by_both: str = ""
    also: frozenset[str] = frozenset()
    relevance: tuple[NDArray[np.float32], _Bools] | None = field(default=None, compare=False)

    def is_meant(self, label: str) -> bool:
        """Whether the text means it."""
        return label == self.intent or label in self.also


@dataclass(frozen=True, slots=True)
class Judged:
    """Held-out readings as the cascade would give them.

    Attributes:
        confidences: float64, shape (n,).
        is_right: bool, shape (n,); never out of scope.
        in_scope: bool, shape (n,).
        is_early: bool, shape (n,): without the encoder.
        set_f1: micro F1 of all that the texts mean, label by label; None for heads without relevance.
    """

    confidences: _Floats
    is_right: _Bools
    in_scope: _Bools
    is_early: _Bools
    set_f1: float | None = None


def read_held_out(
    heads: Heads,
    texts: Sequence[tuple[str, str | None]],
    vectors: Mapping[str, bytes],
    multi: Sequence[MultiExample] = (),
) -> list[HeldOut]:
    """Read (normalized text, intent), and texts that mean several, with heads that were not fitted on them."""
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    readings = []
    for text, intent, also in (*((*each, ()) for each in texts), *((text, each[0], each[1:]) for text, each in multi)):
        scores = heads.lexical.score(match_form(text))
        features = lexical_features(scores, allowed, lead_of(scores.scores * SCORE_SCALE))
        reading = HeldOut(intent, features, heads.labels[int(scores.scores.argmax())], also=frozenset(also))
        if heads.semantic is not None and text in vectors:
            both = FullFeatures.of(heads, scores, vectors[text], allowed)
            label = heads.labels[int(both.fused.argmax())]
            reading = replace(reading, full=both.values(lead_of(both.fused)), by_both=label)
        if heads.relevance is not None:
            meant = np.array([reading.is_meant(label) for label in heads.labels])
            reading = replace(reading, relevance=(heads.relevance.scores(scores, vectors.get(text)), meant))
        readings.append(reading)
    return readings


def with_stages(heads: Heads, readings: Sequence[HeldOut], *, has_out_of_scope: bool) -> Heads:
    """The heads with confidences fitted on held-out readings, where there are enough of them.

    Withheld intents show only some ways to be unknown: without out-of-scope texts the shipped confidences count too.
    """
    share = 1.0 if has_out_of_scope else len(readings) / (len(readings) + PRIOR_READINGS)
    open_share = EARLY_OUT_OF_SCOPE if has_out_of_scope else EARLY_WITHHELD
    if len(readings) < LEAST_HELD_OUT:
        return heads
    in_scope = np.array([reading.intent is not None for reading in readings])
    is_right = np.array([reading.is_meant(reading.by_lexical) for reading in readings])
    stage = _stage(np.array([reading.lexical for reading in readings]), is_right, in_scope, heads.lexical_stage, share)
    heads = replace(heads, lexical_stage=stage)
    full = [reading for reading in readings if reading.full is not None]
    if len(full) < LEAST_HELD_OUT:
        return heads
    in_scope = np.array([reading.intent is not None for reading in full])
    is_right = np.array([reading.is_meant(reading.by_both) for reading in full])
    full_stage = _stage(np.array([reading.full for reading in full]), is_right, in_scope, heads.full_stage, share)
    early = early_from(stage, full, open_share) if heads.relevance is None else heads.early
    heads = replace(heads, full_stage=full_stage, early=early)
    judged = judge(heads, full)
    weights = _expected(judged.in_scope)
    return replace(
        heads, full_stage=replace(full_stage, risk=RiskTable.of(judged.confidences, ~judged.is_right, weights))
    )


def judge(heads: Heads, readings: Sequence[HeldOut]) -> Judged:
    """What the cascade would make of held-out readings."""
    confidences, is_right, is_early = [], [], []
    for reading in readings:
        confidence, label = heads.lexical_stage.confidence(reading.lexical), reading.by_lexical
        early = confidence >= heads.early
        if reading.full is not None and not early:
            confidence, label = heads.full_stage.confidence(reading.full), reading.by_both
        confidences.append(confidence)
        is_right.append(reading.is_meant(label))
        is_early.append(early)
    in_scope = np.array([reading.intent is not None for reading in readings], dtype=np.bool_)
    return Judged(
        np.array(confidences), np.array(is_right, dtype=np.bool_), in_scope, np.array(is_early, dtype=np.bool_)
    )


def _stage(features: _Floats, is_right: _Bools, in_scope: _Bools, prior: Stage, share: float) -> Stage:
    scope = _blended(features, in_scope, balanced(in_scope, OUT_OF_SCOPE_WEIGHT), prior.in_scope, share)
    known = features[in_scope]
    right = _blended(known, is_right[in_scope], np.ones(len(known)), prior.is_right, share)
    stage = Stage(scope, right, prior.risk)
    confidences = np.array([stage.confidence(row) for row in features.tolist()])
    return replace(stage, risk=RiskTable.of(confidences, ~is_right, _expected(in_scope)))


def balanced(in_scope: _Bools, share: float) -> _Floats:
    """Weights that give the out-of-scope texts a share of the whole, where there are both kinds."""
    weights = np.ones(len(in_scope))
    if 0 < in_scope.sum() < len(in_scope):
        weights[~in_scope] = share / (1 - share) * in_scope.sum() / (~in_scope).sum()
    return weights


def _expected(in_scope: _Bools) -> _Floats:
    return balanced(in_scope, OUT_OF_SCOPE_SHARE)


def _blended(features: _Floats, verdicts: _Bools, weights: _Floats, prior: Confidence, share: float) -> Confidence:
    if verdicts.all() or not verdicts.any():
        return prior
    fitted = rising_logistic(features, verdicts, weights)
    slopes = tuple(share * f + (1 - share) * p for f, p in zip(fitted.weights, prior.weights, strict=True))
    return Confidence(slopes, share * fitted.bias + (1 - share) * prior.bias)


def rising_logistic(features: _Floats, verdicts: _Bools, weights: _Floats) -> Confidence:
    """Logistic regression whose slopes are not negative: more of any feature never makes a reading less sure.

    Features go together, and free slopes of opposite sign would cancel in the held-out texts and nowhere else.

    Args:
        features: float64, shape (n, n_features).
        verdicts: bool, shape (n,).
        weights: float64, shape (n,): how much each reading counts.
    """
    centre, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    points = (features - centre) / spread
    signs = np.where(verdicts, 1.0, -1.0)
    shares = weights / weights.sum()

    def loss(parameters: _Floats) -> tuple[float, _Floats]:
        margins = signs * (points @ parameters[1:] + parameters[0])
        slack = -shares * signs * expit(-margins)
        value = shares @ np.logaddexp(0, -margins) + RIDGE / 2 * parameters[1:] @ parameters[1:]
        return float(value), np.concatenate([[slack.sum()], slack @ points + RIDGE * parameters[1:]])

    bounds = [(None, None), *[(0.0, None)] * features.shape[1]]
    found = minimize(loss, np.zeros(features.shape[1] + 1), jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = found[1:] / spread
    return Confidence(tuple(slopes.tolist()), float(found[0] - slopes @ centre))


def early_from(stage: Stage, readings: Sequence[HeldOut], open_share: float) -> float:
    """The least lexical confidence from which on the encoder would hardly have helped.

    Args:
        stage: the lexical one.
        readings: by both stages.
        open_share: of the out-of-scope texts may be above it.
    """
    confidences = np.array([stage.confidence(reading.lexical) for reading in readings])
    in_scope = np.array([reading.intent is not None for reading in readings])
    losses = np.array([(r.by_both == r.intent) - (r.by_lexical == r.intent) if r.intent else 0 for r in readings])
    order = np.argsort(-confidences, kind="stable")
    is_lossy = np.cumsum(losses[order]) > EARLY_LOSS * in_scope.sum()
    is_open = np.cumsum(~in_scope[order]) > open_share * (~in_scope).sum()
    bad = np.flatnonzero(is_lossy | is_open)
    last = int(bad[0]) - 1 if len(bad) else len(order) - 1
    return float(confidences[order][last]) if last >= 0 else 1.01

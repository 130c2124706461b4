"""Fitting: from examples to heads. Needs scikit-learn; run it in a process of its own (see `intent.fitter`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from intent.confidence import Confidence, RiskTable
from intent.grams import grams
from intent.heads import SCORE_SCALE, FullFeatures, Heads, Stage, lead_of, lexical_features
from intent.lexical import Lexical, inverse_document_frequencies, weighted
from intent.normalize import match_form
from intent.prior import PRIOR
from intent.semantic import Semantic

MAX_LEXICAL_BYTES = 64 * 1024 * 1024
LEXICAL_C = 0.5
SEMANTIC_C = 10.0
SEMANTIC_C_FEW = 30.0
FEW = 20
"""With fewer examples an intent, the semantic head is regularized less."""

N_PROTOTYPES = 5
LEAST_HELD_OUT = 300
"""With fewer held-out readings the shipped confidences are better than fitted ones."""

OUT_OF_SCOPE_SHARE = 0.3
"""Weight of out-of-scope texts among held-out ones when confidences are fitted."""

RIDGE = 1e-4
FITTED_SHARE = 0.5
"""How much fitted confidences weigh beside the shipped ones where no out-of-scope texts were given."""


EARLY_RISK = 0.012
"""At most this share of the readings that skip the encoder may be wrong."""


class Example(NamedTuple):
    """A normalized text and the intent it means."""

    text: str
    intent: str


@dataclass(slots=True)
class _Readings:
    """Held-out readings of one stage: features, whether right, whether the text was in scope."""

    features: list[list[float]]
    is_right: list[bool]
    in_scope: list[bool]


def fit(
    examples: Sequence[Example],
    vectors: Mapping[str, bytes],
    *,
    held_out: Sequence[Example] = (),
    out_of_scope: Sequence[str] = (),
    seed: int = 0,
) -> Heads:
    """Fit both classifiers and their confidences.

    Args:
        examples: of at least two intents.
        vectors: text → vector, for all texts whose vector is to be trusted.
        held_out: labelled texts that are not among the examples, to fit the confidences on; none means
            cross-validation, with some intents withheld in each fold as out of scope.
        out_of_scope: texts that mean none of the intents.
        seed: of folds and clusters.

    Raises:
        ValueError: the examples have fewer than two intents.
    """
    n_intents = len({example.intent for example in examples})
    if n_intents < 2:
        raise ValueError(f"classifiers need at least 2 intents, the examples have {n_intents}")
    heads = _classifiers(examples, vectors, seed)
    lexical, full = _Readings([], [], []), _Readings([], [], [])
    if held_out:
        _collect(heads, held_out, out_of_scope, vectors, lexical, full)
    elif len(examples) >= LEAST_HELD_OUT:
        for part, rest, unknown in _folds(examples, seed):
            fold = _classifiers(rest, vectors, seed)
            _collect(fold, part, [*unknown, *out_of_scope], vectors, lexical, full)
    return _judged(heads, lexical, full, 1.0 if out_of_scope else FITTED_SHARE)


def _classifiers(examples: Sequence[Example], vectors: Mapping[str, bytes], seed: int) -> Heads:
    labels = tuple(sorted({example.intent for example in examples}))
    place = {label: number for number, label in enumerate(labels)}
    targets = np.array([place[example.intent] for example in examples])
    semantic = _semantic(examples, targets, len(labels), vectors, seed)
    return Heads(
        labels=labels,
        lexical=_lexical([match_form(example.text) for example in examples], targets, labels),
        semantic=semantic,
        lexical_stage=PRIOR.foreign_stage if semantic is None else PRIOR.lexical_stage,
        full_stage=PRIOR.full_stage,
        lexical_weight=1.0,
        early=PRIOR.early,
    )


def _lexical(forms: Sequence[str], targets: NDArray[np.int64], labels: tuple[str, ...]) -> Lexical:
    frequency, idf = inverse_document_frequencies([grams(form) for form in forms])
    counts = np.array(list(frequency.values()))
    most = MAX_LEXICAL_BYTES // (4 * len(labels))
    least = 1 if len(forms) < 1000 else 2
    order = np.argsort(-counts, kind="stable")[:most]
    kept = np.sort(order[counts[order] >= least])
    names = list(frequency)
    vocabulary = {names[row]: number for number, row in enumerate(kept.tolist())}
    idf = idf[kept]
    unseen = float(np.log(1 + len(forms)) + 1)
    matrix = _matrix(forms, vocabulary, idf, unseen)
    weights, bias = _linear(matrix, targets, len(labels))
    return Lexical(labels, vocabulary, idf, weights, bias, unseen)


def _matrix(forms: Sequence[str], vocabulary: Mapping[str, int], idf: NDArray[np.float32], unseen: float) -> csr_matrix:
    columns: list[int] = []
    values: list[NDArray[np.float32]] = []
    ends = [0]
    for form in forms:
        rows, weights, _ = weighted(form, vocabulary, idf, unseen)
        columns += rows
        values.append(weights)
        ends.append(len(columns))
    data = np.concatenate(values) if values else np.zeros(0, dtype=np.float32)
    return csr_matrix((data, columns, ends), shape=(len(forms), len(vocabulary)))


def _linear(
    matrix: csr_matrix, targets: NDArray[np.int64], n_labels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(weights of shape (n_rows, n_labels), bias) of a linear support vector machine, one versus rest."""
    machine = LinearSVC(C=LEXICAL_C, random_state=0).fit(matrix, targets)
    weights, bias = machine.coef_, machine.intercept_
    if n_labels == 2:
        weights, bias = np.concatenate([-weights, weights]), np.concatenate([-bias, bias])
    return np.ascontiguousarray(weights.T, dtype=np.float32), bias.astype(np.float32)


def _semantic(
    examples: Sequence[Example], targets: NDArray[np.int64], n_labels: int, vectors: Mapping[str, bytes], seed: int
) -> Semantic | None:
    trusted = [row for row, example in enumerate(examples) if example.text in vectors]
    known = targets[trusted]
    if len(np.unique(known)) < n_labels:
        return None
    points = np.stack([np.frombuffer(vectors[examples[row].text], dtype="<f4") for row in trusted])
    strength = SEMANTIC_C_FEW if len(known) < FEW * n_labels else SEMANTIC_C
    model = LogisticRegression(C=strength, max_iter=300).fit(points, known)
    weights, bias = model.coef_, model.intercept_
    if n_labels == 2:
        weights, bias = np.concatenate([-weights / 2, weights / 2]), np.concatenate([-bias / 2, bias / 2])
    prototypes = [_prototypes(points[known == label], seed) for label in range(n_labels)]
    first = np.cumsum([0, *(len(each) for each in prototypes[:-1])])
    return Semantic(
        weights.astype(np.float32), bias.astype(np.float32), np.concatenate(prototypes), first.astype(np.int64)
    )


def _prototypes(points: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """The points themselves where they are few, else the centres of their clusters, on the unit sphere."""
    distinct = np.unique(points, axis=0)
    if len(distinct) <= N_PROTOTYPES:
        return distinct
    centres = KMeans(N_PROTOTYPES, n_init=1, max_iter=20, random_state=seed).fit(distinct).cluster_centers_
    unit: NDArray[np.float32] = (centres / np.linalg.norm(centres, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _folds(examples: Sequence[Example], seed: int) -> list[tuple[list[Example], list[Example], list[str]]]:
    """(held-out examples, examples to fit on, texts of the intents that are withheld) for each fold."""
    random = np.random.default_rng(seed)
    labels = sorted({example.intent for example in examples})
    n_folds = 4 if len(examples) < 5000 else 3
    of_row = random.permutation(len(examples)) % n_folds
    of_label = dict(zip(labels, (random.permutation(len(labels)) % n_folds).tolist(), strict=True))
    folds = []
    for fold in range(n_folds):
        withheld = {label for label in labels if of_label[label] == fold} if len(labels) >= 2 * n_folds else set()
        rest = [e for e, f in zip(examples, of_row, strict=True) if f != fold and e.intent not in withheld]
        known = {example.intent for example in rest}
        part = [e for e, f in zip(examples, of_row, strict=True) if f == fold and e.intent in known]
        unknown = [e.text for e, f in zip(examples, of_row, strict=True) if f == fold and e.intent in withheld]
        folds.append((part, rest, unknown))
    return folds


def _collect(
    heads: Heads,
    held_out: Sequence[Example],
    out_of_scope: Sequence[str],
    vectors: Mapping[str, bytes],
    lexical: _Readings,
    full: _Readings,
) -> None:
    """Read held-out texts and note features and verdicts."""
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    for text, intent in (*held_out, *((text, None) for text in out_of_scope)):
        scores = heads.lexical.score(match_form(text))
        place = int(scores.scores.argmax())
        features = lexical_features(scores, allowed, lead_of(scores.scores * SCORE_SCALE))
        _note(lexical, features, heads.labels[place], intent)
        if heads.semantic is not None and text in vectors:
            both = FullFeatures.of(heads, scores, vectors[text], allowed)
            _note(full, both.values(lead_of(both.fused)), heads.labels[int(both.fused.argmax())], intent)


def _note(readings: _Readings, features: list[float], read: str, intent: str | None) -> None:
    readings.features.append(features)
    readings.is_right.append(read == intent)
    readings.in_scope.append(intent is not None)


def _judged(heads: Heads, lexical: _Readings, full: _Readings, share: float) -> Heads:
    """The heads with confidences fitted on held-out readings, where there are enough of them."""
    if len(lexical.features) < LEAST_HELD_OUT:
        return heads
    lexical_stage = _stage(lexical, heads.lexical_stage, share)
    heads = replace(heads, lexical_stage=lexical_stage, early=_early(lexical_stage.risk))
    if len(full.features) < LEAST_HELD_OUT:
        return heads
    return replace(heads, full_stage=_stage(full, heads.full_stage, share))


def _stage(readings: _Readings, prior: Stage, share: float) -> Stage:
    """Fitted in both parts, `share` of it fitted and the rest prior: withheld intents are not all that is unknown."""
    features = np.array(readings.features)
    is_right = np.array(readings.is_right)
    in_scope = np.array(readings.in_scope)
    scope = _blended(features, in_scope, _balanced(in_scope), prior.in_scope, share)
    known = features[in_scope]
    right = _blended(known, is_right[in_scope], np.ones(len(known)), prior.is_right, share)
    stage = Stage(scope, right, prior.risk)
    confidences = [stage.confidence(row) for row in readings.features]
    return replace(stage, risk=RiskTable.of(np.array(confidences), ~is_right))


def _balanced(in_scope: NDArray[np.bool_]) -> NDArray[np.float64]:
    weights = np.ones(len(in_scope))
    if 0 < in_scope.sum() < len(in_scope):
        weights[~in_scope] = OUT_OF_SCOPE_SHARE / (1 - OUT_OF_SCOPE_SHARE) * in_scope.sum() / (~in_scope).sum()
    return weights


def _blended(
    features: NDArray[np.float64],
    verdicts: NDArray[np.bool_],
    weights: NDArray[np.float64],
    prior: Confidence,
    share: float,
) -> Confidence:
    if verdicts.all() or not verdicts.any():
        return prior
    fitted = rising_logistic(features, verdicts, weights)
    slopes = tuple(share * f + (1 - share) * p for f, p in zip(fitted.weights, prior.weights, strict=True))
    return Confidence(slopes, share * fitted.bias + (1 - share) * prior.bias)


def rising_logistic(
    features: NDArray[np.float64], is_right: NDArray[np.bool_], weights: NDArray[np.float64]
) -> Confidence:
    """Logistic regression whose slopes are not negative: more of any feature never makes a reading less sure.

    Features go together, and free slopes of opposite sign would cancel in the held-out texts and nowhere else.

    Args:
        features: float64, shape (n, n_features).
        is_right: bool, shape (n,).
        weights: float64, shape (n,): how much each reading counts.
    """
    centre, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    points = (features - centre) / spread
    signs = np.where(is_right, 1.0, -1.0)
    shares = weights / weights.sum()

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = signs * (points @ parameters[1:] + parameters[0])
        slack = -shares * signs * expit(-margins)
        value = shares @ np.logaddexp(0, -margins) + RIDGE / 2 * parameters[1:] @ parameters[1:]
        return float(value), np.concatenate([[slack.sum()], slack @ points + RIDGE * parameters[1:]])

    bounds = [(None, None), *[(0.0, None)] * features.shape[1]]
    found = minimize(loss, np.zeros(features.shape[1] + 1), jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = found[1:] / spread
    return Confidence(tuple(slopes.tolist()), float(found[0] - slopes @ centre))


def _early(table: RiskTable) -> float:
    """The least confidence from which at most EARLY_RISK of the readings above it are wrong."""
    n = np.arange(1, len(table.confidences) + 1)
    good = np.flatnonzero(table.n_wrong <= EARLY_RISK * n)
    return float(table.confidences[good[-1]]) if len(good) else 1.01

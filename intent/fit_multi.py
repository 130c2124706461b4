"""Fitting classifiers on texts of which some mean several intents. Needs scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.svm import LinearSVC

from intent.confidence import Confidence
from intent.fit_classifiers import (
    FEW,
    LEXICAL_C,
    LEXICAL_TOLERANCE,
    LEXICAL_WEIGHT,
    LEXICAL_WEIGHT_FEW,
    NO_WEIGHTS,
    Example,
    Weights,
    amount,
    gram_matrix,
    kept_grams,
    semantic_head,
)
from intent.grams import grams
from intent.heads import Heads, Stage
from intent.language import languages_of
from intent.lexical import Lexical
from intent.multi import Multi
from intent.normalize import match_form
from intent.prior import PRIOR
from intent.relevance import Relevance

VECTOR_SCALE = 1.5
"""How much longer vectors are made beside grams, whose words and characters have unit length each. Between 1 and 2
set F1 is the same to half a point (NLU++, folds of its training part held out)."""

PRIOR_RELEVANCE = Confidence((5.7,), 0.6)
"""Fitted on held-out folds of the training part of NLU++, both domains; holds where too few texts are held out."""

PRIOR_LEAST = 0.34
"""The same: from this probability on a label counts."""

ALWAYS_ENCODED = 1.01
"""Words alone are never sure enough where a text may mean more than they show best."""

_Bools = NDArray[np.bool_]
_Floats = NDArray[np.float32]
_Counts = NDArray[np.float64]


def fit_multi(
    examples: Sequence[Example],
    multi: Multi,
    vectors: Mapping[str, bytes],
    seed: int,
    weights: Weights = NO_WEIGHTS,
) -> Heads:
    """Both classifiers and the relevance of every label, judged by shipped confidences.

    Args:
        examples: normalized texts that mean one intent.
        multi: normalized texts that mean several, and those that mean none.
        vectors: text → vector, for all texts whose vector is to be trusted.
        seed: of clusters.
        weights: what single examples count.
    """
    labels = tuple(sorted({example.intent for example in examples} | multi.intents))
    texts, targets = _rows(examples, multi, labels)
    forms = [match_form(text) for text in texts]
    documents = [grams(form) for form in forms]
    vocabulary, idf, unseen = kept_grams(forms, documents, len(labels), n_matrices=2)
    matrix = gram_matrix(documents, vocabulary, idf, unseen)
    pairs = [*examples, *(Example(text, intent) for text, intents in multi.examples for intent in intents)]
    place = {label: number for number, label in enumerate(labels)}
    meant = np.array([place[pair.intent] for pair in pairs])
    semantic = semantic_head(pairs, meant, len(labels), vectors, seed, weights)
    known = {} if semantic is None else vectors
    is_few = amount(pairs, weights) < FEW * len(labels)
    counts = np.ones(len(texts))
    counts[: len(examples)] = [weights.get(example, 1.0) for example in examples]
    return Heads(
        labels=labels,
        lexical=Lexical(labels, vocabulary, idf, *_one_by_one(matrix, targets, counts), unseen),
        semantic=semantic,
        lexical_stage=PRIOR.foreign_stage if semantic is None else PRIOR.lexical_stage,
        full_stage=_widened(PRIOR.full_stage),
        lexical_weight=LEXICAL_WEIGHT_FEW if is_few else LEXICAL_WEIGHT,
        early=ALWAYS_ENCODED,
        languages=languages_of(dict.fromkeys(pair.text for pair in pairs)),
        relevance=_relevance(matrix, targets, counts, [known.get(text) for text in texts]),
    )


def _rows(examples: Sequence[Example], multi: Multi, labels: Sequence[str]) -> tuple[list[str], _Bools]:
    """The texts, and whether each means each label: bool, shape (n_texts, n_labels)."""
    meant: list[tuple[str, tuple[str, ...]]] = [(text, (intent,)) for text, intent in examples]
    meant += [*multi.examples, *((text, ()) for text in multi.none)]
    place = {label: number for number, label in enumerate(labels)}
    targets = np.zeros((len(meant), len(labels)), dtype=np.bool_)
    for row, (_, intents) in enumerate(meant):
        targets[row, [place[intent] for intent in intents]] = True
    return [text for text, _ in meant], targets


def _relevance(matrix: csr_matrix, targets: _Bools, counts: _Counts, vectors: Sequence[bytes | None]) -> Relevance:
    n_rows = matrix.shape[1]
    given = [number for number, vector in enumerate(vectors) if vector is not None]
    dim = len(vectors[given[0]] or b"") // 4 if given else 0
    points = np.zeros((len(vectors), dim), dtype=np.float32)
    centre = np.zeros(dim, dtype=np.float32)
    if given:
        known = np.stack([np.frombuffer(vectors[number] or b"", dtype="<f4") for number in given])
        centre = known.mean(axis=0)
        points[given] = VECTOR_SCALE * (known - centre)
        matrix = hstack([matrix, csr_matrix(points)]).tocsr()
    weights, bias = _one_by_one(matrix, targets, counts)
    return Relevance(
        lexical=np.ascontiguousarray(weights[:n_rows]),
        vectors=np.ascontiguousarray(VECTOR_SCALE * weights[n_rows:].T),
        centre=centre,
        bias=bias,
        confidence=PRIOR_RELEVANCE,
        least=PRIOR_LEAST,
    )


def _one_by_one(matrix: csr_matrix, targets: _Bools, counts: _Counts) -> tuple[_Floats, _Floats]:
    """(weights of shape (n_columns, n_labels), bias) of a linear support vector machine for each label."""
    n_columns, n_labels = matrix.shape[1], targets.shape[1]
    weights, bias = np.zeros((n_columns, n_labels), dtype=np.float32), np.zeros(n_labels, dtype=np.float32)
    for label in range(n_labels):
        is_meant = targets[:, label]
        if is_meant.all() or not n_columns:
            bias[label] = 1.0 if is_meant.all() else -1.0
            continue
        machine = LinearSVC(C=LEXICAL_C, tol=LEXICAL_TOLERANCE, random_state=0).fit(matrix, is_meant, counts)
        weights[:, label], bias[label] = machine.coef_[0], machine.intercept_[0]
    return weights, bias


def _widened(stage: Stage) -> Stage:
    """A stage for the two features more that heads with relevance have, which it takes no notice of."""
    return replace(
        stage,
        in_scope=Confidence((*stage.in_scope.weights, 0.0, 0.0), stage.in_scope.bias),
        is_right=Confidence((*stage.is_right.weights, 0.0, 0.0), stage.is_right.bias),
    )

"""Fitting the two classifiers. Needs scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from intent.grams import grams, is_ideographic
from intent.heads import Heads
from intent.language import languages_of
from intent.lexical import Lexical, inverse_document_frequencies, placed, weighted, word_rows
from intent.normalize import match_form
from intent.prior import PRIOR
from intent.semantic import Semantic

MAX_LEXICAL_BYTES = 64 * 1024 * 1024
LEXICAL_C = 1.0
LEXICAL_TOLERANCE = 0.1
"""A thousand times the default and a third of the time: accuracies on validation rows agree to 0.03 points."""

MANY = 5000
"""From so many examples on a gram has to stand in two of them. Below, dropping those of one costs 0.4 to 2 points."""

FEW = 20
"""With fewer examples an intent, the semantic head is regularized less and the words weigh less beside it."""

FEW_UNDIVIDED = 10
"""The same for texts whose words are not divided."""

SEMANTIC_C, SEMANTIC_C_FEW = 5.0, 60.0
STRETCH_FEW = 0.2
"""Few examples do not show which directions matter: those in which texts differ most are stretched, by their variance
to this power, so that they are learned first. Worth 0.2 to 0.4 points with 10 examples an intent, nothing with 100."""

LEAST_TRUSTED = 0.25
"""With a smaller share of examples whose vectors are to be trusted there is no semantic head: names of intents in
English alone say little about texts in another language."""

NEVER = -300.0
"""Logit of an intent that no vector can mean."""

LEXICAL_WEIGHT, LEXICAL_WEIGHT_FEW = 1.5, 1.0
N_PROTOTYPES, MAX_PROTOTYPES = 20, 2500
"""Of an intent at most, and of all intents: 20 instead of 5 raise the near-out-of-scope AUROC by up to 0.01."""


_Floats = NDArray[np.floating[Any]]


class Example(NamedTuple):
    """A normalized text and the intent it means."""

    text: str
    intent: str


Weights = Mapping[Example, float]
"""What examples count that count otherwise than 1; above 0."""

NO_WEIGHTS: Weights = {}


def weights_of(examples: Sequence[Example], weights: Weights) -> NDArray[np.float64] | None:
    """float64, shape (n,): what each example counts; None where all count the same."""
    if not weights:
        return None
    return np.array([weights.get(example, 1.0) for example in examples])


def amount(examples: Sequence[Example], weights: Weights) -> float:
    """How many examples these are, each counted by its weight."""
    return sum(weights.get(example, 1.0) for example in examples) if weights else len(examples)


def fit_classifiers(
    examples: Sequence[Example], vectors: Mapping[str, bytes], seed: int, weights: Weights = NO_WEIGHTS
) -> Heads:
    """Both classifiers, judged by the shipped confidences."""
    labels = tuple(sorted({example.intent for example in examples}))
    place = {label: number for number, label in enumerate(labels)}
    targets = np.array([place[example.intent] for example in examples])
    is_few = amount(examples, weights) < FEW * len(labels)
    semantic = semantic_head(examples, targets, len(labels), vectors, seed, weights)
    return Heads(
        labels=labels,
        lexical=_lexical(examples, targets, labels, weights),
        semantic=semantic,
        lexical_stage=PRIOR.foreign_stage if semantic is None else PRIOR.lexical_stage,
        full_stage=PRIOR.full_stage,
        lexical_weight=LEXICAL_WEIGHT_FEW if is_few else LEXICAL_WEIGHT,
        early=PRIOR.early,
        languages=languages_of(example.text for example in examples),
    )


def _lexical(
    examples: Sequence[Example], targets: NDArray[np.int64], labels: tuple[str, ...], counts: Weights
) -> Lexical:
    forms = [match_form(example.text) for example in examples]
    documents = [grams(form) for form in forms]
    vocabulary, idf, unseen = kept_grams(forms, documents, len(labels))
    matrix = gram_matrix(documents, vocabulary, idf, unseen)
    weights, bias = _linear(matrix, targets, len(labels), weights_of(examples, counts))
    return Lexical(labels, vocabulary, idf, weights, bias, unseen)


def kept_grams(
    forms: Sequence[str], documents: Sequence[Sequence[str]], n_labels: int, n_matrices: int = 1
) -> tuple[dict[str, int], NDArray[np.float32], float]:
    """(vocabulary, idf of its rows, idf of an unknown gram), so that weights for all labels keep to the limit."""
    frequency, idf = inverse_document_frequencies(documents)
    counts = np.array(list(frequency.values()), dtype=np.int64)
    most = MAX_LEXICAL_BYTES // (4 * n_labels * n_matrices)
    order = np.argsort(-counts, kind="stable")[:most]
    kept = np.sort(order[counts[order] >= _least(forms, n_labels)])
    if not len(kept):
        kept = np.sort(order)
    names = list(frequency)
    vocabulary = {names[row]: number for number, row in enumerate(kept.tolist())}
    return vocabulary, idf[kept], float(np.log(1 + len(forms)) + 1)


def _least(forms: Sequence[str], n_labels: int) -> int:
    """In how many examples a gram has to stand. Rare ones help a few examples, but not where words are undivided."""
    is_undivided = 2 * sum(map(is_ideographic, forms)) > len(forms)
    return 2 if len(forms) >= MANY or (is_undivided and len(forms) >= FEW_UNDIVIDED * n_labels) else 1


def gram_matrix(
    documents: Sequence[Sequence[str]], vocabulary: Mapping[str, int], idf: NDArray[np.float32], unseen: float
) -> csr_matrix:
    """The weights of the known grams of each text, given by all its grams, one row a text."""
    columns: list[int] = []
    values: list[NDArray[np.float32]] = [np.zeros(0, dtype=np.float32)]
    ends = [0]
    is_word = word_rows(vocabulary)
    for document in documents:
        rows, weights, _ = weighted(placed(document, vocabulary), idf, unseen, is_word)
        columns += rows.tolist()
        values.append(weights)
        ends.append(len(columns))
    return csr_matrix((np.concatenate(values), columns, ends), shape=(len(documents), len(vocabulary)))


def _linear(
    matrix: csr_matrix, targets: NDArray[np.int64], n_labels: int, counts: NDArray[np.float64] | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(weights of shape (n_rows, n_labels), bias) of a linear support vector machine, one versus rest."""
    if not matrix.shape[1]:
        return np.zeros((0, n_labels), dtype=np.float32), np.zeros(n_labels, dtype=np.float32)
    machine = LinearSVC(C=LEXICAL_C, tol=LEXICAL_TOLERANCE, random_state=0).fit(matrix, targets, counts)
    weights, bias = machine.coef_, machine.intercept_
    if n_labels == 2:
        weights, bias = np.concatenate([-weights, weights]), np.concatenate([-bias, bias])
    return np.ascontiguousarray(weights.T, dtype=np.float32), bias.astype(np.float32)


def semantic_head(
    examples: Sequence[Example],
    targets: NDArray[np.int64],
    n_labels: int,
    vectors: Mapping[str, bytes],
    seed: int,
    weights: Weights = NO_WEIGHTS,
) -> Semantic | None:
    """None where fewer than two intents have an example with a vector."""
    trusted = [row for row, example in enumerate(examples) if example.text in vectors]
    having, known = np.unique(targets[trusted], return_inverse=True)
    if len(having) < 2 or len(trusted) < LEAST_TRUSTED * len(examples):
        return None
    points = np.stack([np.frombuffer(vectors[examples[row].text], dtype="<f4") for row in trusted])
    given = [examples[row] for row in trusted]
    counts = weights_of(given, weights)
    if amount(given, weights) < FEW * len(having):
        slopes, bias = _logistic(points, known, len(having), SEMANTIC_C_FEW, _stretched(points), counts)
    else:
        plain = np.eye(points.shape[1], dtype=np.float32)
        slopes, bias = _logistic(points, known, len(having), SEMANTIC_C, plain, counts)
    n_each = max(1, min(N_PROTOTYPES, MAX_PROTOTYPES // n_labels))
    prototypes = [_prototypes(points[known == place], n_each, seed) for place in range(len(having))]
    return _over_all(n_labels, having, slopes, bias, prototypes)


def _over_all(
    n_labels: int, having: NDArray[np.int64], weights: _Floats, bias: _Floats, prototypes: Sequence[NDArray[np.float32]]
) -> Semantic:
    """A head over all labels: those without a vector (all of their texts are in another language) are never meant."""
    dim = weights.shape[1]
    all_weights, all_bias = np.zeros((n_labels, dim), dtype=np.float32), np.full(n_labels, NEVER, dtype=np.float32)
    all_weights[having], all_bias[having] = weights, bias
    all_prototypes = [np.zeros((1, dim), dtype=np.float32)] * n_labels
    for label, found in zip(having.tolist(), prototypes, strict=True):
        all_prototypes[label] = found
    first = np.cumsum([0, *(len(each) for each in all_prototypes[:-1])])
    return Semantic(all_weights, all_bias, np.concatenate(all_prototypes), first.astype(np.int64))


def _logistic(
    points: _Floats,
    targets: NDArray[np.int64],
    n_labels: int,
    strength: float,
    stretch: _Floats,
    counts: NDArray[np.float64] | None,
) -> tuple[_Floats, _Floats]:
    """(weights of shape (n_labels, dim), bias) of a logistic regression on the stretched points, for plain ones."""
    centre = points.mean(axis=0)
    with warnings.catch_warnings():
        # one example a class is nothing unusual here
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model = LogisticRegression(C=strength, max_iter=400).fit((points - centre) @ stretch, targets, counts)
    weights, bias = model.coef_ @ stretch.T, model.intercept_
    bias = bias - weights @ centre
    if n_labels == 2:
        weights, bias = np.concatenate([-weights / 2, weights / 2]), np.concatenate([-bias / 2, bias / 2])
    return weights, bias


def _stretched(points: _Floats) -> NDArray[np.float32]:
    """The matrix, shape (dim, dim), that stretches centred points by the variance along their principal directions."""
    centred = points - points.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(points))
    matrix = directions * np.maximum(variances, 1e-5) ** STRETCH_FEW
    length = np.sqrt(((centred @ matrix) ** 2).sum(axis=1).mean())
    scaled: NDArray[np.float32] = (matrix / max(length, 1e-9)).astype(np.float32)
    return scaled


def _prototypes(points: NDArray[np.float32], n: int, seed: int) -> NDArray[np.float32]:
    """The points themselves where there are no more than n, else the centres of n clusters, on the unit sphere."""
    distinct = np.unique(points, axis=0)
    if len(distinct) <= n:
        return distinct
    centres = KMeans(n, n_init=1, max_iter=20, random_state=seed).fit(distinct).cluster_centers_
    unit: NDArray[np.float32] = (centres / np.linalg.norm(centres, axis=1, keepdims=True)).astype(np.float32)
    return unit

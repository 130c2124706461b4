"""Lexical classifier: a linear model over TF-IDF weighted grams, fast enough to come before the encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intent.grams import WORD_MARK, grams

Floats = NDArray[np.float32]


class LexicalScores(NamedTuple):
    """What the classifier says of a text.

    Attributes:
        scores: float32, shape (n_labels,): signed distance from each label's border; 0 is on it.
        coverage: share of the text's weight, 0..1, that stands in grams the classifier knows.
        rows: of the known grams.
        values: float32, what each of them weighs in the text.
    """

    scores: Floats
    coverage: float
    rows: list[int]
    values: Floats


@dataclass(frozen=True, slots=True)
class Lexical:
    """Linear one-versus-rest classifier (fitted by `intent.fit`).

    A gram counts (1 + log count) * idf; character and word grams are scaled to unit length apart, as in Joachims 1998.

    Attributes:
        labels: the intents, in the order of the scores.
        vocabulary: gram → row.
        idf: float32, shape (n_rows,).
        weights: float32, shape (n_rows, n_labels).
        bias: float32, shape (n_labels,).
        unseen_idf: what an unknown gram would weigh.
    """

    labels: tuple[str, ...]
    vocabulary: Mapping[str, int]
    idf: Floats
    weights: Floats
    bias: Floats
    unseen_idf: float

    def score(self, form: str) -> LexicalScores:
        """Scores of a text in its matching form."""
        rows, values, coverage = weighted(grams(form), self.vocabulary, self.idf, self.unseen_idf)
        if not rows:
            return LexicalScores(self.bias, coverage, rows, values)
        return LexicalScores(values @ self.weights[rows] + self.bias, coverage, rows, values)


def weighted(
    document: Sequence[str], vocabulary: Mapping[str, int], idf: Floats, unseen_idf: float
) -> tuple[list[int], Floats, float]:
    """The known grams of a text, given by all its grams, and their weights.

    Returns:
        (rows, float32 weights of the same length, coverage 0..1).
    """
    counts: dict[str, int] = {}
    for gram in document:
        counts[gram] = counts.get(gram, 0) + 1
    rows: list[int] = []
    factors: list[float] = []
    is_word: list[bool] = []
    unknown = 0.0
    for gram, count in counts.items():
        factor = 1.0 if count == 1 else 1.0 + math.log(count)
        row = vocabulary.get(gram)
        if row is None:
            unknown += factor * unseen_idf
        else:
            rows.append(row)
            factors.append(factor)
            is_word.append(gram[0] == WORD_MARK)
    values = np.array(factors, dtype=np.float32) * idf[rows] if rows else np.zeros(0, dtype=np.float32)
    known = float(values.sum())
    return rows, _unit_blocks(values, np.array(is_word, dtype=np.bool_)), known / (known + unknown) if known else 0.0


def _unit_blocks(values: Floats, is_word: NDArray[np.bool_]) -> Floats:
    """Character and word weights, each scaled to unit length."""
    squares = values * values
    words = float(squares[is_word].sum())
    characters = float(squares.sum()) - words
    scale = np.where(is_word, 1.0 / math.sqrt(words or 1.0), 1.0 / math.sqrt(max(characters, 1e-12)))
    scaled: Floats = (values * scale).astype(np.float32)
    return scaled


def inverse_document_frequencies(documents: Sequence[Sequence[str]]) -> tuple[dict[str, int], Floats]:
    """Gram → number of documents that have it, and the smoothed idf of each: log((1 + n) / (1 + df)) + 1."""
    frequency: dict[str, int] = {}
    for document in documents:
        for gram in dict.fromkeys(document):  # in their order: a set has another one in each process
            frequency[gram] = frequency.get(gram, 0) + 1
    n = len(documents)
    idf = [math.log((1 + n) / (1 + count)) + 1 for count in frequency.values()]
    return frequency, np.array(idf, dtype=np.float32)

"""Lexical classifier: a linear model over TF-IDF weighted grams, fast enough to come before the encoder."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intent.grams import WORD_MARK, character_grams, word_grams, words_of

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]

_KEPT_WORDS = 4096
_LONGEST_KEPT = 32
"""Characters; what is longer is mostly no word, and nobody should fill the memory with it."""


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
    rows: Rows
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
        is_word: of `word_rows`.
        rows_of: word → of each of its character grams the row, or the gram itself where it is not known; kept for
            words that come again.
    """

    labels: tuple[str, ...]
    vocabulary: Mapping[str, int]
    idf: Floats
    weights: Floats
    bias: Floats
    unseen_idf: float
    is_word: Floats = field(init=False, repr=False, compare=False)
    rows_of: Callable[[str], tuple[int | str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out what follows from the vocabulary."""
        object.__setattr__(self, "is_word", word_rows(self.vocabulary))
        object.__setattr__(self, "rows_of", lru_cache(_KEPT_WORDS)(partial(_rows_of, self.vocabulary)))

    def score(self, form: str) -> LexicalScores:
        """Scores of a text in its matching form."""
        rows, values, coverage = weighted(self._placed(form), self.idf, self.unseen_idf, self.is_word)
        if not rows.size:
            return LexicalScores(self.bias, coverage, rows, values)
        return LexicalScores(values @ self.weights.take(rows, axis=0) + self.bias, coverage, rows, values)

    def rows_in(self, form: str) -> list[int]:
        """The rows of the known grams of a text, each once."""
        return [row for row in dict.fromkeys(self._placed(form)) if isinstance(row, int)]

    def _placed(self, form: str) -> list[int | str]:
        """`placed` of all grams of a text."""
        words = words_of(form)
        found: list[int | str] = []
        for word in words:
            found += self.rows_of(word) if len(word) <= _LONGEST_KEPT else _rows_of(self.vocabulary, word)
        return found + placed(word_grams(words), self.vocabulary)


def _rows_of(vocabulary: Mapping[str, int], word: str) -> tuple[int | str, ...]:
    return tuple(placed(character_grams(word), vocabulary))


def placed(document: Iterable[str], vocabulary: Mapping[str, int]) -> list[int | str]:
    """Of each gram its row, or itself where it is not known."""
    row_of = vocabulary.get
    return [row_of(gram, gram) for gram in document]


def weighted(
    document: Iterable[int | str], idf: Floats, unseen_idf: float, is_word: Floats
) -> tuple[Rows, Floats, float]:
    """The known grams of a text, given by all its grams, and their weights.

    Args:
        document: as `placed` gives it.
        idf: float32, shape (n_rows,).
        unseen_idf: what an unknown gram would weigh.
        is_word: of `word_rows`.

    Returns:
        (rows, float32 weights of the same length, coverage 0..1).
    """
    known: list[int] = []
    factors: list[float] = []
    unknown = 0.0
    for gram, count in Counter(document).items():
        factor = 1.0 if count == 1 else 1.0 + math.log(count)
        if isinstance(gram, int):
            known.append(gram)
            factors.append(factor)
        else:
            unknown += factor * unseen_idf
    rows = np.array(known, dtype=np.intp)
    values = np.array(factors, dtype=np.float32) * idf.take(rows)
    total = float(values.sum())
    return rows, _unit_blocks(values, is_word.take(rows)), total / (total + unknown) if total else 0.0


def _unit_blocks(values: Floats, is_word: Floats) -> Floats:
    """Character and word weights, each scaled to unit length."""
    squares = values * values
    of_words = float(squares @ is_word)
    of_characters = float(squares.sum()) - of_words
    to_unit = 1.0 / math.sqrt(max(of_characters, 1e-12))
    scaled: Floats = values * (to_unit + is_word * (1.0 / math.sqrt(of_words or 1.0) - to_unit))
    return scaled


def word_rows(vocabulary: Mapping[str, int]) -> Floats:
    """float32, shape (n_rows,): 1 for each row of a word gram, 0 for those of characters."""
    is_word = np.zeros(len(vocabulary), dtype=np.float32)
    is_word[[row for gram, row in vocabulary.items() if gram[0] == WORD_MARK]] = 1.0
    return is_word


def inverse_document_frequencies(documents: Sequence[Sequence[str]]) -> tuple[dict[str, int], Floats]:
    """Gram → number of documents that have it, and the smoothed idf of each: log((1 + n) / (1 + df)) + 1."""
    frequency: dict[str, int] = {}
    for document in documents:
        for gram in dict.fromkeys(document):  # in their order: a set has another one in each process
            frequency[gram] = frequency.get(gram, 0) + 1
    n = len(documents)
    idf = [math.log((1 + n) / (1 + count)) + 1 for count in frequency.values()]
    return frequency, np.array(idf, dtype=np.float32)

"""Seam: where a sentence without joints may want a second thing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intent.lexical import Lexical, LexicalScores
from intent.normalize import match_form

LEAST_SCORE = 0.0
"""Both sides of a seam lie within the border of what they mean."""

_N_LABELS = 10
"""What a side means is among the best of the whole."""

_LEAST_WORDS = 2
_MOST_WORDS = 60
"""A longer text is no sentence without joints."""

_Floats = NDArray[np.float64]


class Sides(NamedTuple):
    """The two sides of a seam."""

    before: str
    after: str


def seam(text: str, lexical: Lexical, allowed: NDArray[np.bool_], scores: LexicalScores | None = None) -> Sides | None:
    """Where a text is cut so that the words of both sides speak most for different labels; None if they speak weakly.

    Texts whose words are not divided have none.

    Args:
        text: normalized.
        lexical: knows the grams.
        allowed: bool, shape (n_labels,): which labels count.
        scores: what `lexical` says of the text, where that was asked already.
    """
    words = text.split()
    if not 2 * _LEAST_WORDS <= len(words) <= _MOST_WORDS:
        return None
    whole = np.where(allowed, (scores or lexical.score(match_form(text))).scores, -np.inf)
    labels = np.argsort(-whole, kind="stable")[: min(_N_LABELS, int(allowed.sum()))]
    blocks = _said(words, lexical, labels)
    before = sum(_scaled(said.cumsum(axis=0), squares.cumsum(axis=0)) for said, squares in blocks)
    after = sum(_scaled(said[::-1].cumsum(axis=0), squares[::-1].cumsum(axis=0))[::-1] for said, squares in blocks)
    # a side ends before the word at which the other begins
    left = (before + lexical.bias[labels])[_LEAST_WORDS - 1 : -_LEAST_WORDS]
    right = (after + lexical.bias[labels])[_LEAST_WORDS : len(words) - _LEAST_WORDS + 1]
    weaker = np.where(left.argmax(axis=1) != right.argmax(axis=1), np.minimum(left.max(axis=1), right.max(axis=1)), -1)
    cut = _LEAST_WORDS + int(weaker.argmax())
    sides = Sides(" ".join(words[:cut]), " ".join(words[cut:]))
    return sides if _speak_for_two(sides, lexical, allowed) else None


def _speak_for_two(sides: Sides, lexical: Lexical, allowed: NDArray[np.bool_]) -> bool:
    first, second = (np.where(allowed, lexical.score(match_form(side)).scores, -np.inf) for side in sides)
    return bool(first.argmax() != second.argmax() and min(first.max(), second.max()) >= LEAST_SCORE)


def _said(words: list[str], lexical: Lexical, labels: NDArray[np.int64]) -> list[tuple[_Floats, _Floats]]:
    """What each word says for each label, and the sum of its squared weights; by its characters, then as a word.

    Pairs of words are left out of account.
    """
    known = [(row, place) for place, word in enumerate(words) for row in lexical.rows_in(match_form(word))]
    rows, places = np.array(known, dtype=np.intp).reshape(-1, 2).T
    weights = lexical.idf.take(rows).astype(np.float64)
    speak_for = weights[:, None] * lexical.weights[np.ix_(rows, labels)]
    is_word = lexical.is_word.take(rows) > 0
    found = []
    for chosen in (~is_word, is_word):
        said = np.zeros((len(words), len(labels)))
        np.add.at(said, places[chosen], speak_for[chosen])
        squares: _Floats = np.bincount(places[chosen], weights[chosen] ** 2, len(words)).astype(np.float64)
        found.append((said, squares[:, None]))
    return found


def _scaled(said: _Floats, squares: _Floats) -> _Floats:
    return said / np.sqrt(np.maximum(squares, 1e-12))

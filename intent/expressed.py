"""Where in a text its intents are expressed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from intent.grams import MAX_CHARS, grams, is_ideographic
from intent.lexical import Lexical, LexicalScores

LEAST_EVIDENCE = 0.05
"""A piece that raises an intent's score by less does not express it."""

_WORD = re.compile(r"\w+")
_LONGEST = 3
"""Characters of a piece where words are not divided."""


def in_order(
    form: str, words: LexicalScores, lexical: Lexical, weights: NDArray[np.float32], places: Sequence[int]
) -> list[int]:
    """Labels in the order in which a text expresses them.

    Each stands where the words speak for it most; those for which no word speaks come last, in the order given.

    Args:
        form: the text in its matching form.
        words: what the lexical classifier found in it.
        lexical: whose rows they are.
        weights: float32, shape (n_rows, n_labels): what a row says for each label.
        places: labels, by their positions, the most probable first.
    """
    found = _pieces(form)
    if len(found) < 2 or len(places) < 2:
        return list(places)
    weight_of = dict(zip(words.rows.tolist(), words.values.tolist(), strict=True))
    rows = [
        (number, row)
        for number, piece in enumerate(found)
        for row in map(lexical.vocabulary.get, piece)
        if row is not None and row in weight_of
    ]
    if not rows:
        return list(places)
    numbers, known = (list(each) for each in zip(*rows, strict=True))
    values = np.array([weight_of[row] for row in known])
    evidence = np.zeros((len(found), len(places)))
    np.add.at(evidence, numbers, values[:, None] * weights[np.ix_(known, list(places))])
    strongest, where = evidence.max(axis=0), evidence.argmax(axis=0)
    last = len(found)
    stands = [int(at) if most >= LEAST_EVIDENCE else last for most, at in zip(strongest, where, strict=True)]
    return [place for _, place in sorted(zip(stands, places, strict=True), key=lambda pair: pair[0])]


def _pieces(form: str) -> list[list[str]]:
    """The grams of each word in turn; of each few characters where words are not divided."""
    found: list[list[str]] = []
    for word in _WORD.findall(form[:MAX_CHARS]):
        if is_ideographic(word):
            found += [grams(word[start : start + _LONGEST]) for start in range(max(1, len(word) - _LONGEST + 1))]
        else:
            found.append(grams(word))
    return found

"""Grams: the character and word n-grams by which texts are compared without an encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

MAX_CHARS = 2000
"""Longer texts are cut: what they are about stands at their beginning."""

_WORD = re.compile(r"\w+")
_IDEOGRAPHIC = re.compile("[\u2e80-\u2eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_SIZES = (3, 4)
_LONGEST_IDEOGRAPHIC = 3
WORD_MARK = "\x01"
"""Word grams begin with it, so that no character gram is one by chance."""


def grams(form: str) -> list[str]:
    """All grams of a text in its matching form, repetitions included.

    Character grams of 3 and 4 within each word, its borders marked by blanks; of 1 to 3 where words are not divided
    (Chinese, Japanese, Korean); single words, pairs of words, and pairs with any word between them. Undivided text
    longer than that is no word.

    >>> grams("ok")
    [' ok', 'ok ', ' ok ', '\x01ok']
    >>> grams("退款")
    ['退', '款', '退款', '\x01退款']
    """
    words = words_of(form)
    return [*(gram for word in words for gram in character_grams(word)), *word_grams(words)]


def words_of(form: str) -> list[str]:
    """The words of a text in its matching form; undivided text counts as one."""
    return _WORD.findall(form[:MAX_CHARS])


def character_grams(word: str) -> list[str]:
    """The grams of its characters, repetitions included."""
    return _ideographic(word) if _is_undivided(word) else _alphabetic(f" {word} ")


def word_grams(words: Sequence[str]) -> list[str]:
    """Of all words of a text: each, pairs, and pairs with any word between them."""
    marked = [WORD_MARK + word for word in words if len(word) <= _LONGEST_IDEOGRAPHIC or not _is_undivided(word)]
    return [
        *marked,
        *(f"{first} {second[1:]}" for first, second in pairwise(marked)),
        *(f"{first}{WORD_MARK}{second[1:]}" for first, second in zip(marked, marked[2:], strict=False)),
    ]


def is_ideographic(form: str) -> bool:
    """Whether there is Chinese, Japanese or Korean in it."""
    return _IDEOGRAPHIC.search(form) is not None


def _is_undivided(word: str) -> bool:
    return not word.isascii() and _IDEOGRAPHIC.search(word) is not None


def _alphabetic(padded: str) -> list[str]:
    length = len(padded)
    return [padded[start : start + size] for size in _SIZES for start in range(length - size + 1)]


def _ideographic(word: str) -> list[str]:
    length = len(word)
    sizes = range(1, min(_LONGEST_IDEOGRAPHIC, length) + 1)
    return [word[start : start + size] for size in sizes for start in range(length - size + 1)]

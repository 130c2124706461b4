"""Grams: the character and word n-grams by which texts are compared without an encoder."""

from __future__ import annotations

import re
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
    [' ok', 'ok ', ' ok ', '\\x01ok']
    >>> grams("退款")
    ['退', '款', '退款', '\\x01退款']
    """
    found: list[str] = []
    marked: list[str] = []
    for word in _WORD.findall(form[:MAX_CHARS]):
        if not word.isascii() and _IDEOGRAPHIC.search(word):
            _ideographic(word, found)
            if len(word) > _LONGEST_IDEOGRAPHIC:
                continue
        else:
            _alphabetic(f" {word} ", found)
        marked.append(WORD_MARK + word)
    found += marked
    found += [f"{first} {second[1:]}" for first, second in pairwise(marked)]
    found += [f"{first}{WORD_MARK}{second[1:]}" for first, second in zip(marked, marked[2:], strict=False)]
    return found


def is_ideographic(form: str) -> bool:
    """Whether there is Chinese, Japanese or Korean in it."""
    return _IDEOGRAPHIC.search(form) is not None


def _alphabetic(padded: str, found: list[str]) -> None:
    length = len(padded)
    for size in _SIZES:
        found += [padded[start : start + size] for start in range(length - size + 1)]


def _ideographic(word: str, found: list[str]) -> None:
    length = len(word)
    for size in range(1, min(_LONGEST_IDEOGRAPHIC, length) + 1):
        found += [word[start : start + size] for start in range(length - size + 1)]

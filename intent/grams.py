"""Grams: the character and word n-grams by which texts are compared without an encoder."""

from __future__ import annotations

import re

MAX_CHARS = 2000
"""Longer texts are cut: what they are about stands at their beginning."""

_WORD = re.compile(r"\w+")
_IDEOGRAPHIC = re.compile("[\u2e80-\u2eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_SHORTEST, _LONGEST = 2, 5
_LONGEST_IDEOGRAPHIC = 3
WORD_MARK = "\x01"
"""Word grams begin with it, so that no character gram is one by chance."""


def grams(form: str) -> list[str]:
    """All grams of a text in its matching form, repetitions included.

    Character grams of 2 to 5 within each word, its borders marked by blanks; of 1 to 3 where words are not divided
    (Chinese, Japanese, Korean); single words and pairs of words.

    >>> grams("ok")
    [' o', 'ok', 'k ', ' ok', 'ok ', ' ok ', '\\x01ok']
    >>> grams("退款")
    ['退', '款', '退款', '\\x01退款']
    """
    found: list[str] = []
    words = _WORD.findall(form[:MAX_CHARS])
    for word in words:
        if _IDEOGRAPHIC.search(word):
            _ideographic(word, found)
        else:
            _alphabetic(f" {word} ", found)
    marked = [WORD_MARK + word for word in words]
    found += marked
    found += [f"{first} {second}" for first, second in zip(marked, words[1:], strict=False)]
    return found


def _alphabetic(padded: str, found: list[str]) -> None:
    length = len(padded)
    for size in range(_SHORTEST, min(_LONGEST, length) + 1):
        found += [padded[start : start + size] for start in range(length - size + 1)]


def _ideographic(word: str, found: list[str]) -> None:
    length = len(word)
    for size in range(1, min(_LONGEST_IDEOGRAPHIC, length) + 1):
        found += [word[start : start + size] for start in range(length - size + 1)]

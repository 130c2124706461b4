"""Normalization: the one form in which utterances and card texts are compared."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from opencc import OpenCC

from models.request import MAX_UTTERANCE_CHARS

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_REPEATED_MARK = re.compile(r"([!?.,;:~…。！？，、；：])\1+")
_NUMBER = re.compile(r"(?<![\w'])(?:[#$€£¥] ?)?(?:[A-Za-z]{1,4}[-_]?)?\d[\w.,:/-]*%?(?![\w'])")
_PICTOGRAPH = re.compile("[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_EDGE_MARKS = " \t!?.,;:~…。！？，、；：\"'“”«»「」¿¡"
_MAX_COMBINING = 30
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_CURLY = str.maketrans("‘’", "''")


def normalize(utterance: str) -> str:
    """The utterance in Unicode NFKC (full-width forms become ASCII) without control and zero-width characters.

    Half a surrogate pair counts as a control character: what comes after cannot encode it.

    Runs of blanks become one blank, a repeated mark stands once. It is never longer than an utterance may be: some
    characters stand for 18 others.

    >>> normalize("Ｗhere  is\\u200b my parcel？？")
    'Where is my parcel?'
    """
    text = utterance
    if not (text.isascii() and text.isprintable()):
        # invisible characters go first: what they kept apart may compose
        text = unicodedata.normalize("NFKC", _bounded_marks(_INVISIBLE.sub("", text)))[:MAX_UTTERANCE_CHARS]
        text = _CONTROL.sub(" ", text)
    return _REPEATED_MARK.sub(r"\1", _SPACE.sub(" ", text[:MAX_UTTERANCE_CHARS])).strip()


def match_form(text: str) -> str:
    """The form in which words are compared: lower case, simplified Chinese; `text` is normalized already.

    >>> match_form("Where IS 訂單")
    'where is 订单'
    """
    folded = text.translate(_CURLY).casefold()
    if folded.isascii() or not _HAN.search(folded):
        return folded
    simplified: str = _simplifier().convert(folded)
    return simplified


def match_key(text: str) -> str:
    """What two texts share when only case, blanks, marks at their ends or the Chinese script differ.

    >>> match_key("Where is my parcel?") == match_key("where is myparcel")
    True
    """
    return _SPACE.sub("", match_form(text).strip(_EDGE_MARKS))


@lru_cache(maxsize=1)
def _simplifier() -> OpenCC:
    return OpenCC("t2s")


def gist(text: str) -> str:
    """The text without amounts, ids, other words that hold a digit, and emoji; itself if no letter would be left.

    >>> gist("has my refund for order A-1042 over $988 arrived")
    'has my refund for order over arrived'
    """
    rest = _SPACE.sub(" ", _NUMBER.sub(" ", _PICTOGRAPH.sub(" ", text))).strip()
    return rest if any(character.isalpha() for character in rest) else text


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit in it at all.

    >>> has_words("?!"), has_words("ok")
    (False, True)
    """
    return any(character.isalnum() for character in text)


def _bounded_marks(text: str) -> str:
    """At most 30 combining marks in a row, as in Unicode's stream-safe form (UAX 15): sorting n takes n² steps."""
    if text.isascii():
        return text
    kept: list[str] = []
    n_marks = 0
    for character in text:
        n_marks = n_marks + 1 if unicodedata.combining(character) else 0
        if n_marks <= _MAX_COMBINING:
            kept.append(character)
    return "".join(kept)

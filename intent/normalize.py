"""Normalization: the one form in which utterances and card texts are compared."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad\ufe00-\ufe0f]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SPACE = re.compile(r"\s+")
_REPEATED_MARK = re.compile(r"([!?.,;:~…。！？，、；：])\1+")
_NUMBER = re.compile(r"(?<![\w'])(?:[#$€£¥] ?)?(?:[A-Za-z]{1,4}[-_]?)?\d[\w.,:/-]*%?(?![\w'])")
_EDGE_MARKS = " \t!?.,;:~…。！？，、；：\"'"


def normalize(utterance: str) -> str:
    """The utterance in Unicode NFKC (full-width forms become ASCII) without control and zero-width characters.

    Runs of blanks become one blank, a repeated mark stands once.

    >>> normalize("Ｗhere  is\\u200b my parcel？？")
    'Where is my parcel?'
    """
    text = unicodedata.normalize("NFKC", utterance)
    text = _CONTROL.sub(" ", _INVISIBLE.sub("", text))
    return _REPEATED_MARK.sub(r"\1", _SPACE.sub(" ", text)).strip()


def match_key(text: str) -> str:
    """What two texts share when only case and marks at their ends differ; `text` is normalized already.

    >>> match_key("Where is my parcel?") == match_key("where is my PARCEL")
    True
    """
    return text.strip(_EDGE_MARKS).casefold()


def without_numbers(text: str) -> str:
    """The text without amounts, ids and other words that hold a digit; itself if no letter would be left.

    >>> without_numbers("has my refund for order A-1042 over $988 arrived")
    'has my refund for order over arrived'
    """
    rest = _SPACE.sub(" ", _NUMBER.sub(" ", text)).strip()
    return rest if any(character.isalpha() for character in rest) else text


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit in it at all.

    >>> has_words("?!"), has_words("ok")
    (False, True)
    """
    return any(character.isalnum() for character in text)


def script_language(text: str) -> str:
    """BCP 47 tag as far as the script tells: zh, ja or ko by their letters, else und.

    >>> script_language("我的快递到哪了"), script_language("where is my parcel")
    ('zh', 'und')
    """
    han = kana = hangul = letters = 0
    for character in text:
        if not character.isalpha():
            continue
        letters += 1
        if "一" <= character <= "鿿" or "㐀" <= character <= "䶿":
            han += 1
        elif "぀" <= character <= "ヿ":
            kana += 1
        elif "가" <= character <= "힣":
            hangul += 1
    if hangul * 2 > letters:
        return "ko"
    if kana and (kana + han) * 2 > letters:
        return "ja"
    return "zh" if letters and han * 2 > letters else "und"

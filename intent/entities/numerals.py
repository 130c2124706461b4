"""Numerals: digits, English number words and Chinese numerals as numbers."""

from __future__ import annotations

_UNIT_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_UNITS = _UNIT_WORDS.split()
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = _ORDINAL_WORDS.split()
_TO_31ST = [*_ORDINALS, *(f"twenty {word}" for word in _ORDINALS[:9]), "thirtieth", "thirty first"]
_WORDS = {
    **{word: n for n, word in enumerate(_UNITS, 1)},
    **{word: 10 * n for n, word in enumerate(_TENS, 2)},
    "a": 1,
    "an": 1,
    "half": 0.5,
}
_SCALES = {"hundred": 100, "dozen": 12, "thousand": 1000, "million": 10**6, "billion": 10**9}
_SHORT_SCALES = {"k": 1000, "m": 10**6, "bn": 10**9, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8, **_SCALES}

_ZH_DIGITS = {character: n for n, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_ZH_SCALES = {"十": 10, "百": 100, "千": 1000}
_ZH_MYRIADS = {"万": 10**4, "亿": 10**8}

SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_UNITS[:9])}))?|{'|'.join(reversed(_UNITS))})"
"""RE2 source of an English number word up to ninety-nine."""

_BELOW_THOUSAND = rf"(?:(?:{SMALL}|an?) hundred(?: and {SMALL}| {SMALL})?|{SMALL})"
EN = (
    rf"\b(?:(?:{_BELOW_THOUSAND}|an?|half an?) (?:thousand|million|billion)(?: (?:and )?{_BELOW_THOUSAND})?"
    rf"|(?:half an?|an?|{SMALL}) dozen|{_BELOW_THOUSAND})\b"
)
"""RE2 source of an English number in words."""

ORDINAL = "|".join(sorted(_TO_31ST, key=len, reverse=True)).replace(" ", "[ -]")
"""RE2 source of an English ordinal in words up to thirty-first."""

DIGITS = r"(?:\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,6})?|\d{1,15}(?:\.\d{1,6})?)"
"""RE2 source of a number in digits, thousands separated by commas or not at all."""

ZH = "[零〇一二两三四五六七八九十百千万亿]{1,16}(?:点[零〇一二三四五六七八九]{1,4})?"
"""RE2 source of a Chinese numeral."""

NUMBER_WORD = "|".join([*_UNITS, *_TENS, *_SCALES])
"""RE2 source of any word of an English number."""


def number_of(text: str, scale: str | None = None) -> int | float | None:
    """The number that a numeral stands for; None where it is none, or a vague one (两三, "two or three").

    Args:
        text: what `DIGITS`, `EN` or `ZH` matches.
        scale: a word behind it, such as k, million or 万.

    >>> number_of("1,234.50"), number_of("twenty-five"), number_of("两百三十"), number_of("3.5", "万")
    (1234.5, 25, 230, 35000)
    """
    if text[:1].isdigit() and text.isascii():
        plain = text.replace(",", "")
        value: float | None = float(plain) if "." in plain else int(plain)
    else:
        value = _english(text) if text.isascii() else _chinese(text)
    if value is None:
        return None
    return _tidy(value * _SHORT_SCALES[scale.lower()] if scale else value)


def ordinal_of(text: str) -> int:
    """What an `ORDINAL` stands for.

    >>> ordinal_of("Twenty-second")
    22
    """
    return _TO_31ST.index(text.lower().replace("-", " ")) + 1


def _tidy(value: float) -> int | float:
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def _english(text: str) -> int | float | None:
    total: float = 0
    part: float = 0
    for word in text.lower().replace("-", " ").split():
        if word in _SCALES:
            part = (part or 1) * _SCALES[word]
            if _SCALES[word] >= 1000:
                total, part = total + part, 0
        elif word in ("a", "an") and part:
            continue
        elif word in _WORDS:
            part += _WORDS[word]
        elif word != "and":
            return None
    return total + part


def _chinese(text: str) -> int | float | None:
    whole, _, fraction = text.partition("点")
    value = _chinese_whole(whole)
    if value is None or not fraction:
        return value
    return value + sum(_ZH_DIGITS[digit] / 10.0**place for place, digit in enumerate(fraction, 1))


def _chinese_whole(text: str) -> int | None:
    if all(character in _ZH_DIGITS for character in text):
        if len(text) == 1:
            return _ZH_DIGITS[text]
        return int("".join(str(_ZH_DIGITS[character]) for character in text)) if len(text) >= 4 else None
    total = section = 0
    digit: int | None = None
    last_scale = 1
    for place, character in enumerate(text):
        if character in _ZH_DIGITS:
            if digit:
                return None
            digit = _ZH_DIGITS[character]
            last_scale = 1 if digit == 0 else last_scale
        elif character in _ZH_SCALES:
            if digit is None and not (character == "十" and (place == 0 or text[place - 1] in "零百千万亿")):
                return None
            last_scale = _ZH_SCALES[character]
            section += (1 if digit is None else digit) * last_scale
            digit = None
        else:
            last_scale = _ZH_MYRIADS[character]
            if not (section or digit or total):
                return None
            total = (
                (total + section + (digit or 0)) * last_scale
                if last_scale == 10**8
                else total + (section + (digit or 0)) * last_scale
            )
            section, digit = 0, None
    # 两百三 is 230, but 两百零三 203 and 二十三 23
    tail = (digit or 0) * (last_scale // 10 if last_scale >= 100 else 1)
    return total + section + tail

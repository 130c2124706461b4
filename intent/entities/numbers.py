"""Numbers in a folded text: amounts of money, quantities, and plain numbers."""

from __future__ import annotations

from typing import Any

from intent.entities.matching import matches_of
from intent.entities.numerals import number_of
from intent.entities.patterns import (
    AMOUNT_PREFIX,
    AMOUNT_SUFFIX,
    CUT,
    MODEL_BEFORE,
    NUMBER,
    PERCENT_CHINESE,
    PIECES,
    QUANTITY_CHINESE,
    QUANTITY_ENGLISH,
    RANGE_BEFORE,
    RANGE_BEHIND,
    WEIGHED,
)
from intent.entities.words import CURRENCY_WORDS, ENGLISH_UNIT, NO_PLURAL, PARTS, SYMBOLS
from models.entity import EntityKind, Found

_WINDOW = 24
_NO_ONE_BEFORE = frozenset("统唯单同另某这那每任下上哪第逐其之万")
_NO_ONE_UNITS = frozenset("次人口层把对打项倍位名")
_NO_BEHIND = {"年": "代", "分": "析别开类享配布手公期"}
_NO_ONE_BEHIND = ("问题", "事", "东西", "建议", "疑问", "人", "样", "性", "共", "起", "直")
_NAMES = frozenset({"2", "4", "8", "401"})
"""4K is a screen, 401k a pension."""

_LONE_ENGLISH = frozenset({"one", "a dozen"})


def find_amounts(text: str, language: str = "und") -> list[Found]:
    """Amounts of money, with their currency as ISO 4217 code.

    >>> [(found.value, found.unit) for found in find_amounts("$5k, or 两百三十块")]
    [(5000, 'USD'), (230, 'CNY')]
    """
    found = []
    for match in matches_of(AMOUNT_PREFIX, text):
        symbol, digits, scale, zh_scale = match.groups()
        value = number_of(digits, scale or zh_scale)
        if value is not None and _is_free(text, *match.span()):
            found += _with_range("amount", text, match.start(), match.end(), value, _currency(symbol.lower(), language))
    for match in matches_of(AMOUNT_SUFFIX, text):
        found += _suffixed(text, match, language)
    return found


def find_quantities(text: str) -> list[Found]:
    """Numbers with a unit or a classifier, and percentages.

    >>> [(found.value, found.unit) for found in find_quantities("3 bags, 两个")]
    [(3, 'bag'), (2, '个')]
    """
    found = []
    for match in matches_of(QUANTITY_ENGLISH, text):
        numeral, scale, zh_scale, percent, unit, plural = match.groups()
        value = number_of(numeral, scale or zh_scale)
        if value is None or (plural or "").lower() in NO_PLURAL or not _is_free(text, *match.span()):
            continue
        if (value == 1 and plural) or (unit == "second" and numeral.isalpha() and value > 10):
            continue  # "one expires", "the twenty second"
        if numeral == "401" and scale:
            continue
        name = (
            "%"
            if percent or unit == "percent"
            else ENGLISH_UNIT.get("gb" if unit == "G" else (unit or "").lower(), plural)
        )
        found += _with_range("quantity", text, match.start(), match.end(), value, name and name.lower())
    if text.isascii():
        return found
    for match in matches_of(QUANTITY_CHINESE, text):
        numeral, _, zh_scale, percent, unit = match.groups()
        value = number_of(numeral, zh_scale)
        if value is None or not _is_free(text, *match.span()) or not _counts(text, match.start(), match.end(), numeral):
            continue
        found += _with_range("quantity", text, match.start(), match.end(), value, percent or unit)
    for match in matches_of(PERCENT_CHINESE, text):
        value = number_of(match.group(2))
        if value is not None:
            found.append(Found("quantity", value, match.group(), match.start(), match.end(), "%"))
    return found


def find_numbers(text: str) -> list[Found]:
    """Numbers that stand alone: digits, words from two on, Chinese numerals of several characters."""
    found = []
    for match in matches_of(NUMBER, text):
        numeral, scale, zh_scale = match.groups()
        start, end = match.span()
        if scale and len(scale) == 1 and scale in "mM":
            scale, end = None, match.end(1)  # metres as likely as millions
        if text[end : end + 3].lstrip().startswith(("号", "点", "年代")) or (scale in ("k", "K") and numeral in _NAMES):
            continue
        if numeral.lower() in _LONE_ENGLISH or (not numeral.isascii() and len(numeral) == 1):
            continue
        value = number_of(numeral, scale or zh_scale)
        if value is None or not _is_free(text, start, end, ranges=False):
            continue
        if numeral[0].isascii() and start and text[start - 1] == "-" and (start == 1 or text[start - 2] == " "):
            start, value = start - 1, -value
        found.append(Found("number", value, text[start:end], start, end))
    return found


def _suffixed(text: str, match: Any, language: str) -> list[Found]:
    numeral, scale, zh_scale, word, tenth, tenth_unit = match.groups()
    start, end = match.span()
    value = number_of(numeral, scale or zh_scale)
    if value is None or not _is_free(text, start, end - len(tenth or "") - len(tenth_unit or "")):
        return []
    if tenth and not (word == "块" and _ends_amount(text, end, tenth, tenth_unit)):
        end, tenth = match.end(4), None
    lower = word.lower()
    behind = text[end : end + _WINDOW]
    if word == "块" and not tenth and _is_piece(text, start, end, value):
        return []
    if lower.startswith("pound") and WEIGHED.search(behind):
        return []
    singular = lower if lower in CURRENCY_WORDS else lower.removesuffix("s")
    currency = _currency(singular, language)
    value = round(
        value * PARTS.get(singular, 1) + (number_of(tenth) or 0) / 10 if tenth else value * PARTS.get(singular, 1), 6
    )
    value = int(value) if value == int(value) else value
    return _with_range("amount", text, start, end, value, currency)


def _is_piece(text: str, start: int, end: int, value: float) -> bool:
    named = (
        PIECES.search(text[end : end + _WINDOW]) is not None or CUT.search(text[max(0, start - 2) : start]) is not None
    )
    return value < 20 and named


def _ends_amount(text: str, end: int, tenth: str, unit: str | None) -> bool:
    """Whether 块五 is five tenths, and not the beginning of 块五个."""
    behind = text[end : end + 1]
    return bool(unit) or (tenth not in "一1" and (not behind.isalnum() or behind in "的钱吗了吧呢左退到"))


def _counts(text: str, start: int, end: int, numeral: str) -> bool:
    before, behind = text[start - 1 : start], text[end : end + 2]
    if before == "第" or (before and before in "零一二三四五六七八九十百千万亿"):
        return False
    if behind[:1] and behind[0] in _NO_BEHIND.get(text[end - 1], ""):
        return False
    if numeral != "一":
        return True
    return (
        not (before and before in _NO_ONE_BEFORE)
        and text[end - 1] not in _NO_ONE_UNITS
        and not behind.startswith(_NO_ONE_BEHIND)
    )


def _currency(symbol: str, language: str) -> str:
    if symbol == "¥":
        return "JPY" if language == "ja" else "CNY"
    return SYMBOLS.get(symbol) or CURRENCY_WORDS[symbol]


def _with_range(kind: EntityKind, text: str, start: int, end: int, value: float, unit: str | None) -> list[Found]:
    """The number, and the other end of its range ("20-30 dollars", "$20 to 30") with the same unit."""
    found = [Found(kind, value, text[start:end], start, end, unit)]
    offset = max(0, start - _WINDOW)
    before = RANGE_BEFORE.search(text[offset:start])
    if before:
        low = number_of(before.group(1))
        if low is not None and low < value:
            found.append(Found(kind, low, before.group(1), offset + before.start(1), offset + before.end(1), unit))
    behind = RANGE_BEHIND.search(text[end : end + _WINDOW]) if text[end - 1].isdigit() else None
    if behind:
        high = number_of(behind.group(1))
        if high is not None and high > value:
            found.append(Found(kind, high, behind.group(1), end + behind.start(1), end + behind.end(1), unit))
    return found


def _is_free(text: str, start: int, end: int, *, ranges: bool = True) -> bool:
    """Whether the number is no piece of a token, version, fraction, time or name of a model."""
    first, last = text[start], text[end - 1]
    if start and first.isascii():
        before = text[start - 1]
        if before == "_" or (first.isalnum() and before.isascii() and before.isalnum()):
            return False
        if (
            first.isdigit()
            and start > 1
            and before in "./:,-~"
            and text[start - 2].isascii()
            and text[start - 2].isalnum()
        ):
            is_range = ranges and before in "-~" and RANGE_BEFORE.search(text[max(0, start - _WINDOW) : start])
            if not is_range:
                return False
    if first.isdigit() and MODEL_BEFORE.search(text[max(0, start - _WINDOW) : start]):
        return False
    if end < len(text) and last.isascii() and last.isalnum():
        behind, after_that = text[end], text[end + 1 : end + 2]
        if behind == "_" or (behind.isascii() and behind.isalnum()):
            return False
        if last.isdigit() and behind in "./:,-" and after_that.isascii() and after_that.isalnum():
            return ranges and behind == "-" and after_that.isdigit()
    return True

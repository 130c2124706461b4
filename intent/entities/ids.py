"""Ids and addresses in a folded text: URLs, e-mail addresses, phones, ids of orders and other things."""

from __future__ import annotations

from intent.entities.matching import matches_of
from intent.entities.patterns import (
    EMAIL,
    ID_BARE,
    ID_EXPLICIT,
    ID_WEAK,
    PHONE,
    PHONE_CUED,
    QUANTITY_ENGLISH,
    URL,
)
from intent.entities.words import NAMES
from models.entity import EntityKind, Found

_URL_ENDS = ".,;:!?)]}'\""
_MIN_PHONE_DIGITS, _MAX_PHONE_DIGITS = 7, 15
_MIN_WEAK_DIGITS = 4
_ORDERED = "order"


def find_urls(text: str) -> list[Found]:
    """Web addresses, with or without a scheme.

    >>> find_urls("see www.example.com/a, please")[0].text
    'www.example.com/a'
    """
    if "." not in text:
        return []
    found = []
    for match in matches_of(URL, text):
        start, end = match.span()
        while end > start and text[end - 1] in _URL_ENDS and not _closes(text, start, end):
            end -= 1
        if text[max(0, start - 1) : start] not in ("@", ".") and text[end : end + 1] != "@":
            found.append(_of("url", text, start, end))
    return found


def find_emails(text: str) -> list[Found]:
    """E-mail addresses."""
    if "@" not in text:
        return []
    return [_of("email", text, *match.span()) for match in matches_of(EMAIL, text)]


def find_phones(text: str) -> list[Found]:
    """Phone numbers; the value keeps the digits and a plus at the front.

    >>> find_phones("call (555) 123-4567")[0].value
    '5551234567'
    """
    found = []
    for match in matches_of(PHONE, text):
        start, end = match.span()
        if _is_whole(text, start, end):
            found.append(_phone(text, start, end))
    for match in matches_of(PHONE_CUED, text):
        start, end = match.span(1)
        if _is_whole(text, start, end):
            found.append(_phone(text, start, end))
    return [each for each in found if each is not None]


def find_explicit_ids(text: str) -> list[Found]:
    """Ids that are called so: `order number 12`, `#8841`, `订单号 4711`."""
    found = []
    for match in matches_of(ID_EXPLICIT, text):
        group = next(n for n, value in enumerate(match.groups(), 1) if value is not None)
        start, end = match.span(group)
        token = text[start:end]
        has_digit = any(map(str.isdigit, token))
        if (has_digit or (token.isupper() and len(token) >= 5)) and _is_whole(text, start, end):
            with_mark = start - (text[start - 1] == "#" if start else 0)
            found.append(Found("id", token, text[with_mark:end], with_mark, end))
    return found


def find_ids(text: str) -> list[Found]:
    """Ids by their form (A-1042, long rows of digits), or behind a thing that has one (order 48213)."""
    found = []
    for match in matches_of(ID_WEAK, text):
        group = 2 if match.group(2) is not None else 4
        start, end = match.span(group)
        thing = match.group(group - 1).lower()
        if _is_whole(text, start, end) and _is_weak_id(text, start, end, thing):
            found.append(_of("id", text, start, end))
    for match in matches_of(ID_BARE, text):
        start, end = match.span()
        token = text[start:end]
        named = token.replace("_", "-").split("-")[0].lower() in NAMES
        if not named and any(map(str.isdigit, token)) and _is_whole(text, start, end):
            found.append(_of("id", text, start, end))
    return found


def _is_weak_id(text: str, start: int, end: int, thing: str) -> bool:
    token = text[start:end]
    n_digits = sum(map(str.isdigit, token))
    if token.isdigit():
        counted = thing == _ORDERED and QUANTITY_ENGLISH.match(text[start : end + 40]) is not None
        return n_digits >= _MIN_WEAK_DIGITS + (not thing.isascii()) and not counted
    return n_digits >= 1 and (len(token) >= 4 or "-" in token or "_" in token)


def _phone(text: str, start: int, end: int) -> Found | None:
    words = text[start:end]
    digits = "".join(filter(str.isdigit, words))
    if not _MIN_PHONE_DIGITS <= len(digits) <= _MAX_PHONE_DIGITS:
        return None
    return Found("phone", f"+{digits}" if words.startswith("+") else digits, words, start, end)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether it is no piece of a longer token."""
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    if before and _is_word(before[-1]):
        return False
    if len(before) == 2 and before[1] in "-./@" and _is_word(before[0]):
        return False
    if behind and (_is_word(behind[0]) or behind[0] == "@"):
        return False
    return not (len(behind) == 2 and behind[0] in "-./" and _is_word(behind[1]))


def _is_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


def _closes(text: str, start: int, end: int) -> bool:
    """Whether the parenthesis at the end has its opening one inside."""
    return text[end - 1] == ")" and text.count("(", start, end) >= text.count(")", start, end)


def _of(kind: EntityKind, text: str, start: int, end: int) -> Found:
    return Found(kind, text[start:end], text[start:end], start, end)

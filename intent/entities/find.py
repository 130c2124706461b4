"""Entities: amounts, quantities, ids, dates, phones, e-mail addresses and URLs in an utterance, English and Chinese.

All patterns are RE2's, so untrusted text is read in linear time. Where two readings of the same words overlap, the
first of this order wins, then the longer one, then the earlier: URL, e-mail, an id that is called one ("order number
8841"), phone, date, amount, id, quantity, number.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from intent.entities.dates import find_dates
from intent.entities.fold import fold
from intent.entities.ids import find_emails, find_explicit_ids, find_ids, find_phones, find_urls
from intent.entities.numbers import find_amounts, find_numbers, find_quantities
from intent.entities.patterns import CUES
from models.entity import Found

MAX_CHARS = 2_000
"""Only so much of a text is looked at; what touches that end is left out, for it may go on."""

MAX_FOUND = 50
"""At most so many entities are told, the first ones."""


def find_entities(text: str, *, now: datetime, language: str = "und") -> list[Found]:
    """What has a value of its own in a text, in the order of the text; no two overlap.

    Args:
        text: original or normalized; offsets are of this text.
        now: aware; relative dates are resolved against it, in its time zone.
        language: BCP 47 primary tag; with "ja" the sign ¥ is yen, else yuan.

    Raises:
        ValueError: `now` is naive.

    >>> from datetime import UTC
    >>> for found in find_entities("refund yesterday's order of 20 bucks", now=datetime(2024, 3, 5, tzinfo=UTC)):
    ...     print(found.kind, found.text, found.value, found.unit)
    date yesterday 2024-03-04 day
    amount 20 bucks 20 USD
    """
    if now.utcoffset() is None:
        raise ValueError(f"now has to be aware, got {now!r}")
    view = fold(text[:MAX_CHARS])
    ranked: list[list[Found]] = [[], [], [], [], find_dates(view, now)]
    if CUES.search(view):
        ranked = [
            find_urls(view),
            find_emails(view),
            find_explicit_ids(view),
            find_phones(view),
            ranked[4],
            find_amounts(view, language),
            find_ids(view),
            find_quantities(view),
            find_numbers(view),
        ]
    elif not ranked[4]:
        return []
    is_cut = len(text) > MAX_CHARS
    found = [each for each in _apart(ranked, len(view)) if not (is_cut and each.end == len(view))]
    return [_with_words(each, text) for each in found[:MAX_FOUND]]


def _apart(ranked: Iterable[list[Found]], length: int) -> list[Found]:
    taken = bytearray(length)
    kept: list[Found] = []
    for same_rank in ranked:
        for found in sorted(same_rank, key=lambda each: (each.start - each.end, each.start)):
            if not any(taken[found.start : found.end]):
                taken[found.start : found.end] = b"\x01" * (found.end - found.start)
                kept.append(found)
    return sorted(kept, key=lambda each: each.start)


def _with_words(found: Found, text: str) -> Found:
    words = text[found.start : found.end]
    if words == found.text:
        return found
    return Found(found.kind, found.value, words, found.start, found.end, found.unit, found.resolved)

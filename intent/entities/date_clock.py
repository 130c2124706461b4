"""Times of day in English and in digits."""

from __future__ import annotations

from datetime import datetime

from intent.entities.date_atom import Groups
from intent.entities.date_part import Part
from intent.entities.numerals import number_of


def clock(groups: Groups, now: datetime) -> Part | None:
    """Hour, minute, second, and am or pm."""
    hour, minute, second, half = groups
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > (12 if half else 24) or m > 59 or s > 59 or (h == 24 and (m or s)):
        return None
    if half:
        return Part(clock=(h % 12 + (12 if half[0] in "pP" else 0), m, s), is_24h=True)
    return Part(clock=(h, m, s), is_24h=str(hour).startswith("0") or h > 12 or bool(second))


def words_clock(groups: Groups, now: datetime) -> Part | None:
    """Hour and minute in words, and am or pm."""
    hour, minute, half = groups
    minutes = number_of(minute.lower()) if minute else 0
    return clock((str(number_of(str(hour).lower())), str(minutes), None, half), now)


def spoken(groups: Groups, now: datetime) -> Part | None:
    """Half past six: how much, past or to, and the hour."""
    amount, way, hour_text = (str(group).lower() for group in groups)
    hour = number_of(hour_text)
    minutes = {"half": 30, "quarter": 15, "a quarter": 15}.get(amount) or number_of(amount)
    if hour is None or minutes is None or not 1 <= hour <= 12 or minutes > 59:
        return None
    if way == "to" and minutes not in (15, 20, 25):  # "five to ten" is a range
        return None
    if way == "past":
        return Part(clock=(int(hour), int(minutes), 0))
    return Part(clock=(int(hour) - 1 or 12, 60 - int(minutes), 0))


def at_hour(groups: Groups, now: datetime) -> Part | None:
    """The hour alone."""
    hour = number_of(str(groups[0]).lower())
    return Part(clock=(int(hour), 0, 0)) if hour is not None and hour <= 24 else None

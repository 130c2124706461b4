"""English words of dates and times, and the forms in digits that all languages share."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from dateutil.parser import isoparse
from dateutil.relativedelta import relativedelta

from intent.entities.date_atom import Atom, Groups
from intent.entities.date_clock import at_hour, clock, spoken, words_clock
from intent.entities.date_part import Part, later, monday, month_of
from intent.entities.numerals import EN, ORDINAL, SMALL, number_of, ordinal_of

_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAY = "((?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ANY_WEEKDAY = _WEEKDAY + "|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_N = rf"(\d{{1,4}}(?:\.\d)?|{EN}|half an?|an?|a couple of)"
_UNIT = r"(seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|fortnights?|months?|years?)"
_HALF = "( and a half)?"
_MORE = rf"(?:,? (?:and )?{_N} {_UNIT}\b)?"
_UNITS = {"sec": "seconds", "min": "minutes", "hou": "hours", "hrs": "hours", "hr": "hours"}
_WHICH = "(next|this|coming|last|past|previous)"
_STEP = {"next": 1, "coming": 1, "this": 0, "last": -1, "past": -1, "previous": -1}
_PREPOSITION = "(in|since|by|until|till|from|of|during|for|last|next|this|early|late|mid|before|after)"
_DIRECTION = {"last": -1, "since": -1, "next": 1, "by": 1, "until": 1, "till": 1}
_ENDS = (
    r"$|[,.!?;)]|\s+(?:in|on|at|of|today|tomorrow|tonight|for|with|please|sharp|and|or|until|till|to|this|next|from"
    r"|if|because|but|is|was|so|instead|as|i|we|you|he|she|they|my)\b"
)
_DOM_WORD = f"({ORDINAL})"
_DOM = rf"(?:(\d{{1,2}})(?:st|nd|rd|th)?|{_DOM_WORD}|({SMALL}))"
_HOUR_WORD = "(\\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"


def _relative(groups: Groups, now: datetime, sign: int) -> Part | None:
    """Groups: number, unit, "and a half", and number and unit once more."""
    n_text, unit, half, more_text, more_unit = (*groups, None, None)[:5]
    first = _span(str(n_text), str(unit), sign, bool(half))
    more = _span(more_text, str(more_unit), sign) if more_text else None
    if first is None or (more_text and more is None):
        return None
    return later(now, [first, more] if more else [first])


def _span(n_text: str, unit: str, sign: int, half: bool = False) -> tuple[float, str] | None:
    short = unit.lower().rstrip("s")
    if n_text.lower() in ("a", "an") and short in ("second", "sec", "minute", "min"):
        return None  # an idiom
    n = _count(n_text)
    if n is None:
        return None
    n = sign * (n + (0.5 if half else 0))
    if short == "fortnight":
        return 2 * n, "weeks"
    return n, _UNITS.get(short[:3], f"{short}s")


def _count(text: str) -> float | None:
    lower = text.lower()
    fixed = {"a": 1, "an": 1, "half a": 0.5, "half an": 0.5, "a couple of": 2}
    return fixed[lower] if lower in fixed else number_of(lower)


def _named(groups: Groups, now: datetime) -> Part:
    name = str(groups[0]).lower().removeprefix("the ")
    if name in ("tonight", "last night"):
        return Part(day=now.date() - timedelta(days=name == "last night"), daypart="night")
    steps = {"today": 0, "yesterday": -1, "day before yesterday": -2, "day after tomorrow": 2}
    return Part(day=now.date() + timedelta(days=steps.get(name, 1)))


def _weekday(groups: Groups, now: datetime) -> Part:
    which, name = str(groups[0] or "").lower(), str(groups[1]).lower()
    weekday = _WEEKDAYS.index(name[:3])
    if which in ("next", "this"):
        return Part(weekday=weekday, week=monday(now.date(), _STEP[which]))
    return Part(weekday=weekday, direction=_STEP.get(which, 0))


def _period(groups: Groups, now: datetime) -> Part:
    which, unit = str(groups[0]).lower(), str(groups[1]).lower()
    today, step = now.date(), _STEP[str(groups[0]).lower()]
    if unit == "week":
        return Part(week=monday(today, step))
    if unit == "weekend":
        return Part(day=monday(today, step) + timedelta(days=5), grain="weekend")
    if unit == "month":
        return month_of(today, step)
    if unit == "year":
        return Part(year=today.year + step)
    if unit == "quarter":
        first = today.replace(day=1) + relativedelta(months=-((today.month - 1) % 3) + 3 * step)
        return Part(day=first, grain="quarter")
    return Part(day=today + timedelta(days=_STEP[which]), daypart=unit)


def _edge(groups: Groups, now: datetime) -> Part:
    edge, which, unit = (str(group or "").lower() for group in groups)
    today, step = now.date(), _STEP.get(which, 0)
    is_end = edge == "end"
    if unit == "week":
        return Part(day=monday(today, step) + timedelta(days=6 * is_end))
    if unit == "month":
        return Part(day=today + relativedelta(months=step, day=31 if is_end else 1))
    ends = relativedelta(years=step, month=12, day=31) if is_end else relativedelta(years=step, month=1, day=1)
    return Part(day=today + ends)


def _iso(groups: Groups, now: datetime) -> Part | None:
    year, month, dom, clock = groups
    try:
        at = isoparse(
            f"{year}-{int(month or 0):02}-{int(dom or 0):02}{clock.upper().replace(' ', 'T') if clock else ''}"
        )
    except ValueError:
        return None
    if not clock:
        return Part(day=at.date())
    return Part(moment=at if at.tzinfo else at.replace(tzinfo=now.tzinfo))


def _us(groups: Groups, now: datetime) -> Part | None:
    """Month first, unless only day first makes a date."""
    first, second, year = (int(group or 0) for group in groups)
    year += 2000 if year < 100 else 0
    month, dom = (second, first) if first > 12 else (first, second)
    return Part(year=year, month=month, dom=dom) if 1 <= month <= 12 else None


def _month_day(groups: Groups, now: datetime) -> Part:
    month, digits, ordinal, word, year = groups
    return Part(month=_month(month), dom=_dom(digits, ordinal, word), year=int(year) if year else None)


def _dom(digits: str | None, ordinal: str | None, word: str | None = None) -> int:
    if ordinal:
        return ordinal_of(ordinal)
    return int(digits or number_of(word or "one") or 0)


def _month_and_day(groups: Groups, now: datetime) -> Part | None:
    """3/19, month first as in `_us`."""
    part = _us((*groups, "1"), now)
    return part and replace(part, year=None)


def _month(name: str | None) -> int:
    return _MONTHS.index(str(name).lower()[:3]) + 1


def _after_preposition(groups: Groups, now: datetime) -> Part | None:
    preposition, name, digits, ordinal, word, year = groups
    dom = _dom(digits, ordinal, word) if digits or ordinal or word else None
    before = str(preposition).lower()
    if name in ("may", "march", "mar") and before not in _DIRECTION and before != "in" and not (dom or year):
        return None  # verbs
    return Part(
        month=_month(name),
        dom=dom,
        year=int(year) if year else None,
        direction=0 if year else _DIRECTION.get(before, 0),
    )


def _holiday(groups: Groups, now: datetime) -> Part:
    name = str(groups[0]).lower()
    dates = {"christmas eve": (12, 24), "christmas": (12, 25), "new year's eve": (12, 31), "new year's day": (1, 1)}
    month, dom = next(value for key, value in (dates | {"hallo": (10, 31), "valen": (2, 14)}).items() if key in name)
    return Part(month=month, dom=dom)


_YEAR = r"((?:19|20)\d{2})"
_FULL_MONTHS = "((?:jan|febr)uary|july|september|october|november|december)"

ATOMS = (
    Atom(r"(\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})([T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?)", _iso),
    Atom(r"(\b(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})\b)", _us),
    Atom(
        rf"\b{_PREPOSITION} ({_MONTH}(?: (?:the )?{_DOM}\b)?(?:,? {_YEAR}\b)?)",
        _after_preposition,
        core=2,
        not_after=r"[:/-]\d|%",
    ),
    Atom(rf"(\b{_MONTH} (?:the )?{_DOM}\b(?:,? {_YEAR}\b)?)", _month_day, not_after=r"[:/-]\d|%| ?[ap]m\b"),
    Atom(
        r"\b(?:from|to|until|till|through|on|by|since|before|after|due|for) ((\d{1,2})/(\d{1,2})\b)",
        _month_and_day,
        not_after="/",
    ),
    Atom(
        rf"((?:\bthe )?\b(?:(\d{{1,2}})(?:st|nd|rd|th)?|{_DOM_WORD})(?: of)? {_MONTH}(?:,? {_YEAR}\b)?)",
        lambda groups, now: _month_day((groups[2], groups[0], groups[1], None, groups[3]), now),
        not_after=r" (?:i|we|you|be|have)\b",
    ),
    Atom(
        rf"(\b{_MONTH},? (?:of )?{_YEAR}\b)",
        lambda groups, now: Part(month=_month(groups[0]), year=int(groups[1] or 0)),
    ),
    Atom(rf"(\b{_FULL_MONTHS}\b)", lambda groups, now: Part(month=_month(groups[0]))),
    Atom(rf"(\bin {_N} {_UNIT}\b{_HALF}{_MORE})", lambda groups, now: _relative(groups, now, 1), not_after=" of "),
    Atom(
        rf"(\b{_N} {_UNIT}\b{_HALF}{_MORE} (ago|from now|from today))",
        lambda groups, now: _relative(groups[:5], now, -1 if str(groups[5]).lower() == "ago" else 1),
    ),
    Atom(
        rf"(\b(last|past|previous|next|coming) {_N} {_UNIT}\b)",
        lambda groups, now: _relative((*groups[1:], None), now, _STEP[str(groups[0]).lower()]),
    ),
    Atom(
        r"(\b(today|tonight|tomorrow|tmrw?|yesterday|last night|(?:the )?day (?:after tomorrow|before yesterday))\b)",
        _named,
    ),
    Atom(
        rf"(\b{_WHICH} {_ANY_WEEKDAY}\b)",
        _weekday,
    ),
    Atom(
        rf"\b(on|by|until|till|since|from) ({_ANY_WEEKDAY})\b",
        lambda groups, now: _weekday(("last" if str(groups[0]).lower() == "since" else None, groups[1]), now),
        core=2,
    ),
    Atom(rf"(\b{_WEEKDAY})\b)", lambda groups, now: _weekday((None, groups[0]), now), not_before=r"\b(?:every|each) "),
    Atom(r"(\b(end|beginning|start) of (?:the |(this|next|last) )?(week|month|year)\b)", _edge),
    Atom(r"(\bweek after next\b)", lambda groups, now: Part(week=monday(now.date(), 2))),
    Atom(rf"(\b{_WHICH} (week|weekend|month|year|quarter)\b)", _period),
    Atom(r"(\b(this) (morning|afternoon|evening)\b)", _period),
    Atom(
        r"\b(?:on|by|since|from|to|through|until|till|before|after) (the (\d{1,2})(?:st|nd|rd|th)\b)",
        lambda groups, now: Part(dom=int(groups[0] or 0)),
        after=_ENDS,
    ),
    Atom(
        r"((?:\bthe )?\b(\d{1,2})(?:st|nd|rd|th) of)", lambda groups, now: Part(dom=int(groups[0] or 0), is_loose=True)
    ),
    Atom(
        rf"\b(?:in|since|until|before|after|year|from|of) ({_YEAR}\b)",
        lambda groups, now: Part(year=int(groups[0] or 0)),
        not_after=r"[-/.:,]\d| ?(?:%|dollars|euros|yuan|items|orders|people)",
    ),
    Atom(r"(\b(christmas(?: eve| day)?|new year's (?:eve|day)|halloween|valentine's day)\b)", _holiday),
    Atom(r"(\b(\d{1,2})(?:[:.](\d{2}))?(?::(\d{2}))? ?([ap]\.?m\b\.?))", clock),
    Atom(
        rf"(\b{_HOUR_WORD}(?: (fifteen|thirty|forty five))? ?([ap]\.?m\b\.?))",
        words_clock,
    ),
    Atom(r"(\b(\d{1,2}):(\d{2})(?::(\d{2}))?()\b)", clock),
    Atom(rf"(\b(half|a quarter|quarter|\d{{1,2}}|{EN})(?: minutes?)? (past|to) {_HOUR_WORD}\b)", spoken, after=_ENDS),
    Atom(rf"(\b{_HOUR_WORD} o'?clock\b)", at_hour),
    Atom(rf"\bat ({_HOUR_WORD}\b)", at_hour, after=_ENDS),
    Atom(
        r"(\b(noon|midnight)\b)",
        lambda groups, now: Part(clock=(12 if str(groups[0]).lower() == "noon" else 0, 0, 0), is_24h=True),
    ),
    Atom(
        r"(\b(morning|afternoon|evening|night)\b)",
        lambda groups, now: Part(daypart=str(groups[0]).lower(), is_loose=True),
    ),
)
"""In the order in which they are tried."""

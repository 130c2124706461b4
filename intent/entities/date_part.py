"""Parts of a date or time: what some words say of it, how neighbours join, and which instant they mean.

The arithmetic (lengths of months, weekdays, last days) is dateutil's; the time zone is that of the given now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta

from dateutil.relativedelta import MO, relativedelta

_ELAPSED = frozenset({"seconds", "minutes", "hours"})
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_SECONDS |= {"months": 30 * 86_400, "years": 365 * 86_400}
_WHOLE = {"weeks": ("days", 7), "months": ("days", 30), "years": ("months", 12)}
"""What a fraction of a unit is counted in, and how many of them make one."""

_RECENT_DAYS = 123
_AFTERNOON = frozenset({"afternoon", "evening", "night"})
_LATEST_BARE_PM_HOUR = 6
_EARLIEST_EVENING_HOUR = 5


@dataclass(frozen=True, slots=True)
class Part:
    """What some words say; None where they do not say it.

    Attributes:
        day: the date itself, where it can be told from these words and now.
        year: calendar year.
        month: 1..12.
        dom: day of the month, 1..31.
        weekday: 0 is Monday.
        week: Monday of the week.
        moment: an instant, such as two hours ago.
        clock: hour, minute and second.
        is_24h: the hour stands as it is (17:30, 3 am); else 1 to 6 o'clock are taken for the afternoon.
        daypart: `morning noon afternoon evening night`.
        grain: of `day`, where that is the first day of a longer period.
        is_loose: means nothing without a neighbour.
        direction: -1 the last such date, 1 the next one, 0 either.
    """

    day: date | None = None
    year: int | None = None
    month: int | None = None
    dom: int | None = None
    weekday: int | None = None
    week: date | None = None
    moment: datetime | None = None
    clock: tuple[int, int, int] | None = None
    is_24h: bool = False
    daypart: str | None = None
    grain: str | None = None
    is_loose: bool = False
    direction: int = 0

    @property
    def names_day(self) -> bool:
        """Whether it names one day."""
        return (self.day is not None and self.grain is None) or self.dom is not None or self.weekday is not None


_JOINED = ("day", "year", "month", "dom", "weekday", "week", "clock", "daypart")


def join(first: Part, second: Part) -> Part | None:
    """Both as one; None if they contradict each other or say too little together.

    >>> join(Part(month=3, dom=5), Part(clock=(17, 0, 0))).clock
    (17, 0, 0)
    """
    if first.moment or second.moment:
        return None
    one, other = _without_weekday(first, second), _without_weekday(second, first)
    merged = {}
    for name in _JOINED:
        values = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        if len(values) == 2:
            return None
        merged[name] = values[0] if values else None
    both = Part(
        **merged,
        is_24h=one.is_24h or other.is_24h,
        grain=one.grain or other.grain,
        direction=one.direction or other.direction,
        is_loose=one.is_loose and other.is_loose and merged["daypart"] is None,
    )
    return both if _is_sound(both) else None


def _without_weekday(part: Part, beside: Part) -> Part:
    """A weekday beside a full date adds nothing: Friday, 13 March."""
    if part.weekday is not None and (beside.dom is not None or (beside.day is not None and beside.grain is None)):
        return replace(part, weekday=None)
    return part


def _is_sound(part: Part) -> bool:
    if (part.clock or part.daypart) and not part.names_day:
        return not any(getattr(part, name) is not None for name in ("day", "year", "month", "week"))
    if part.day is not None:
        return not any(getattr(part, field.name) is not None for field in fields(part)[1:6])
    return part.week is None or (part.weekday is not None and part.dom is None and part.month is None)


def resolve(part: Part, now: datetime) -> tuple[str, str] | None:
    """ISO 8601 of the first instant that is meant, and its grain; None if there is no such date.

    >>> resolve(Part(day=date(2024, 3, 4), clock=(17, 0, 0)), datetime(2024, 3, 5, 9, tzinfo=UTC))
    ('2024-03-04T17:00:00+00:00', 'minute')
    """
    try:
        if part.moment is not None:
            return part.moment.isoformat(timespec="seconds"), "minute"
        day, grain = _day(part, now.date())
        if part.clock is None:
            return day.isoformat(), grain
        hour, minute, second = part.clock
        if hour == 24:
            day, hour = day + timedelta(days=1), 0
        at = datetime(day.year, day.month, day.day, _hour(hour, part), minute, second, tzinfo=now.tzinfo)
        return at.isoformat(timespec="seconds"), "minute"
    except (ValueError, OverflowError):
        return None


def later(now: datetime, spans: Sequence[tuple[float, str]]) -> Part | None:
    """So many `seconds minutes hours days weeks months years` from now, added up; None if no calendar reaches as far.

    >>> later(datetime(2024, 3, 5, 9, tzinfo=UTC), [(1, "hours"), (30, "minutes")]).moment.isoformat()
    '2024-03-05T10:30:00+00:00'
    """
    try:
        if any(unit in _ELAPSED or (unit == "days" and n % 1) for n, unit in spans):
            seconds = sum(n * _SECONDS[unit] for n, unit in spans)
            # elapsed time, also across a change of the clocks
            return Part(moment=(now.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(now.tzinfo))
        day = now.date()
        for n, unit in spans:
            whole_unit, factor = _WHOLE[unit] if n % 1 else (unit, 1)
            day += relativedelta(**{whole_unit: int(n * factor)})  # type: ignore[arg-type]
        return Part(day=day)
    except (ValueError, OverflowError):
        return None


def monday(day: date, weeks: int = 0) -> date:
    """Monday of the week that a day is in, or of one `weeks` later."""
    return day + relativedelta(weekday=MO(-1)) + timedelta(weeks=weeks)


def month_of(day: date, months: int = 0) -> Part:
    """The month that a day is in, or the one `months` later."""
    there = day.replace(day=1) + relativedelta(months=months)
    return Part(year=there.year, month=there.month)


def _day(part: Part, today: date) -> tuple[date, str]:
    if part.day is not None:
        return part.day, part.grain or "day"
    if part.weekday is not None:
        return _weekday(part, today), part.grain or "day"
    if part.week is not None:
        return part.week, "week"
    if part.dom is not None:
        return _nearest_dom(part, today), "day"
    if part.month is not None:
        return _nearest_month(part, today), "month"
    if part.year is not None:
        return date(part.year, 1, 1), "year"
    return today, "day"


def _weekday(part: Part, today: date) -> date:
    assert part.weekday is not None
    if part.week is not None:
        return part.week + timedelta(days=part.weekday)
    if part.direction < 0:
        return today - timedelta(days=(today.weekday() - part.weekday - 1) % 7 + 1)
    return today + timedelta(days=(part.weekday - today.weekday() - 1) % 7 + 1)


def _nearest_dom(part: Part, today: date) -> date:
    """The nearest such day of a month; with a month and no year the last one if it is recent, else the coming one."""
    assert part.dom is not None
    if part.month is None:
        around = [month_of(today, step) for step in (-1, 0, 1)]
        return _chosen([_date(each.year or 1, each.month or 1, part.dom) for each in around], today, 0, 0)
    years = [part.year] if part.year is not None else [today.year - 1, today.year, today.year + 1]
    return _chosen([_date(year, part.month, part.dom) for year in years], today, part.direction, _RECENT_DAYS)


def _nearest_month(part: Part, today: date) -> date:
    assert part.month is not None
    if part.year is not None:
        return date(part.year, part.month, 1)
    dates: list[date | None] = [date(today.year + step, part.month, 1) for step in (-1, 0, 1)]
    return _chosen(dates, today.replace(day=1), part.direction, _RECENT_DAYS)


def _chosen(dates: list[date | None], today: date, direction: int, recent_days: int) -> date:
    """The latest of the last `recent_days`, else the coming one; with 0 days the nearest."""
    real = [day for day in dates if day is not None and (day - today).days * direction >= 0]
    if not real:
        raise ValueError(f"no such day near {today}")
    if recent_days and not direction:
        recent = [day for day in real if -recent_days <= (day - today).days <= 0]
        real = recent or [day for day in real if day > today] or real
    return min(real, key=lambda day: abs((day - today).days))


def _date(year: int, month: int, dom: int) -> date | None:
    try:
        return date(year, month, dom)
    except ValueError:
        return None


def _hour(hour: int, part: Part) -> int:
    """The hour of 24; without a word for the time of day, 1 to 6 o'clock are in the afternoon."""
    if part.is_24h or hour > 12:
        return hour
    if part.daypart == "noon":
        return hour + 12 if hour < _EARLIEST_EVENING_HOUR else hour
    if part.daypart == "night" and (hour < _EARLIEST_EVENING_HOUR or hour == 12):
        return hour % 12
    if part.daypart in _AFTERNOON:
        return hour % 12 + 12
    if part.daypart is None and 1 <= hour <= _LATEST_BARE_PM_HOUR:
        return hour + 12
    return hour

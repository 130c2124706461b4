from __future__ import annotations

import doctest
import time
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from intent.entities import date_chinese, date_part, dates
from intent.entities.dates import find_dates
from intent.entities.fold import fold

NOW = datetime(2026, 3, 11, 10, 30, tzinfo=timezone(timedelta(hours=8)))  # a Wednesday


def told(text: str, now: datetime = NOW) -> list[tuple[str, str | None, str | None]]:
    return [(each.text, each.resolved, each.unit) for each in find_dates(fold(text), now)]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("yesterday", "2026-03-10"),
        ("the day after tomorrow", "2026-03-13"),
        ("next Tuesday", "2026-03-17"),
        ("this Friday", "2026-03-13"),
        ("last Friday", "2026-03-06"),
        ("Monday", "2026-03-16"),
        ("in 3 days", "2026-03-14"),
        ("two weeks ago", "2026-02-25"),
        ("2 years and 3 months ago", "2023-12-11"),
        ("the last 30 days"[4:], "2026-02-09"),
        ("end of the month", "2026-03-31"),
        ("March 5th", "2026-03-05"),
        ("5 March 2024", "2024-03-05"),
        ("Mar. 5, 2024", "2024-03-05"),
        ("the twenty second of march", "2026-03-22"),
        ("2024-02-29", "2024-02-29"),
        ("03/05/2024", "2024-03-05"),
        ("25/12/2025", "2025-12-25"),
        ("Christmas", "2025-12-25"),
        ("Sep 18", "2026-09-18"),
        ("昨天", "2026-03-10"),
        ("大前天", "2026-03-08"),
        ("下周二", "2026-03-17"),
        ("上周五", "2026-03-06"),
        ("下下周一", "2026-03-23"),
        ("三天前", "2026-03-08"),
        ("半年前", "2025-09-11"),
        ("两周后", "2026-03-25"),
        ("月底", "2026-03-31"),
        ("下个月15号", "2026-04-15"),
        ("十二月二十五号", "2025-12-25"),
        ("2024年3月5日", "2024-03-05"),
        ("二零二四年三月五日", "2024-03-05"),
        ("去年3月5日", "2025-03-05"),
        ("最近三天", "2026-03-08"),
        ("後天", "2026-03-13"),
        ("明天下午", "2026-03-12"),
    ],
)
def test_a_day_is_resolved(text: str, day: str) -> None:
    assert told(text) == [(fold(text), day, "day")]


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("tomorrow at 5pm", "tomorrow at 5pm", "2026-03-12T17:00:00+08:00"),
        ("5pm tomorrow", "5pm tomorrow", "2026-03-12T17:00:00+08:00"),
        ("at 7 tonight", "7 tonight", "2026-03-11T19:00:00+08:00"),
        ("Friday at 3 pm", "Friday at 3 pm", "2026-03-13T15:00:00+08:00"),
        ("half past six", "half past six", "2026-03-11T18:30:00+08:00"),
        ("a quarter to nine", "a quarter to nine", "2026-03-11T08:45:00+08:00"),
        ("12 am", "12 am", "2026-03-11T00:00:00+08:00"),
        ("12 pm", "12 pm", "2026-03-11T12:00:00+08:00"),
        ("in 1 hour and 30 minutes", "in 1 hour and 30 minutes", "2026-03-11T12:00:00+08:00"),
        ("in an hour and a half", "in an hour and a half", "2026-03-11T12:00:00+08:00"),
        ("2026-04-01T18:00Z", "2026-04-01T18:00Z", "2026-04-01T18:00:00+00:00"),
        ("明天下午三点", "明天下午三点", "2026-03-12T15:00:00+08:00"),
        ("明天下午3点半", "明天下午3点半", "2026-03-12T15:30:00+08:00"),
        ("早上九点一刻", "早上九点一刻", "2026-03-11T09:15:00+08:00"),
        ("今晚八点", "今晚八点", "2026-03-11T20:00:00+08:00"),
        ("中午1点", "中午1点", "2026-03-11T13:00:00+08:00"),
        ("凌晨0点", "凌晨0点", "2026-03-11T00:00:00+08:00"),
        ("半小时后", "半小时后", "2026-03-11T11:00:00+08:00"),
        ("一个半小时后", "一个半小时后", "2026-03-11T12:00:00+08:00"),
        ("1小时5分钟30秒之后", "1小时5分钟30秒之后", "2026-03-11T11:35:30+08:00"),
    ],
)
def test_a_time_is_resolved(text: str, words: str, at: str) -> None:
    assert told(text) == [(words, at, "minute")]


@pytest.mark.parametrize(
    ("text", "first", "grain"),
    [
        ("last week", "2026-03-02", "week"),
        ("this month", "2026-03-01", "month"),
        ("last quarter", "2025-10-01", "quarter"),
        ("next year", "2027-01-01", "year"),
        ("in 2024", "2024-01-01", "year"),
        ("this weekend", "2026-03-14", "weekend"),
        ("in February", "2026-02-01", "month"),
        ("by January", "2027-01-01", "month"),
        ("上个月", "2026-02-01", "month"),
        ("去年", "2025-01-01", "year"),
        ("本周", "2026-03-09", "week"),
        ("2025年12月", "2025-12-01", "month"),
    ],
)
def test_a_period_is_its_first_day_and_its_grain(text: str, first: str, grain: str) -> None:
    ((_, day, unit),) = told(text)
    assert (day, unit) == (first, grain)


@pytest.mark.parametrize(
    "text",
    [
        "may I",
        "I will march",
        "every Monday",
        "每周三",
        "in a second",
        "good morning",
        "下午好",
        "2024-13-45",
        "February 30th, 2024",
        "99:99",
        "in 9999 years",
        "9999年后",
        "两三天前",
        "我有三点建议",
        "版本2.1",
        "五月天",
        "10.0.0.1",
        "on the 2nd floor",
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert told(text) == []


def test_two_dates_of_a_range_stay_two() -> None:
    assert [day for _, day, _ in told("from March 14 to March 16")] == ["2026-03-14", "2026-03-16"]
    assert [day for _, day, _ in told("3月10号到3月12号")] == ["2026-03-10", "2026-03-12"]


def test_a_date_without_a_year_is_the_recent_one_else_the_coming_one() -> None:
    january = datetime(2026, 1, 2, 9, tzinfo=NOW.tzinfo)
    assert told("December 28", january)[0][1] == "2025-12-28"
    assert told("12月25日", january)[0][1] == "2025-12-25"
    assert told("June 1", january)[0][1] == "2026-06-01"


def test_the_time_zone_is_that_of_now() -> None:
    late = datetime(2026, 3, 11, 23, 30, tzinfo=ZoneInfo("America/New_York"))
    assert told("tomorrow", late)[0][1] == "2026-03-12"
    assert told("5pm", late)[0][1] == "2026-03-11T17:00:00-04:00"


def test_hours_ahead_are_elapsed_time_across_a_change_of_the_clocks() -> None:
    before = datetime(2026, 3, 8, 1, 30, tzinfo=ZoneInfo("America/New_York"))  # 02:00 becomes 03:00
    assert told("in 1 hour", before)[0][1] == "2026-03-08T03:30:00-04:00"
    assert told("tomorrow at 9am", before)[0][1] == "2026-03-09T09:00:00-04:00"


def test_a_month_later_keeps_to_the_month() -> None:
    assert told("in 1 month", datetime(2026, 1, 31, tzinfo=NOW.tzinfo))[0][1] == "2026-02-28"


def test_rejected_words_do_not_cost_quadratic_time() -> None:
    start = time.process_time()
    find_dates("at 3 x " * 570, NOW)
    assert time.process_time() - start < 1


def test_the_examples_of_the_docstrings_hold() -> None:
    for module in (date_part, date_chinese, dates):
        assert doctest.testmod(module).failed == 0

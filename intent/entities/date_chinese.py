"""Chinese words of dates and times."""

from __future__ import annotations

from datetime import datetime, timedelta

from dateutil.relativedelta import relativedelta

from intent.entities.date_atom import Atom, Groups
from intent.entities.date_part import Part, later, monday, month_of
from intent.entities.numerals import DIGITS, ZH, number_of

_MONTH = "(1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DOM = "(3[01]|[12]?[0-9]|0[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])"
_HOUR = r"(\d{1,2}|二?十[一二三四]?|[零一二两三四五六七八九])"
_MINUTE = r"(?:[二三四五]?十[一二三四五六七八九]?|零[一二三四五六七八九]|\d{2})"
_N = rf"({DIGITS}|{ZH}|半|一个半|{ZH}个半)"
_UNIT = "(秒钟?|分钟|小时|钟头|天|日|周|星期|礼拜|个月|年)"
_NUMERAL = "[0-9.零一二两三四五六七八九十百千万几数]"
_SPAN = rf"{_N} ?个? ?{_UNIT} ?"
_UNITS = {"秒": "seconds", "分": "minutes", "小": "hours", "钟": "hours", "天": "days", "日": "days"}
_UNITS |= {"周": "weeks", "星": "weeks", "礼": "weeks", "个": "months", "月": "months", "年": "years"}
_WHICH = "(上+|下+|本|这)(?:一)?个?"
_DAYPARTS = {
    "凌晨": "morning",
    "清晨": "morning",
    "早上": "morning",
    "早晨": "morning",
    "上午": "morning",
    "早": "morning",
    "晨": "morning",
    "中午": "noon",
    "下午": "afternoon",
    "傍晚": "evening",
    "晚上": "night",
    "夜里": "night",
    "半夜": "night",
    "晚": "night",
    "夜": "night",
}
_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_YEARS = {"前": -2, "去": -1, "今": 0, "明": 1, "后": 2}
_WEEKDAYS = {character: n for n, character in enumerate("一二三四五六日")} | {"天": 6, "末": 5}
_HOLIDAYS = {"元旦": (1, 1), "情人节": (2, 14), "劳动节": (5, 1), "国庆": (10, 1), "双十一": (11, 11), "双11": (11, 11)}
_HOLIDAYS |= {"圣诞": (12, 25), "平安夜": (12, 24), "儿童节": (6, 1)}


def _int(text: str | None) -> int:
    n = number_of(text) if text else None
    return int(n) if n is not None else -1


def _step(which: str | None) -> int:
    """上 is one back, 下下 two ahead, 本 and 这 and nothing are now.

    >>> _step("下下")
    2
    """
    if not which or which[0] not in "上下":
        return 0
    return len(which) * (1 if which[0] == "下" else -1)


def _relative(groups: Groups, now: datetime, sign: int) -> Part | None:
    """Groups: number and unit, up to three times."""
    spans = []
    for n_text, unit in zip(groups[::2], groups[1::2], strict=True):
        if n_text is None or unit is None:
            continue
        n = 0.5 if n_text == "半" else number_of(n_text.removesuffix("个半"))
        if n is None:
            return None
        n += 0.5 if n_text.endswith("个半") else 0
        spans.append((sign * n, _UNITS[unit[0]]))
    return later(now, spans)


def _before(groups: Groups, now: datetime) -> Part | None:
    return _relative(groups, now, -1)


def _after(groups: Groups, now: datetime) -> Part | None:
    return _relative(groups, now, 1)


def _day(groups: Groups, now: datetime) -> Part:
    name, daypart = str(groups[0]), groups[1]
    return Part(day=now.date() + timedelta(days=_DAYS[name]), daypart=_DAYPARTS.get(str(daypart)))


def _weekday(groups: Groups, now: datetime) -> Part:
    which, name = groups
    weekday = int(str(name)) - 1 if str(name).isdigit() else _WEEKDAYS[str(name)]
    if name == "末":
        return Part(day=monday(now.date(), _step(which)) + timedelta(days=weekday), grain="weekend")
    if which:
        return Part(weekday=weekday, week=monday(now.date(), _step(which)))
    return Part(weekday=weekday)


def _month(groups: Groups, now: datetime) -> Part:
    which, edge = groups
    if edge in ("底", "末"):
        return Part(day=now.date() + relativedelta(months=_step(which), day=31))
    there = month_of(now.date(), _step(which))
    return Part(year=there.year, month=there.month, dom=1) if edge == "初" else there


def _year_edge(groups: Groups, now: datetime) -> Part:
    year, edge = now.year + _YEARS[str(groups[0] or "今")], groups[1]
    return Part(year=year, month=1, dom=1) if edge == "初" else Part(year=year, month=12, dom=31)


def _month_day(groups: Groups, now: datetime) -> Part:
    month, dom = groups
    return Part(month=_int(month), dom=_int(dom) if dom else None)


def _clock(groups: Groups, now: datetime) -> Part | None:
    hour_text, suffix, quarter, minute, single = groups
    hour = _int(hour_text)
    minutes = {"一刻": 15, "三刻": 45}.get(str(quarter), 30 if suffix == "半" else 0)
    if minute or single:
        minutes = _int((minute or single or "").removeprefix("零") or None)
    if not 0 <= hour <= 24 or not 0 <= minutes <= 59:
        return None
    return Part(
        clock=(hour, minutes, 0), is_24h=hour > 12 or hour == 0, is_loose=not (suffix or quarter or minute or single)
    )


def _daypart(groups: Groups, now: datetime) -> Part:
    return Part(daypart=_DAYPARTS[str(groups[0])])


_NO_ID = "订|单|线|楼|店|桌|门|码|院|房|车|机|仓|电|球|窗|柜|工单|包裹|会员|选手|货|店|文件|位|馆|台|路|站|厅"
_BARE_HOUR_ENDS = "左右|之?前|以前|见|出发|开始|到达|准时|集合|开会"

ATOMS = (
    Atom(
        rf"({_SPAN}(?:{_SPAN})?(?:{_SPAN})?(?:之|以)?前)",
        _before,
        not_before=_NUMERAL,
        not_after="台|面|提|言",
    ),
    Atom(rf"({_SPAN}(?:{_SPAN})?(?:{_SPAN})?(?:之|以)?后)", _after, not_before=_NUMERAL),
    Atom(rf"((?:过去|最近|近)的?{_N} ?个? ?{_UNIT})", _before),
    Atom(rf"((?:未来|接下来)的?{_N} ?个? ?{_UNIT})", _after),
    Atom("((大前|大后|前|昨|今|明|后)[天日]())", _day, not_before="[先以往从每半0-9一二三四五六七八九十两]"),
    Atom("((昨|今|明)(早|晚|晨|夜)上?)", _day, not_before="[如从]", not_after="报|霜"),
    Atom(
        f"({_WHICH}(?:周|星期|礼拜)([一二三四五六日天末1-7]))",
        _weekday,
        not_after="年",
    ),
    Atom(
        "(()(?:周|星期|礼拜)([一二三四五六日天末1-7]))",
        _weekday,
        not_before="[每一二三四五六七八九十两几0-9单双]|每个|个",
        not_after="年|[0-9]",
    ),
    Atom(
        f"({_WHICH}(?:周|星期|礼拜))",
        lambda groups, now: Part(week=monday(now.date(), _step(groups[0]))),
        not_after="边|围|期|转|年|刊|到|密",
    ),
    Atom(f"({_WHICH}月(底|末|初)?)", _month, not_after="台|饼|亮|球"),
    Atom("(()月(底|末|初))", _month, not_before="[0-9一二三四五六七八九十个]"),
    Atom("((去|今|明|前|后)?年(底|初|末))", _year_edge, not_before="[0-9一二三四五六七八九十两]"),
    Atom(
        "((前|去|今|明|后)年)",
        lambda groups, now: Part(year=now.year + _YEARS[str(groups[0])]),
        not_before="[以之目0-9一二三四五六七八九十两]|年",
        not_after="龄|货|轻|夜",
    ),
    Atom(
        "(((?:19|20)[0-9]{2}|[一二][零〇九][零〇一二三四五六七八九]{2}) ?年)",
        lambda groups, now: Part(year=_int(groups[0])),
    ),
    Atom(
        f"({_MONTH} ?月份?(?: ?{_DOM} ?[日号])?)",
        _month_day,
        not_before="[第0-9.个]",
        not_after="天|饼|票|租|薪|供|卡(?:[^住在]|$)|销",
    ),
    Atom(
        f"({_DOM} ?号)",
        lambda groups, now: Part(dom=_int(groups[0])),
        not_before="[第A-Za-z0-9.#-]",
        not_after=_NO_ID,
    ),
    Atom(r"((\d{1,2})日)", lambda groups, now: Part(dom=_int(groups[0])), not_before="[0-9.]", not_after="元|本|均|常"),
    Atom(f"(({'|'.join(_HOLIDAYS)})节?(?:当天)?)", lambda groups, now: _holiday(groups)),
    Atom(f"({_HOUR}点(钟|整|半)?(一刻|三刻)?(?:({_MINUTE})分?|([0-9一二三四五六七八九])分)?)", _clock),
    Atom(
        f"(({'|'.join(key for key in _DAYPARTS if len(key) == 2)}))",
        _daypart,
        not_before="每天|每|天天|经常|都",
        not_after="好|都|安",
    ),
)
"""In the order in which they are tried."""


def _holiday(groups: Groups) -> Part:
    month, dom = _HOLIDAYS[str(groups[0])]
    return Part(month=month, dom=dom)


BARE_HOUR_ENDS = f"^(?:{_BARE_HOUR_ENDS})"

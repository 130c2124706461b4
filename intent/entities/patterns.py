"""Patterns of entities other than dates, and of what stands against a match; all RE2, so their time is linear."""

from __future__ import annotations

from intent.entities.numerals import DIGITS, EN, NUMBER_WORD, ZH
from intent.entities.words import CHINESE_THING, CHINESE_UNIT, CODES, ENGLISH_UNIT, THING
from intent.rules import compile_pattern

_CODE = "|".join(CODES)
_SCALE = r"(?: ?(k|mm?|bn|thousand|million|billion)\b|([百千万亿]))?"
_ZH_MONEY = "元人民币|块钱|块|元|人民币|美元|美金|美刀|欧元|英镑|日元|日币|港币|港元|台币|韩元|毛钱|角钱|分钱"
_EN_MONEY = rf"dollars?\b|bucks?\b|euros?\b|pounds?\b|quid\b|yen\b|yuan\b|kuai\b|rupees?\b|cents?\b|(?:{_CODE})\b"

AMOUNT_PREFIX = compile_pattern(rf"((?:\b(?:us|hk|nt|[acs]))?\$|[€£¥₹₩]|\b(?:{_CODE})|人民币) ?({DIGITS}){_SCALE}")
"""Groups: currency, digits, scale, Chinese scale."""

AMOUNT_SUFFIX = compile_pattern(
    rf"({DIGITS}|{EN}|{ZH}){_SCALE} ?[多余来]? ?({_EN_MONEY}|[$€£¥]|{_ZH_MONEY})"
    r"(?:([0-9一二两三四五六七八九])([毛角])?)?"
)
"""Groups: numeral, scale, Chinese scale, currency, tenths behind 块, their unit."""

PIECES = compile_pattern(
    "^(?:蛋糕|肥皂|香皂|电池|手?表|巧克力|屏幕?|地|玉|布|硬盘|豆腐|肉|牛排|面包|披萨|毛巾|瓷砖|木|石|橡皮|板|糖|饼|显示|主板|手帕)"
)
"""What 块 counts as pieces."""

CUT = compile_pattern("(?:切|分|掰|碎|裂)(?:成|为)?$")
"""What makes 块 pieces in front of it."""

WEIGHED = compile_pattern(r"^ (?:of|heavier|lighter|overweight)\b")
"""What makes pounds a weight."""

_EN_UNIT = "|".join(sorted(ENGLISH_UNIT, key=len, reverse=True))
_BETWEEN = (
    r"(?: ?-| (?:more|extra|additional|new|large|small|big|medium|red|blue|green|black|white|other|different|business"
    r"|working|calendar|full|whole|spare|adult|double|single))?"
)

QUANTITY_ENGLISH = compile_pattern(rf"({DIGITS}|{EN}){_SCALE}(?:(%)|{_BETWEEN} ?(?:({_EN_UNIT})\b|([a-z]{{3,20}}s)\b))")
"""Groups: numeral, scale, Chinese scale, percent sign, known unit, any word with an s at its end."""

QUANTITY_CHINESE = compile_pattern(rf"({DIGITS}|{ZH})()([百千万亿])? ?[多余来]? ?(?:(%)|({CHINESE_UNIT}))")
"""Groups as in `QUANTITY_ENGLISH`, without the last."""

PERCENT_CHINESE = compile_pattern(rf"(百分之)({DIGITS}|{ZH})")

NUMBER = compile_pattern(rf"({DIGITS}|{EN}|{ZH}){_SCALE}")
"""Groups: numeral, scale, Chinese scale."""

MODEL_BEFORE = compile_pattern(
    r"(?:\b(?:v|ver|version|iphone|ipad|ios|macos|windows|android|galaxy|pixel|python|java|gpt|model|gen|xbox|ps|chapter|page|"
    r"step|iso|http|error|covid|mate|redmi)\.?|版本|型号|第|小米|华为|苹果|安卓|错误码?|错误代码|报错) ?$"
)
"""What makes the number behind it a name."""

RANGE_BEFORE = compile_pattern(rf"(?:^|[^0-9A-Za-z_.,/:-])({DIGITS}) ?(?:-|–|—|~|～|to|or|到|至|或) ?$")
RANGE_BEHIND = compile_pattern(rf"^ ?(?:-|–|—|~|～|to|到|至) ?({DIGITS})(?:[^0-9A-Za-z_%:/-]|$)")
"""The other end of a range."""

EMAIL = compile_pattern(r"[a-z0-9][a-z0-9._%+-]{0,63}@[a-z0-9](?:[a-z0-9-]{0,62}\.){1,8}[a-z]{2,24}")
URL = compile_pattern(
    r"(?:https?|ftp)://[!#-&(-;=?-Z\[\]_a-z~]+|\bwww\.[!#-&(-;=?-Z\[\]_a-z~]+"
    r"|\b[a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,4}\.(?:com|org|net|io|cn|dev|ai|app|edu|gov|co|me|info|shop|uk|de|jp)"
    r"(?:\.[a-z]{2})?\b(?::\d{2,5})?(?:[/?#][!#-&(-;=?-Z\[\]_a-z~]*)?"
)

PHONE = compile_pattern(
    r"\+\d{1,3}[ -]?(?:\(\d{1,4}\)[ -]?)?\d{1,4}(?:[ -]?\d{2,4}){1,4}|\(\d{3}\) ?\d{3}[- ]?\d{4}"
    r"|\d{3}[-. ]\d{3}[-. ]\d{4}"
    r"|1[3-9]\d[ -]?\d{4}[ -]?\d{4}|\(?0\d{2,3}\)?[- ]\d{7,8}|[48]00[- ]?\d{3}[- ]?\d{4}|[48]00[- ]?\d{4}[- ]?\d{3}"
)
PHONE_CUED = compile_pattern(
    r"(?:\b(?:phone|call|tel|telephone|mobile|cell|text|whatsapp|reach|ring)\b(?: me| us| him| her)?(?: number)?"
    r"(?: at| on| is|:){0,2} ?|(?:电话|手机|座机|联系方式|打)(?:号码|号)?(?:是|为|:|：)? ?)(\d[\d -]{5,13}\d)"
)

_TOKEN = "([a-z0-9]{1,40}(?:[-_][a-z0-9]{1,40}){0,6})"
ID_EXPLICIT = compile_pattern(
    rf"\b(?:{THING})(?:'s)? (?:number|no|num|nr|id|code|#)(?: is| was)?[ .:=#]{{1,3}}{_TOKEN}"
    rf"|\b(?:user|order|customer|account|ticket|tracking)?_?id(?: is| was)?[ :=#]{{1,3}}{_TOKEN}"
    rf"|\b(?:sku|ref|po|rma|pnr|reference|confirmation)(?: is)?[ :=#]{{1,3}}{_TOKEN}|#{_TOKEN}"
    rf"|(?:(?:{CHINESE_THING})(?:单?号码?|编号|id|码)|单号|编号|序列号|流水号|工号|卡号|账号|帐号)"
    rf"(?:是|为|:|=|#)? ?#?{_TOKEN}"
    rf"|(\d{{1,20}})号(?:订单|工单|包裹|会员|桌)"
)
"""A word says that it is an id. Groups: the id, of any of six alternatives."""

ID_WEAK = compile_pattern(rf"\b({THING})s? #?{_TOKEN}|({CHINESE_THING}) ?#?{_TOKEN}")
"""A thing that has an id stands before. Groups: thing, id, Chinese thing, id."""

ID_BARE = compile_pattern(
    r"(?-i:[A-Z]{1,6}[-_]\d{3,20}(?:[-_][A-Z0-9]{1,20}){0,4}|[A-Z]{2,6}(?:[-_][A-Z0-9]{1,20}){1,5}|[A-Z]{1,4}\d{5,30}[A-Z0-9]{0,10})"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{9,24}"
)
CUES = compile_pattern(
    rf"[0-9@]|://|www\.|\.(?:com|org|net|io|cn|dev|ai|app|edu|gov|co|me|info|shop|uk|de|jp)\b|\b(?:{NUMBER_WORD}|code|reference|confirmation|pnr)\b"
    "|[一二两三四五六七八九十百千万亿半]"
)
"""Without one of these there is nothing but a date."""

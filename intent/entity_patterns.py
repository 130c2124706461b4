"""Patterns of entities other than dates: RE2 sources, the words they rest on, and what stands against a match."""

from __future__ import annotations

from intent.numerals import DIGITS, EN, NUMBER_WORD, ZH
from intent.rules import compile_pattern

SYMBOLS = {"$": "USD", "us$": "USD", "hk$": "HKD", "nt$": "TWD", "a$": "AUD", "c$": "CAD", "s$": "SGD"}
SYMBOLS |= {"€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW"}
_CODES = ("USD", "EUR", "GBP", "CNY", "JPY", "HKD", "TWD", "AUD", "CAD", "SGD", "CHF", "INR", "KRW", "RMB")
CURRENCY_WORDS = {code.lower(): code for code in _CODES} | {
    "rmb": "CNY",
    "dollar": "USD",
    "buck": "USD",
    "euro": "EUR",
    "pound": "GBP",
    "quid": "GBP",
    "yen": "JPY",
    "yuan": "CNY",
    "kuai": "CNY",
    "rupee": "INR",
    "cent": "USD",
    "元": "CNY",
    "块": "CNY",
    "块钱": "CNY",
    "人民币": "CNY",
    "美元": "USD",
    "美金": "USD",
    "美刀": "USD",
    "欧元": "EUR",
    "英镑": "GBP",
    "日元": "JPY",
    "日币": "JPY",
    "港币": "HKD",
    "港元": "HKD",
    "台币": "TWD",
    "韩元": "KRW",
    "毛钱": "CNY",
    "角钱": "CNY",
    "分钱": "CNY",
}
"""What follows a number, in lower case and the singular, and its ISO 4217 code."""

PARTS = {"cent": 0.01, "毛钱": 0.1, "角钱": 0.1, "分钱": 0.01}
"""Words for a part of the unit."""

_CODE = "|".join(_CODES)
_SCALE = r"(?: ?(k|mm?|bn|thousand|million|billion)\b|([百千万亿]))?"
_ZH_MONEY = "元人民币|块钱|块|元|人民币|美元|美金|美刀|欧元|英镑|日元|日币|港币|港元|台币|韩元|毛钱|角钱|分钱"
_EN_MONEY = rf"dollars?\b|bucks?\b|euros?\b|pounds?\b|quid\b|yen\b|yuan\b|kuai\b|rupees?\b|cents?\b|(?:{_CODE})\b"

AMOUNT_PREFIX = compile_pattern(rf"((?:\b(?:us|hk|nt|[acs]))?\$|[€£¥₹₩]|\b(?:{_CODE})|人民币) ?({DIGITS}){_SCALE}")
"""Groups: currency, digits, scale, Chinese scale."""

AMOUNT_SUFFIX = compile_pattern(
    rf"({DIGITS}|{EN}|{ZH}){_SCALE} ?[多余来]? ?({_EN_MONEY}|{_ZH_MONEY})(?:([0-9一二两三四五六七八九])([毛角])?)?"
)
"""Groups: numeral, scale, Chinese scale, currency, tenths behind 块, their unit."""

PIECES = compile_pattern(
    "^(?:蛋糕|肥皂|香皂|电池|手?表|巧克力|屏幕?|地|玉|布|硬盘|豆腐|肉|牛排|面包|披萨|毛巾|瓷砖|木|石|橡皮|板|糖|饼|显示|主板|手帕|腹肌)"
)
"""What 块 counts as pieces."""

CUT = compile_pattern("(?:切|分|掰|碎|裂)(?:成|为)?$")
"""What makes 块 pieces in front of it."""

WEIGHED = compile_pattern(r"^ (?:of|heavier|lighter|overweight)\b")
"""What makes pounds a weight."""

_UNIT_WORDS = {
    "kg": "kgs? kilos? kilograms?",
    "g": "g grams?",
    "mg": "mg",
    "lb": "lbs? pounds?",
    "oz": "oz ounces?",
    "t": "tons? tonnes?",
    "km": "kms? kilometers? kilometres?",
    "m": "meters? metres?",
    "cm": "cms? centimeters? centimetres?",
    "mm": "mm",
    "mile": "miles?",
    "ft": "ft feet foot",
    "in": "inch inches",
    "l": "liters? litres?",
    "ml": "ml",
    "gb": "gb gigs?",
    "mb": "mb",
    "tb": "tb",
    "mbps": "mbps",
    "percent": "percent",
    "person": "people persons?",
    "child": "child children kids?",
    "box": "box boxes",
    "glass": "glass glasses",
    "dish": "dish dishes",
    "copy": "copy copies",
    "battery": "battery batteries",
    "piece": "pieces? pcs",
    "bag": "bags?",
    "bottle": "bottles?",
    "pack": "packs?",
    "pair": "pairs?",
    "cup": "cups?",
    "can": "cans?",
    "set": "sets?",
    "unit": "units?",
    "item": "items?",
    "ticket": "tickets?",
    "second": "seconds? secs?",
    "minute": "minutes? mins?",
    "hour": "hours? hrs?",
    "day": "days?",
    "week": "weeks?",
    "month": "months?",
    "year": "years?",
    "night": "nights?",
    "degree": "degrees?",
    "time": "times",
    "seat": "seats?",
    "room": "rooms?",
    "mug": "mugs?",
}
_ZH_UNITS = (
    "个月|个小时|小时|分钟|秒钟?|星期|礼拜|公斤|千克|毫克|毫升|厘米|毫米|公里|英里|平方米|平米|兆|度|个|件|张|瓶|包|箱|盒|袋|本|双|条|只|台|部|杯|份|套|"
    "斤|克|吨|升|米|里|位|名|次|天|周|年|晚|间|辆|支|枝|根|把|片|颗|粒|桶|罐|打|对|层|岁|折|块|株|盆|碗|盘|支|枚|副|顶|扇|扎|项|人|倍"
)
ENGLISH_UNIT = {
    form: unit
    for unit, words in _UNIT_WORDS.items()
    for word in words.split()
    for form in ((word[:-2], word[:-1]) if word.endswith("s?") else (word,))
}
"""Every written form of a unit, and the unit."""

_EN_UNIT = "|".join(sorted(ENGLISH_UNIT, key=len, reverse=True))
_BETWEEN = (
    r"(?: ?-| (?:more|extra|additional|new|large|small|big|medium|red|blue|green|black|white|other|different|business"
    r"|working|calendar|full|whole|spare|adult|double|single))?"
)

QUANTITY_ENGLISH = compile_pattern(rf"({DIGITS}|{EN}){_SCALE}(?:(%)|{_BETWEEN} ?(?:({_EN_UNIT})\b|([a-z]{{3,20}}s)\b))")
"""Groups: numeral, scale, Chinese scale, percent sign, known unit, any word with an s at its end."""

QUANTITY_CHINESE = compile_pattern(rf"({DIGITS}|{ZH})()([百千万亿])? ?[多余来]? ?(?:(%)|({_ZH_UNITS}))")
"""Groups as in `QUANTITY_ENGLISH`, without the last."""

PERCENT_CHINESE = compile_pattern(rf"(百分之)({DIGITS}|{ZH})")

NO_PLURAL = frozenset(
    "was has does this its his hers ours yours yes less plus minus always perhaps thus lots was's us is as pass miss loss "
    "address class business process across unless status bus gas access press express guess gross boss access's news "
    "previous various serious thanks greetings kisses".split()
)
"""Words with an s at their end that are counted by no number."""

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
    r"\+\d{1,3}[ -]?(?:\(\d{1,4}\)[ -]?)?\d{1,4}(?:[ -]?\d{2,4}){1,4}|\(\d{3}\) ?\d{3}[- ]?\d{4}|\d{3}[-. ]\d{3}[-. ]\d{4}"
    r"|1[3-9]\d[ -]?\d{4}[ -]?\d{4}|\(?0\d{2,3}\)?[- ]\d{7,8}|[48]00[- ]?\d{3}[- ]?\d{4}|[48]00[- ]?\d{4}[- ]?\d{3}"
)
PHONE_CUED = compile_pattern(
    r"(?:\b(?:phone|call|tel|telephone|mobile|cell|text|whatsapp|reach|ring)\b(?: me| us| him| her)?(?: number)?"
    r"(?: at| on| is|:){0,2} ?|(?:电话|手机|座机|联系方式|打)(?:号码|号)?(?:是|为|:|：)? ?)(\d[\d -]{5,13}\d)"
)

_TOKEN = "([a-z0-9]{1,40}(?:[-_][a-z0-9]{1,40}){0,6})"
_THING = (
    "order|invoice|ticket|case|tracking|parcel|package|account|reference|ref|booking|reservation|confirmation|customer|user"
    "|member|membership|product|item|policy|claim|card|flight|transaction|shipment|serial|contract|po|rma|return|request|job"
    "|employee|patient|student|passport|sku|coupon|voucher|promo"
)
_ZH_THING = "订单|运单|快递|物流|工单|发票|会员|用户|账户|帐户|合同|流水|交易|商品|产品|货|退款|退货|售后|预约|预订|航班|车次|票|客户|员工|包裹|学|身份证|优惠券|优惠"

ID_EXPLICIT = compile_pattern(
    rf"\b(?:{_THING})(?:'s)? (?:number|no|num|nr|id|code|#)\.?(?: is| was| =|:)? ?#?{_TOKEN}"
    rf"|\b(?:user|order|customer|account|ticket|tracking)?_?id(?: is| was| =|=|:)? ?#?{_TOKEN}"
    rf"|\b(?:sku|ref|po|rma|pnr|reference|confirmation)(?: is|:|=)? ?#?{_TOKEN}|#{_TOKEN}"
    rf"|(?:(?:{_ZH_THING})(?:单?号码?|编号|id|码)|单号|编号|序列号|流水号|工号|卡号|账号|帐号)(?:是|为|:|=|#)? ?#?{_TOKEN}"
    rf"|(\d{{1,20}})号(?:订单|工单|包裹|会员|桌)"
)
"""A word says that it is an id. Groups: the id, of any of six alternatives."""

ID_WEAK = compile_pattern(rf"\b({_THING})s? #?{_TOKEN}|({_ZH_THING}) ?#?{_TOKEN}")
"""A thing that has an id stands before. Groups: thing, id, Chinese thing, id."""

ID_BARE = compile_pattern(
    r"(?-i:[A-Z]{1,6}[-_]\d{3,20}(?:[-_][A-Z0-9]{1,20}){0,4}|[A-Z]{2,6}(?:[-_][A-Z0-9]{1,20}){1,5}|[A-Z]{1,4}\d{5,30}[A-Z0-9]{0,10})"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{9,24}"
)
NAMES = frozenset("iso covid rfc utf gpt http usb wifi sha md ps rtx gtx ipv a3 b2b cd dvd pm am".split())
"""What stands before the hyphen of a name, not of an id."""

CUES = compile_pattern(
    rf"[0-9@]|://|www\.|\.(?:com|org|net|io|cn|dev|ai|app|edu|gov|co|me|info|shop|uk|de|jp)\b|\b(?:{NUMBER_WORD}|code|reference|confirmation|pnr)\b"
    "|[一二两三四五六七八九十百千万亿半]"
)
"""Without one of these there is nothing but a date."""

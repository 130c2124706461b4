"""Words of entities: currencies, units, things that have ids, and words that only look like some of these."""

from __future__ import annotations

SYMBOLS = {"$": "USD", "us$": "USD", "hk$": "HKD", "nt$": "TWD", "a$": "AUD", "c$": "CAD", "s$": "SGD"}
SYMBOLS |= {"€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW"}
CODES = ("USD", "EUR", "GBP", "CNY", "JPY", "HKD", "TWD", "AUD", "CAD", "SGD", "CHF", "INR", "KRW", "RMB")
CURRENCY_WORDS = {code.lower(): code for code in CODES} | {
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
    "adult": "adults?",
    "guest": "guests?",
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
ENGLISH_UNIT = {
    form: unit
    for unit, words in _UNIT_WORDS.items()
    for word in words.split()
    for form in ((word[:-2], word[:-1]) if word.endswith("s?") else (word,))
}
"""Every written form of a unit, and the unit."""

CHINESE_UNIT = (
    "个月|个小时|个钟头?|小时|分钟|秒钟?|星期|礼拜|公斤|千克|毫克|毫升|厘米|毫米|公里|英里|平方米|平米|兆|度|个|件|张|瓶|包|箱|盒|袋"
    "|本|双|条|只|台|部|杯|份|套|斤|克|吨|升|米|里|位|名|次|天|周|年|晚|间|首|道|分|辆|支|枝|根|把|片|颗|粒|桶|罐|打|对|层|岁"
    "|折|块|株|盆|碗|盘|枚|副|顶|扇|扎|项|人|倍"
)
"""RE2 source of Chinese units and classifiers."""

THING = (
    "order|invoice|ticket|case|tracking|parcel|package|account|reference|ref|booking|reservation|confirmation|customer|user"
    "|member|membership|product|item|policy|claim|card|flight|transaction|shipment|serial|contract|po|rma|return|request|job"
    "|employee|patient|student|passport|sku|coupon|voucher|promo"
)
"""RE2 source of what has an id, or is called one."""

CHINESE_THING = (
    "订单|运单|快递|物流|工单|发票|会员|用户|账户|帐户|合同|流水|交易|商品|产品|货|退款|退货|售后|预约|预订|航班"
    "|车次|票|客户|员工|包裹|学|身份证|优惠券|优惠"
)

_NO_PLURAL = """
was has does this its his hers ours yours yes less plus minus always perhaps thus lots us is as pass miss loss address
class business process across unless status bus gas access press express guess gross boss news previous various serious
thanks greetings kisses upwards afterwards towards thousands hundreds millions dozens others sometimes besides means
equals
"""
NO_PLURAL = frozenset(_NO_PLURAL.split())
"""Words with an s at their end that are counted by no number."""

_NAMES = "iso covid rfc utf gpt http usb wifi sha md ps rtx gtx ipv cd dvd pm am"
NAMES = frozenset(_NAMES.split())
"""What stands before the hyphen of a name, not of an id."""

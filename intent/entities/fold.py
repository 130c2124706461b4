"""Fold: a text of the same length in which entities are looked for, so that offsets hold in the original."""

from __future__ import annotations

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_BLANKS = dict.fromkeys([0x3000, 0xA0, 0x202F, 0x2009, *range(0x09, 0x0E)], 0x20)
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
_SIMPLIFIED = str.maketrans(
    "訂單編號碼電話機聯繫帳戶發貨運遞點鐘後週禮個兩萬億塊幣歐鎊圓員開總價錢張雙條臺瓶袋箱盒隻輛歲層噸鎮顆雞頓場國時間內過個這號現剛貳參",
    "订单编号码电话机联系帐户发货运递点钟后周礼个两万亿块币欧镑元员开总价钱张双条台瓶袋箱盒只辆岁层吨镇颗鸡顿场国时间内过个这号现刚二三",
)
_TABLE: dict[int, int | str] = {**_SURROGATES, **_FULL_WIDTH, **_BLANKS, **_SIMPLIFIED, **str.maketrans("￥’−", "¥'-")}
_ASCII_BLANKS = dict.fromkeys(range(0x09, 0x0E), 0x20)


def fold(text: str) -> str:
    """The text with full-width forms in ASCII, every blank a space, and the traditional characters of numbers, dates
    and units simplified; a character stays one character.

    >>> fold("８８元，兩個")
    '88元,两个'
    """
    return text.translate(_ASCII_BLANKS) if text.isascii() else text.translate(_TABLE)

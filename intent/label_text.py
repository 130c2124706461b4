"""Label texts: the name of an intent, read as one more example of it.

Names are written by people and mean something (`exchange_rate`, `orders.track`). As an example beside 10 others they
are worth 0.5 to 1 point of accuracy, beside 100 others nothing (validation rows of CLINC150, BANKING77, HWU64).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from intent.normalize import normalize

_CAPITAL_AFTER_SMALL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_LETTER = re.compile(r"[\W\d_]+")
_LEAST_LETTERS = 3


def label_text(intent: str) -> str | None:
    """The name as words; None where it is a code rather than a name.

    >>> label_text("exchange_rate"), label_text("orders.trackParcel"), label_text("退款"), label_text("i17")
    ('exchange rate', 'orders track Parcel', '退款', None)
    """
    words = _NO_LETTER.sub(" ", _CAPITAL_AFTER_SMALL.sub(" ", normalize(intent))).strip()
    n_letters = len(words.replace(" ", ""))
    return words if n_letters >= _LEAST_LETTERS or (n_letters and not words.isascii()) else None


def with_label_texts(examples: Iterable[tuple[str, str]], more: Iterable[str] = ()) -> list[tuple[str, str]]:
    """(normalized text, intent) examples, each once, and after them the label text of each intent that has one.

    Args:
        examples: normalized.
        more: intents beside those of the examples.
    """
    found = dict.fromkeys((text, intent) for text, intent in examples)
    for intent in sorted({*more, *(intent for _, intent in found)}):
        text = label_text(intent)
        if text is not None:
            found.setdefault((text, intent))
    return list(found)

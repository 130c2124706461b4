"""Text features: what the wording of a request says of how hard it is. Standard library only."""

from __future__ import annotations

import re
from math import log1p

NAMES = (
    "characters",
    "words",
    "word_length",
    "long_words",
    "sentences",
    "lines",
    "digits",
    "numbers",
    "quantities",
    "math_signs",
    "formulas",
    "code",
    "quoted",
    "questions",
    "what",
    "which",
    "who",
    "when_where",
    "why_how",
    "how_many",
    "negations",
    "options",
    "option_length",
    "statements",
    "gaps",
    "capitals",
    "brackets",
    "commas",
    "conditions",
    "foreign",
)
"""The features, in order."""

_MAX_CHARS = 8192
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_SENTENCE_END = re.compile(r"[.!?。！？]+(?:\s|$)")
_QUANTITY = re.compile(
    r"[%$€£¥°]|\b(?:percent|half|twice|double|dozen|each|per|total|average|rate)\b|每|一半|平均|总共", re.I
)
_MATH = re.compile(r"[+*/=<>^±×÷√∑∫≤≥≠∈∀∃→∞−]|(?<=\d)\s*-\s*(?=\d)")
_FORMULA = re.compile(r"\\[a-zA-Z]+|\b[a-zA-Z]\s?[=^]\s?\S|\b[a-z]\([a-z]\)|\b(?:sin|cos|tan|log|ln|sqrt|mod)\b")
_CODE = re.compile(
    r"```|\b(?:def|return|import|class|function|print|assert|lambda|void|SELECT)\b|[{};]|==|\w\(\w*\)|=>"
)
_QUOTED = re.compile(r'"[^"]{2,}"|“[^“”]{2,}”|「[^「」]{2,}」')
_WHAT = re.compile(r"\bwhat\b|什么|甚麼", re.I)
_WHICH = re.compile(r"\b(?:which|following)\b|哪", re.I)
_WHO = re.compile(r"\b(?:who|whom|whose)\b|谁|誰", re.I)
_WHEN_WHERE = re.compile(r"\b(?:when|where)\b|何时|哪里|哪裡", re.I)
_WHY_HOW = re.compile(r"\b(?:why|how)\b|为什么|怎么|怎麼|如何", re.I)
_HOW_MANY = re.compile(r"\bhow (?:many|much|far|long|old|often)\b|多少|几个|幾個", re.I)
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nor|neither|except|without|least|false|cannot|\w+n't)\b|不|没|沒|除了", re.I
)
_OPTION = re.compile(r"^[ \t]{0,9}\(?[A-Ha-h1-8][.):][ \t]*(.*)$", re.M)
_STATEMENT = re.compile(r"\b(?:statement|clue|step|case)s?\s*\(?\d|\b(?:i|ii|iii|iv)\.|^[ \t]{0,9}[-*•]\s", re.I | re.M)
_GAP = re.compile(r"_{2,}|\.{3,}|…")
_CONDITION = re.compile(
    r"\b(?:if|unless|suppose|assume|given|let|must|only|every|all|any|exactly)\b|如果|假设|必须", re.I
)
_LONG = 9
"""Letters from which on a word is long."""


def text_features(text: str) -> list[float]:
    """What the wording says, one number a name of `NAMES`; counts are log(1 + n), shares 0..1.

    Args:
        text: as it was written; only its first 8,192 characters count.

    >>> found = dict(zip(NAMES, text_features("How many days are in 2 weeks?\\nA. 7\\nB. 14"), strict=True))
    >>> round(found["options"], 2), found["how_many"] > 0, found["negations"]
    (1.1, True, 0.0)
    """
    text = text[:_MAX_CHARS]
    words = _WORD.findall(text)
    n_chars, n_words = max(1, len(text)), max(1, len(words))
    options: list[str] = _OPTION.findall(text)
    return [
        log1p(len(text)),
        log1p(len(words)),
        sum(map(len, words)) / n_words,
        sum(len(word) >= _LONG for word in words) / n_words,
        _count(_SENTENCE_END, text),
        log1p(text.count("\n")),
        sum(map(str.isdigit, text)) / n_chars,
        _count(_NUMBER, text),
        _count(_QUANTITY, text),
        _count(_MATH, text),
        _count(_FORMULA, text),
        _count(_CODE, text),
        _count(_QUOTED, text),
        log1p(text.count("?") + text.count("？")),
        *(_count(each, text) for each in (_WHAT, _WHICH, _WHO, _WHEN_WHERE, _WHY_HOW, _HOW_MANY, _NEGATION)),
        log1p(len(options)),
        log1p(sum(map(len, options)) / max(1, len(options))),
        _count(_STATEMENT, text),
        _count(_GAP, text),
        sum(map(str.isupper, text)) / n_chars,
        log1p(text.count("(") + text.count("[") + text.count("（")),
        log1p(text.count(",") + text.count("，") + text.count("、")),
        _count(_CONDITION, text),
        sum(ord(letter) > 127 for letter in text) / n_chars,
    ]


def _count(pattern: re.Pattern[str], text: str) -> float:
    return log1p(sum(1 for _ in pattern.finditer(text)))

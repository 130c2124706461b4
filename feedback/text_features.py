"""Text features: what the wording of a request says of how hard it is. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_LONG = 9
"""Letters from which on a word is long."""

_RUN = re.compile(r"\w+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_ASCII_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
_OPTION = re.compile(r"[ \t]{0,9}\(?[A-Ha-h1-8][.):][ \t]*(.*)$")

_ENDS = ".!?。！？"
_MATH_SIGNS = "+*/=<>^±×÷√∑∫≤≥≠∈∀∃→∞−"
_NUMBERED = ("statement", "clue", "step", "case")

# Words are looked up, and a pattern is tried only where something of it is there: a caller waits meanwhile.
_FORMULA_WORDS = ("sin", "cos", "tan", "log", "ln", "sqrt", "mod")
_CODE_WORDS = ("def", "return", "import", "class", "function", "print", "assert", "lambda", "void", "SELECT")
_WORDS = {
    "what": "what",
    "which": "which following",
    "who": "who whom whose",
    "when_where": "when where",
    "why_how": "why how",
    "negations": "not no never none nor neither except without least false cannot",
    "conditions": "if unless suppose assume given let must only every all any exactly",
    "quantities": "percent half twice double dozen each per total average rate",
    "formulas": " ".join(_FORMULA_WORDS),
    "code": " ".join(_CODE_WORDS).lower(),
}
_OF_WORD = {word: name for name, words in _WORDS.items() for word in words.split()}
_CHINESE = {
    "what": ("什么", "甚麼"),
    "which": ("哪",),
    "who": ("谁", "誰"),
    "when_where": ("何时", "哪里", "哪裡"),
    "why_how": ("为什么", "怎么", "怎麼", "如何"),
    "how_many": ("多少", "几个", "幾個"),
    "negations": ("不", "没", "沒", "除了"),
    "conditions": ("如果", "假设", "必须"),
    "quantities": ("每", "一半", "平均", "总共", "€", "£", "¥", "°"),
}
_PATTERNS = {
    "sentences": re.compile(rf"[{_ENDS}](?:\s|$)"),
    "numbers": re.compile(r"\d+(?:[.,:/]\d+)*"),
    "math_signs": re.compile(rf"[{_MATH_SIGNS}]|(?<=\d)\s*-\s*(?=\d)"),
    "formulas": re.compile(rf"\\[a-zA-Z]+|\b[a-zA-Z]\s?[=^]\s?\S|\b[a-z]\([a-z]\)|\b(?:{'|'.join(_FORMULA_WORDS)})\b"),
    "code": re.compile(rf"```|\b(?:{'|'.join(_CODE_WORDS)})\b|[{{}};]|==|\w\(\w*\)|=>"),
    "quoted": re.compile(r'"[^"]{2,}"|“[^“”]{2,}”|「[^「」]{2,}」'),
    "how_many": re.compile(r"\bhow (?:many|much|far|long|old|often)\b", re.I),
    "statements": re.compile(
        rf"\b(?:{'|'.join(_NUMBERED)})s?\s*\(?\d|\b(?:i|ii|iii|iv)\.|^[ \t]{{0,9}}[-*•]\s", re.I | re.M
    ),
    "gaps": re.compile(r"_{2,}|\.{3,}|…"),
}
_SIGNS = [
    (name, frozenset(signs))
    for name, signs in (
        ("sentences", _ENDS),
        ("math_signs", _MATH_SIGNS),
        ("formulas", "\\=^("),
        ("code", "`=("),
        ("quoted", '"“「'),
        ("statements", "-*•"),
    )
]
"""Without one of its signs a pattern is not found, but for what `_tried` knows of them."""
_NUMBER_BEHIND = re.compile(r"s?\s*\(?\d")
_NOT = re.compile(r"n't\b")
_DIGITS, _CAPITALS = b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def text_features(text: str) -> list[float]:
    """What the wording says, one number a name of `NAMES`; counts are log(1 + n), shares 0..1.

    Args:
        text: as it was written; only its first 8,192 characters count.

    >>> found = dict(zip(NAMES, text_features("How many days are in 2 weeks?\\nA. 7\\nB. 14"), strict=True))
    >>> round(found["options"], 2), found["how_many"] > 0, found["negations"]
    (1.1, True, 0.0)
    """
    text = text[:_MAX_CHARS]
    is_ascii = text.isascii()
    n_digits, n_capitals, n_foreign = _letters(text, is_ascii)
    counts = _counts(text, n_digits, is_ascii)
    lengths = list(map(len, (_ASCII_WORD if is_ascii else _WORD).findall(text)))
    n_chars, n_words = max(1, len(text)), max(1, len(lengths))
    options = [found[1] for line in text.split("\n") if (found := _OPTION.match(line))]
    values = {
        "characters": log1p(len(text)),
        "words": log1p(len(lengths)),
        "word_length": sum(lengths) / n_words,
        "long_words": sum([length >= _LONG for length in lengths]) / n_words,
        "lines": log1p(text.count("\n")),
        "digits": n_digits / n_chars,
        "questions": log1p(text.count("?") + text.count("？")),
        "options": log1p(len(options)),
        "option_length": log1p(sum(map(len, options)) / max(1, len(options))),
        "capitals": n_capitals / n_chars,
        "brackets": log1p(text.count("(") + text.count("[") + text.count("（")),
        "commas": log1p(text.count(",") + text.count("，") + text.count("、")),
        "foreign": n_foreign / n_chars,
    }
    return [values[name] if name in values else log1p(counts.get(name, 0)) for name in NAMES]


def _letters(text: str, is_ascii: bool) -> tuple[int, int, int]:
    """How many are digits, capitals, and beyond ASCII."""
    raw = text.encode("ascii", "ignore")
    if is_ascii:
        n_digits, n_capitals = (len(raw) - len(raw.translate(None, kind)) for kind in (_DIGITS, _CAPITALS))
        return n_digits, n_capitals, 0
    return sum(map(str.isdigit, text)), sum(map(str.isupper, text)), len(text) - len(raw)


def _counts(text: str, n_digits: int, is_ascii: bool) -> dict[str, int]:
    """What words and patterns count; what is not there may be left out."""
    lowered = text.lower()
    counts: dict[str, int] = {}
    for run in _RUN.findall(lowered):
        if run in _OF_WORD:
            name = _OF_WORD[run]
            counts[name] = counts.get(name, 0) + 1
    counts["quantities"] = counts.get("quantities", 0) + text.count("%") + text.count("$")
    if not is_ascii:
        for name, words in _CHINESE.items():
            counts[name] = counts.get(name, 0) + sum(map(text.count, words))
    tried = _tried(lowered, counts, n_digits > 0)
    if "code" not in tried:
        named = sum([run in _CODE_WORDS for run in _RUN.findall(text)]) if "code" in counts else 0
        counts["code"] = named + sum(map(text.count, "{};"))
    if "n't" in lowered:
        ends = [found.start() - 1 for found in _NOT.finditer(lowered)]
        short = sum([end >= 0 and (lowered[end].isalnum() or lowered[end] == "_") for end in ends])
        counts["negations"] = counts.get("negations", 0) + short
    for name in tried:
        found = len(_PATTERNS[name].findall(text))
        # Chinese words are counted already; of the others the pattern says all
        counts[name] = found + counts.get(name, 0) if name == "how_many" else found
    return counts


def _tried(lowered: str, counts: Mapping[str, int], has_digits: bool) -> set[str]:
    """The patterns that may be found."""
    letters = set(lowered)
    tried = {name for name, signs in _SIGNS if not signs.isdisjoint(letters)}
    if has_digits:
        tried.add("numbers")
        if "-" in letters:
            tried.add("math_signs")
        if True in [_is_numbered(word, lowered) for word in _NUMBERED if word in lowered]:
            tried.add("statements")
    if "." in letters and ("i." in lowered or "iv." in lowered):
        tried.add("statements")
    if "__" in lowered or "..." in lowered or "…" in letters:
        tried.add("gaps")
    if "formulas" in counts:
        tried.add("formulas")
    if "why_how" in counts and "how " in lowered:
        tried.add("how_many")
    return tried


def _is_numbered(word: str, lowered: str) -> bool:
    """Whether a number comes right behind a word, or behind something that ends like it."""
    place = lowered.find(word)
    while place >= 0:
        if _NUMBER_BEHIND.match(lowered, place + len(word)):
            return True
        place = lowered.find(word, place + 1)
    return False

"""Split: the pieces of a sentence that may each want something of their own.

A cut is only a question: whether the pieces are wishes is told by reading them (see `intent.parts`).
"""

from __future__ import annotations

import re

_OPENING = r"(?:(?:and|then|plus|also|please|after that|oh),?\s+)*"
_STRONG = re.compile(
    rf"(?:\s*[;；。]\s*|[?!？！]\s+|(?<=[a-z0-9%)][.])\s+(?=[a-z])){_OPENING}"
    r"|[?!？！](?=[\u3400-\u9fff])"
    r"|,?\s+(?:and|then|plus|also|as well as|by the way|after that)(?:,?\s+(?:also|then|please|after that))*,?\s+"
    r"|[，,、]?\s*(?:然[后後]|另外|此外|[并並]且|而且|同[时時]|[顺順]便|接[着著]|接下[来來]|以及|[对對]了"
    r"|再[帮幫]我|也[帮幫]我|[还還]有(?![多几幾没沒哪剩什谁誰效])|[并並](?=[\u3400-\u9fff]{2})(?![不非没沒未列])"
    r")[，,]?\s*",
    re.IGNORECASE,
)
_WEAK = re.compile(rf"(?:[,，]\s+|\s+-+\s+|[,，](?=[\u3400-\u9fff])){_OPENING}", re.IGNORECASE)
"""Commas and dashes: they cut only as far as the other joints leave room."""

_IN_ASCII = (
    ";",
    ", ",
    "? ",
    "! ",
    ". ",
    " -",
    " and",
    " then",
    " plus",
    " also",
    " as well as",
    " by the way",
    " after that",
)
"""An ASCII text with none of them, in lower case, has no joint: most have none, and looking for these takes no time."""

_HAN = re.compile("[\u3400-\u9fff]")
MAX_PARTS = 4
MAX_CHARS = 2000
"""A longer text is no sentence; each joint of it would cost a look at all of it."""

_LEAST_WORDS = 2
_LEAST_HAN = 3


def split(text: str) -> list[str]:
    """The pieces of a normalized sentence, in order; the whole as the only one where nothing joins two.

    A piece is long enough to want something: two words, or three Chinese characters. Shorter ones stay with the piece
    before. A text of more than MAX_CHARS has one piece.

    >>> split("cancel my order and tell me where the parcel is")
    ['cancel my order', 'tell me where the parcel is']
    >>> split("salt and pepper")
    ['salt and pepper']
    """
    if len(text) > MAX_CHARS or (text.isascii() and not _may_be_joined(text.lower())):
        return [text]
    strong = _cut(text, (0, len(text)), _STRONG, MAX_PARTS)
    spans: list[tuple[int, int]] = []
    for number, span in enumerate(strong, 1):
        spans += _cut(text, span, _WEAK, MAX_PARTS - len(spans) - (len(strong) - number))
    return [text] if len(spans) == 1 else [text[start:end].strip() for start, end in spans]


def _may_be_joined(folded: str) -> bool:
    return any(joint in folded for joint in _IN_ASCII)


def _cut(text: str, span: tuple[int, int], pattern: re.Pattern[str], most: int) -> list[tuple[int, int]]:
    """A span cut at its joints into pieces that are long enough, `most` at most; the last holds the rest."""
    joints = [joint.span() for joint in pattern.finditer(text, *span)]
    starts = [span[0], *(end for _, end in joints)]
    ends = [*(start for start, _ in joints), span[1]]
    spans = [(starts[0], ends[0])]
    for start, end in zip(starts[1:], ends[1:], strict=True):
        before = text[slice(*spans[-1])]
        if len(spans) < most and _is_enough(before) and _is_enough(text[start:end]):
            spans.append((start, end))
        else:
            spans[-1] = (spans[-1][0], end)
    return spans


def _is_enough(piece: str) -> bool:
    return len(piece.split()) >= _LEAST_WORDS or len(_HAN.findall(piece)) >= _LEAST_HAN

"""Split: the parts of a sentence that may each want something of their own."""

from __future__ import annotations

import re

_JOINTS = re.compile(
    r"(?:\s*[;；。]\s*|[?!？！]\s+)(?:(?:and|then|plus|also|please|after that),?\s+)*|[?!？！](?=[\u3400-\u9fff])"
    r"|,?\s+(?:and|then|plus|also)(?:\s+(?:also|then|please|after that))*\s+"
    r"|[，,、]?\s*(?:然后|另外|还有|并且|而且|同时|顺便|接着|以及|再帮我|也帮我|還有|並且)\s*"
    r"|[，,]\s*(?=(?:再|请|帮我|幫我|請))",
    re.IGNORECASE,
)
_HAN = re.compile("[\u3400-\u9fff]")
MAX_PARTS = 4
MAX_CHARS = 2000
"""A longer text is no sentence; each joint of it would cost a look at all of it."""

_LEAST_WORDS = 2
_LEAST_HAN = 3


def split(text: str) -> list[str]:
    """The parts of a normalized sentence, in order; the whole as the only part where nothing joins two.

    A part is long enough to want something: two words, or three Chinese characters. Shorter ones stay with the part
    before. A text of more than MAX_CHARS has one part.

    >>> split("cancel my order and tell me where the parcel is")
    ['cancel my order', 'tell me where the parcel is']
    >>> split("salt and pepper")
    ['salt and pepper']
    """
    if len(text) > MAX_CHARS:
        return [text]
    joints = [(joint.start(), joint.end()) for joint in _JOINTS.finditer(text)]
    starts = [0, *(end for _, end in joints)]
    ends = [*(start for start, _ in joints), len(text)]
    spans = [(starts[0], ends[0])]
    for start, end in zip(starts[1:], ends[1:], strict=True):
        before = text[slice(*spans[-1])]
        if len(spans) < MAX_PARTS and _is_enough(before) and _is_enough(text[start:end]):
            spans.append((start, end))
        else:
            spans[-1] = (spans[-1][0], end)
    return [text] if len(spans) == 1 else [text[start:end].strip() for start, end in spans]


def _is_enough(part: str) -> bool:
    return len(part.split()) >= _LEAST_WORDS or len(_HAN.findall(part)) >= _LEAST_HAN

"""Redaction: what of a request is written down, by the policy's `retention.utterances`.

What is left is the form in which records are stored; decisions are made from the request itself, before.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

from intent.entities.find import MAX_CHARS, MAX_FOUND, find_entities
from models.entity import Found
from router.live.fingerprint import canonical
from router.wire import dumps, loads

Mode = Literal["full", "redacted", "digest"]

MAX_MASKED_CHARS = 4_000
"""Of a request, or of its answer, only so many characters are searched for entities; what lies beyond is not kept."""

CUT = "[cut]"
"""Stands for text that is not kept as it was not looked at."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OVERLAP = 200
"""A window ends at a blank among its last so many characters, so that no entity is cut in two."""

_DATES_FROM = datetime(2000, 1, 1, tzinfo=UTC)
"""Dates are found whatever the day; only their values, which are not kept, depend on it."""

_OF_REQUEST = ("payload", "constraints")


def is_digest(text: str) -> bool:
    """Whether it stands in place of a text that is not kept."""
    return _DIGEST.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Redaction:
    """One way to keep requests.

    Attributes:
        mode: `full` keeps all; `redacted` masks entities; `digest` keeps no text.
        key: of the digests, so that nobody who sees a record alone can try out what was in it.
    """

    mode: Mode
    key: bytes

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is left out."""
        return self.mode == "full"

    def text(self, text: str) -> str:
        """A text as it is kept; one that was kept so before stays as it is.

        >>> Redaction("redacted", b"").text("refund 20 bucks to ann@example.com")
        'refund [amount] to [email]'
        >>> Redaction("digest", b"k").text("refund")[:13]
        'sha256:5802e7'
        """
        if self.mode == "digest":
            return text if is_digest(text) else self._digest(text)
        return text if self.keeps_all else _Masks().text(text)

    def texts(self, request: bytes, answer: bytes) -> tuple[bytes, bytes]:
        """The JSON texts of a request and of its answer as they are kept."""
        if self.keeps_all:
            return request, answer
        return dumps(self.request(loads(request))), dumps(self.answer(loads(answer)))

    def value(self, value: Any) -> Any:
        """A JSON value that was taken from a request, as it is kept.

        >>> Redaction("redacted", b"").value({"to": "ann@example.com", "n": 3})
        {'to': '[email]', 'n': '[number]'}
        """
        return value if self.keeps_all else self._value(value, _Masks(), is_object=False)

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON value of a request as it is kept: all but `utterance`, `payload` and `constraints` stays."""
        kept = dict(request)
        if self.keeps_all:
            return kept
        masks = _Masks()
        if kept.get("utterance") is not None:
            kept["utterance"] = self._said(kept["utterance"], masks)
        for name in _OF_REQUEST:
            if kept.get(name):
                kept[name] = self._value(kept[name], masks, is_object=name == "constraints")
        return kept

    def answer(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON value of a decision as it is kept: `text`, `entities` and `constraints`, those of its parts too."""
        if self.keeps_all:
            return dict(answer)
        return self._answer(answer, _Masks())

    def _answer(self, answer: Mapping[str, Any], masks: _Masks) -> dict[str, Any]:
        kept = dict(answer)
        if kept.get("text") is not None:
            kept["text"] = self._said(kept["text"], masks)
        if kept.get("entities"):
            kept["entities"] = self._entities(kept["entities"])
        if kept.get("constraints"):
            kept["constraints"] = self._value(kept["constraints"], masks, is_object=True)
        if kept.get("parts"):
            kept["parts"] = [self._answer(part, masks) for part in kept["parts"]]
        return kept

    def _said(self, text: str, masks: _Masks) -> str:
        return self.text(text) if self.mode == "digest" else masks.text(text)

    def _entities(self, entities: Mapping[str, Any]) -> dict[str, Any]:
        if self.mode == "digest":
            return {}
        return {name: _masked_entity(entity) for name, entity in entities.items()}

    def _value(self, value: Any, masks: _Masks, *, is_object: bool) -> Any:
        if self.mode == "digest":
            if isinstance(value, str) and is_digest(value):
                return value
            digest = self._digest(canonical(value).decode())
            return {"digest": digest} if is_object else digest
        return masks.value(value)

    def _digest(self, text: str) -> str:
        return f"sha256:{hmac.digest(self.key, text.encode(errors='surrogatepass'), sha256).hex()}"


def masked_as_found(text: str, found: Sequence[Found]) -> str:
    """A text as mode `redacted` keeps it, where its entities are known already.

    Args:
        text: of a request.
        found: all entities in it, in order.
    """
    if len(text) > MAX_CHARS or len(found) >= MAX_FOUND:
        return _Masks().text(text)
    return "".join(_pieces(text, found))


class _Masks:
    """Masks entities, and cuts off what is too much to look at."""

    def __init__(self) -> None:
        self._room = MAX_MASKED_CHARS

    def value(self, value: Any) -> Any:
        """A JSON value with its strings masked, names of members too; a number says as much as its digits in a text."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self.value(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value if value is None or isinstance(value, bool) else "[number]"

    def text(self, text: str) -> str:
        """A text with a mask in place of each entity."""
        looked_at, self._room = text[: self._room], max(0, self._room - len(text))
        return _masked(looked_at) + (CUT if len(looked_at) < len(text) else "")


def _masked(text: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(text):
        window = text[at : at + MAX_CHARS]
        end = len(window) if at + MAX_CHARS >= len(text) else _blank_before(window)
        found = find_entities(window[:end], now=_DATES_FROM)
        if len(found) == MAX_FOUND:
            end = found[-1].end
        parts += _pieces(window[:end], found)
        at += end
    return "".join(parts)


def _pieces(text: str, found: Sequence[Found]) -> list[str]:
    parts, done = [], 0
    for each in found:
        parts += [text[done : each.start], f"[{each.kind}]"]
        done = each.end
    parts.append(text[done:])
    return parts


def _blank_before(window: str) -> int:
    """Where to cut a window: behind the last blank near its end."""
    for place in range(len(window) - 1, len(window) - _OVERLAP, -1):
        if window[place].isspace():
            return place + 1
    return len(window)


def _masked_entity(entity: Mapping[str, Any]) -> dict[str, Any]:
    mask = f"[{entity['kind']}]"
    return {**entity, "value": mask, "text": mask, "resolved": None}

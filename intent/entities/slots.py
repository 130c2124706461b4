"""Slots: what was found in an utterance, given to the properties of a capability's `input_schema`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from intent.entities.find import MAX_CHARS
from intent.entities.fold import fold
from intent.entities.properties import Property, properties_of, types_of
from intent.entities.slot_values import matches, value_for
from models.entity import EntityKind, Found, Slot

_NEAR: dict[EntityKind, dict[EntityKind, float]] = {
    "amount": {"number": 0.5},
    "quantity": {"number": 0.6},
    "id": {"number": 0.4},
    "number": {"quantity": 0.5, "amount": 0.4},
    "url": {},
    "phone": {"number": 0.2},
}
"""What a property that asks for a kind also takes, and how gladly."""

_LEAST_DIGITS = {"id": 3, "phone": 7}
_BY_TYPE = {"number": 0.3, "quantity": 0.25, "amount": 0.25}
_PATTERN = 0.9
_CUE, _PLACE = 0.2, 0.1
_CUE_CHARS = 24
_BEGINS = re.compile(r"(?:\b(?:from|since|after|starting|leaving|between)|从|自|由)\s?$", re.IGNORECASE)
_ENDS = re.compile(r"(?:\b(?:to|until|till|by|before|through|and)|[-–~～到至])\s?$", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@#/+-]*")
_MAX_TOKENS = 200
_MAX_TRIES = 50

Pair = tuple[float, int, int, Any]


def fill(
    found: Sequence[Found], schema: Mapping[str, Any] | None, text: str, hints: Mapping[str, Any] | None = None
) -> dict[str, Slot]:
    """Property, or kind where no property fits → its slot. Deterministic; each thing found is used once.

    Args:
        found: of `find_entities` on `text`.
        schema: the resolved `input_schema`; None takes nothing.
        text: the utterance.
        hints: property → kind, or `{"kind": …}`; overrides what its name says, and adds properties.

    >>> schema = {"properties": {"order_amount": {"type": "number"}}}
    >>> fill([Found("number", 988, "988", 8, 11)], schema, "has the 988 order")["order_amount"].value
    988
    """
    return fill_properties(found, properties_of(schema, hints), text)


def fill_properties(found: Sequence[Found], properties: Sequence[Property], text: str) -> dict[str, Slot]:
    """As `fill`, with the properties of a capability read beforehand, once."""
    slots = _enum_slots(properties, text)
    used = _assign(found, properties, text, slots) if found else set()
    for each in properties:
        if each.name not in slots:
            slot = _currency_slot(each, found) or _pattern_slot(each, text[:MAX_CHARS], slots)
            if slot is not None:
                slots[each.name] = slot
    names = {each.name for each in properties}
    left = [thing for n, thing in enumerate(found) if n not in used and not _covered(thing, slots)]
    for thing in left:
        slots[_free_name(thing.kind, names | slots.keys())] = _slot(thing, thing.value)
    return slots


def _assign(found: Sequence[Found], properties: Sequence[Property], text: str, slots: dict[str, Slot]) -> set[int]:
    """Fill `slots`, the best pair first; the indexes of what was used."""
    pairs = sorted(_pairs(found, properties, text, slots), key=lambda pair: pair[:3])
    used: set[int] = set()
    items: dict[int, list[tuple[int, Any]]] = {}
    for _, n_found, n_property, value in pairs:
        each = properties[n_property]
        if n_found in used or each.name in slots or len(items.get(n_property, ())) >= each.n_items[1]:
            continue
        used.add(n_found)
        if each.is_array and value in [other for _, other in items.get(n_property, ())]:
            continue  # said twice
        if each.is_array:
            items.setdefault(n_property, []).append((n_found, value))
        else:
            slots[each.name] = _slot(found[n_found], value)
    for n_property, values in items.items():
        if len(values) < properties[n_property].n_items[0]:
            used -= {n for n, _ in values}
            continue
        slots[properties[n_property].name] = _list_slot([(found[n], value) for n, value in sorted(values)])
    return used


def _pairs(
    found: Sequence[Found], properties: Sequence[Property], text: str, slots: Mapping[str, Slot]
) -> Iterator[Pair]:
    n_mute = sum(each.is_mute for each in properties)
    for n_property, each in enumerate(properties):
        if each.name in slots:
            continue
        for n_found, thing in enumerate(found):
            score = _score(each, thing, text, n_mute == 1)
            if score <= 0:
                continue
            value = value_for(thing, each.schemas)
            if value is not None:
                yield -score, n_found, n_property, value


def _score(wanted: Property, found: Found, text: str, by_type: bool) -> float:
    """How well a thing fits a property, 0 not at all; `by_type`: only one property takes any number."""
    score = wanted.kinds.get(found.kind, 0.0)
    for kind, weight in wanted.kinds.items():
        if _has_form_of(kind, found):
            score = max(score, weight * _NEAR.get(kind, {}).get(found.kind, 0.0))
    if not wanted.kinds:
        score = _by_schema(wanted, found, by_type)
    elif score > 0 and found.kind in ("amount", "quantity", "number") and _is_text(wanted):
        score *= 0.5
    if score <= 0:
        return 0.0
    before = text[max(0, found.start - _CUE_CHARS) : found.start].lower()
    if any(len(word) > 2 and word in before for word in wanted.words):
        score += _CUE
    if wanted.place and found.kind == "date":
        begins, ends = _BEGINS.search(before), _ENDS.search(before)
        score += _PLACE * (-wanted.place if begins else wanted.place if ends else 0)
    return score


def _has_form_of(kind: EntityKind, found: Found) -> bool:
    """Whether a plain number may be an id or a phone: some digits in a row."""
    least = _LEAST_DIGITS.get(kind, 0)
    return not least or (found.kind == "number" and found.text.isdecimal() and len(found.text) >= least)


def _by_schema(wanted: Property, found: Found, by_type: bool) -> float:
    """For a property whose name says nothing: by its pattern or, for numbers only, by its type."""
    for schema in wanted.schemas:
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and (matches(pattern, str(found.value)) or matches(pattern, found.text)):
            return _PATTERN
        if by_type and wanted.is_mute and found.kind in _BY_TYPE:
            return _BY_TYPE[found.kind]
    return 0.0


def _is_text(wanted: Property) -> bool:
    return bool(wanted.schemas) and all("string" in types_of(schema) for schema in wanted.schemas)


def _enum_slots(properties: Sequence[Property], text: str) -> dict[str, Slot]:
    slots: dict[str, Slot] = {}
    wanted = [each for each in properties if each.options]
    if wanted:
        view = fold(text[:MAX_CHARS]).lower()
        if len(view) != len(text[:MAX_CHARS]):  # İ becomes two characters
            view = fold(text[:MAX_CHARS])
        for each in wanted:
            slot = _enum_slot(each, view, text)
            if slot is not None:
                slots[each.name] = slot
    return slots


def _enum_slot(wanted: Property, view: str, text: str) -> Slot | None:
    """The longest option that stands in the text as a whole word; the earliest of equals."""
    best: tuple[int, int, str] | None = None
    for option, forms in wanted.options:
        span = _word_span(option, forms, view, text)
        if span and (best is None or (span[0] - span[1], span[0]) < best[:2]):
            best = (span[0] - span[1], span[0], option)
    if best is None or value_for(Found("id", best[2], best[2], 0, 0), wanted.schemas) != best[2]:
        return None
    if wanted.is_array and not wanted.n_items[0] <= 1 <= wanted.n_items[1]:
        return None
    start, end = best[1], best[1] - best[0]
    return Slot("enum", [best[2]] if wanted.is_array else best[2], text[start:end], start, end)


def _word_span(option: str, forms: Sequence[str], view: str, text: str) -> tuple[int, int] | None:
    for form in forms:
        start = -1
        for _ in range(_MAX_TRIES):
            start = view.find(form, start + 1)
            if start < 0:
                break
            end = start + len(form)
            # a letter on its own, such as a size, has to be written as it is
            if _is_word(view, start, end) and (len(form) > 1 or text[start:end] == option):
                return start, end
    return None


def _is_word(view: str, start: int, end: int) -> bool:
    before, behind = view[start - 1 : start], view[end : end + 1]
    if view[start].isascii() and before.isascii() and (before.isalnum() or before in ("_", "'")):
        return False
    return not (view[end - 1].isascii() and behind.isascii() and (behind.isalnum() or behind in ("_", "'")))


def _currency_slot(wanted: Property, found: Sequence[Found]) -> Slot | None:
    """A property named currency takes that of the first amount."""
    if "currency" not in wanted.words or "amount" in wanted.words:
        return None
    for each in found:
        if each.kind == "amount" and each.unit:
            value = value_for(Found("id", each.unit, each.unit, each.start, each.end), wanted.schemas)
            if value is not None:
                return _slot(each, value)
    return None


def _pattern_slot(wanted: Property, text: str, slots: Mapping[str, Slot]) -> Slot | None:
    """The first word of the text that a pattern matches wholly and that is not used yet."""
    patterns = [each for each in wanted.schemas if isinstance(each.get("pattern"), str)]
    if not patterns or wanted.is_array:
        return None
    for token, _ in zip(_TOKEN.finditer(text), range(_MAX_TOKENS), strict=False):
        start, end = token.start(), token.start() + len(token.group().rstrip("._@#/+-"))
        words = text[start:end]
        if any(slot.start < end and start < slot.end for slot in slots.values()):
            continue
        value = value_for(Found("id", words, words, start, end), tuple(patterns))
        if value is not None:
            return Slot("pattern", value, words, start, end)
    return None


def _covered(found: Found, slots: Mapping[str, Slot]) -> bool:
    named = [slot for slot in slots.values() if slot.kind in ("enum", "pattern")]
    return any(slot.start < found.end and found.start < slot.end for slot in named)


def _free_name(kind: str, taken: set[str]) -> str:
    if kind not in taken:
        return kind
    return next(name for n in range(2, len(taken) + 3) if (name := f"{kind}_{n}") not in taken)


def _slot(found: Found, value: Any) -> Slot:
    return Slot(found.kind, value, found.text, found.start, found.end, found.unit, found.resolved)


def _list_slot(items: Sequence[tuple[Found, Any]]) -> Slot:
    first, last = items[0][0], items[-1][0]
    words = ", ".join(found.text for found, _ in items)
    return Slot(first.kind, [value for _, value in items], words, first.start, last.end, first.unit, first.resolved)

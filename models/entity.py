"""Entities: what was found in an utterance, and what became of it under a capability's schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

EntityKind = Literal["url", "email", "phone", "date", "amount", "id", "quantity", "number"]


@dataclass(frozen=True, slots=True)
class Found:
    """Something in a text that has a value of its own.

    Attributes:
        kind: what it is.
        value: a number for amounts, quantities and numbers; ISO 8601 for dates; else a string.
        text: the words it came from, exactly.
        start: offset of the first character in the text it was looked for in.
        end: offset behind the last one.
        unit: ISO 4217 code of an amount, unit or classifier of a quantity, grain of a date (`minute day week month
            quarter year`: the value is the first instant of the period); None where it has none.
        resolved: for dates the ISO 8601 date, or the time with its offset; None for the rest.
    """

    kind: EntityKind
    value: int | float | str
    text: str
    start: int
    end: int
    unit: str | None = None
    resolved: str | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """The value for a property of an `input_schema`, or for a kind where no property fits.

    Attributes:
        kind: what was found; `enum` and `pattern` where the schema itself named it.
        value: as the property's type wants it; a list for an array.
        text: the words it came from; those of an array's items are joined by a comma and a blank.
        start: offset of the first word.
        end: offset behind the last one.
        unit: as in `Found`.
        resolved: as in `Found`.
    """

    kind: EntityKind | Literal["enum", "pattern"]
    value: Any
    text: str
    start: int
    end: int
    unit: str | None = None
    resolved: str | None = None

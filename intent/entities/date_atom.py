"""Atom: a pattern of words that say something of a date, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from intent.entities.date_part import Part
from intent.rules import compile_pattern

Groups = Sequence[str | None]
Read = Callable[[Groups, datetime], Part | None]


@dataclass(frozen=True, slots=True)
class Atom:
    """A pattern and its reading.

    Attributes:
        source: RE2; one group holds the words that count, the others are what `read` gets.
        read: from the other groups and now to what they say; None if it is no date after all.
        after: RE2 that has to match what follows.
        not_after: RE2 that must not.
        not_before: RE2 that must not match up to the end of what stands before.
        core: number of the group with the words that count.
    """

    source: str
    read: Read
    after: str = ""
    not_after: str = ""
    not_before: str = ""
    core: int = 1
    pattern: Any = field(init=False, repr=False)
    _after: Any = field(init=False, repr=False)
    _not_after: Any = field(init=False, repr=False)
    _not_before: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "pattern", compile_pattern(self.source))
        set_field(self, "_after", compile_pattern(f"^(?:{self.after})") if self.after else None)
        set_field(self, "_not_after", compile_pattern(f"^(?:{self.not_after})") if self.not_after else None)
        set_field(self, "_not_before", compile_pattern(f"(?:{self.not_before})$") if self.not_before else None)

    def stands_in(self, before: str, behind: str) -> bool:
        """Whether the neighbourhood allows it; both strings are short."""
        return (
            (self._after is None or self._after.search(behind) is not None)
            and (self._not_after is None or self._not_after.search(behind) is None)
            and (self._not_before is None or self._not_before.search(before) is None)
        )

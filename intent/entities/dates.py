"""Dates: the dates and times in a text, resolved against a given now.

RE2 finds the words (linear time), dateutil computes the dates. dateparser was measured and left: it takes 0.2 to 28 ms
a phrase where this takes some 0.1, resolves a third of the Chinese phrases, and gives "yesterday" the time of now.

What the words leave open is decided so: a date without a year is the last such date if that was within four months,
else the coming one; a day of the month is the nearest, a bare weekday the coming one; "next Tuesday" and 下周二 are
those of the next week (weeks begin on Monday); 1 to 6 o'clock without a word for the time of day are in the afternoon;
a time without a day is today; 03/05/2024 is in March; a part of a day (tomorrow morning) is its day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from intent.entities.date_atom import Atom
from intent.entities.date_chinese import ATOMS as CHINESE
from intent.entities.date_chinese import BARE_HOUR_ENDS
from intent.entities.date_english import ATOMS as ENGLISH
from intent.entities.date_part import Part, join, resolve
from intent.entities.matching import MAX_MATCHES
from intent.rules import compile_pattern
from models.entity import Found

_OPEN_GROUP = re.compile(r"(?<!\\)\((?!\?)")


def _alternatives(atoms: Sequence[Atom], opening: str) -> str:
    """All sources as one without their groups, each between `opening` and a parenthesis."""
    return "|".join(f"{opening}{_OPEN_GROUP.sub('(?:', atom.source)})" for atom in atoms)


_ANY = compile_pattern(_alternatives((*ENGLISH, *CHINESE), "(?:"))
_WHICH_ENGLISH = compile_pattern(_alternatives(ENGLISH, "("))
_WHICH_CHINESE = compile_pattern(_alternatives(CHINESE, "("))
_GAP = compile_pattern(r"\s{0,2},?\s{0,2}(?:(?:at|on|in the|around|about|of|@|的)\s{0,2})?")
_BARE_HOUR = compile_pattern(BARE_HOUR_ENDS)
_NEIGHBOURHOOD = 12
_MAX_GAP = 12

Placed = tuple[int, int, Part]


def find_dates(text: str, now: datetime) -> list[Found]:
    """Dates and times, in their order.

    Args:
        text: as `fold` gives it.
        now: aware; its time zone is the one that words such as "5pm" are meant in.

    >>> from datetime import UTC
    >>> [(found.text, found.value) for found in find_dates("by 5pm tomorrow", datetime(2024, 3, 5, 9, tzinfo=UTC))]
    [('5pm tomorrow', '2024-03-06T17:00:00+00:00')]
    """
    placed: list[Placed] = []
    for atom in _atoms(text, now):
        if placed:
            start, end, before = placed[-1]
            both = _joined(text[end : atom[0]], before, atom[2])
            if both is not None:
                placed[-1] = (start, atom[1], both)
                continue
        placed.append(atom)
    found = (_found(text, each, now) for each in placed)
    return [each for each in found if each is not None]


def _atoms(text: str, now: datetime) -> Iterator[Placed]:
    position = 0
    for _ in range(MAX_MATCHES):
        match = _ANY.search(text, position)
        if match is None:
            return
        atom = _read(text, match.start(), match.end(), now)
        # words that turn out to say nothing may hide others: "at 3" in "at 3 pm"
        position = match.start() + 1 if atom is None else match.end()
        if atom is not None:
            yield atom


def _read(text: str, start: int, end: int, now: datetime) -> Placed | None:
    words = text[start:end]
    which, atoms = (_WHICH_ENGLISH, ENGLISH) if words.isascii() else (_WHICH_CHINESE, CHINESE)
    whole = which.fullmatch(words)
    first = next(n for n, group in enumerate(whole.groups()) if group is not None) if whole else len(atoms)
    for atom in atoms[first:]:
        read = _read_as(atom, text, start, end, now)
        if read is not None:
            return read
    return None


def _read_as(atom: Atom, text: str, start: int, end: int, now: datetime) -> Placed | None:
    words = text[start:end]
    match = atom.pattern.fullmatch(words)
    if match is None:
        return None
    core_start, core_end = start + match.start(atom.core), start + match.end(atom.core)
    before, behind = text[max(0, start - _NEIGHBOURHOOD) : start], text[end : end + _NEIGHBOURHOOD]
    if not _stands_alone(text, core_start, core_end) or not atom.stands_in(before, behind):
        return None
    groups = match.groups()
    part = atom.read((*groups[: atom.core - 1], *groups[atom.core :]), now)
    if part is None:
        return None
    if part.is_loose and part.clock and not words.isascii() and _tells_time(words, before, behind):
        part = replace(part, is_loose=False)
    if text[core_end - 1] == "." and text[core_end - 3 : core_end - 2] != ".":  # not the last one of p.m.
        core_end -= 1
    return core_start, core_end, part


def _tells_time(words: str, before: str, behind: str) -> bool:
    """Whether 三点 is an hour, and not three points."""
    return words[0] not in "一1" and (
        before.endswith(("改到", "推迟到", "提前到")) or _BARE_HOUR.search(behind) is not None
    )


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether digits at its ends are no part of a longer token such as 2.1.0, 24/7, A-10 or 10:30:00:00."""
    if start and text[start].isdigit():
        before = text[start - 1]
        if before in "./:_" or (before.isascii() and before.isalnum()):
            return False
        if before == "-" and start > 1 and "-" in text[start:end] and text[start - 2].isalnum():
            return False
    if end < len(text) and (text[end - 1].isdigit() or text[end - 1].isascii()):
        behind = text[end]
        if behind == "_" or (behind.isascii() and behind.isalnum()):
            return False
        if behind in "-/:." and text[end - 1].isdigit() and text[end + 1 : end + 2].isdigit():
            return behind == "-" and "-" not in text[start:end]
    return True


def _joined(gap: str, first: Part, second: Part) -> Part | None:
    if len(gap) > _MAX_GAP or _GAP.fullmatch(gap) is None:
        return None
    return join(first, second)


def _found(text: str, placed: Placed, now: datetime) -> Found | None:
    start, end, part = placed
    if part.is_loose:
        return None
    resolved = resolve(part, now)
    if resolved is None:
        return None
    iso, grain = resolved
    return Found("date", iso, text[start:end], start, end, grain, iso)

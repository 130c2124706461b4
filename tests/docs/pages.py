"""The pages of the documentation, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

_HEADING = re.compile(r"^#+ (.*)$")
_FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Example:
    """A fenced block.

    Attributes:
        page: file name.
        language: first word behind the fence.
        kind: second word; "" where there is none.
    """

    page: str
    language: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.language} {self.kind} {self.text[:20]!r}"


def page(name: str) -> str:
    """The text of a page in docs/."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", text)


def sections(text: str) -> dict[str, str]:
    """Heading → what stands under it, up to the next heading of any level."""
    found: dict[str, str] = {}
    heading = ""
    for line in prose(text).splitlines():
        match = _HEADING.match(line)
        if match:
            heading = match[1].strip("`")
            assert heading not in found, f"{heading!r} stands twice"
            found[heading] = ""
        elif heading:
            found[heading] += line + "\n"
    return found


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows, heads left out."""
    lines = text.splitlines()
    body = [line for line, below in pairwise([*lines, ""]) if line.startswith("|") and not below.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body if not line.startswith("|---")]


def named(text: str) -> list[str]:
    """What stands as code in the first column of a text's tables, in order."""
    return [name for row in rows(text) for name in _CODE.findall(row[0])]


def code(text: str) -> set[str]:
    """All that stands as code."""
    return set(_CODE.findall(prose(text)))


def examples() -> Iterator[Example]:
    """All fenced blocks of all pages."""
    for path in PAGES:
        for match in _FENCE.finditer(path.read_text(encoding="utf-8")):
            language, _, kind = match[1].partition(" ")
            yield Example(path.name, language, kind.strip(), match[2])


def anchors(text: str) -> set[str]:
    """What links may point to in a page, as the usual renderers name it."""
    headings = [match[1] for line in prose(text).splitlines() if (match := _HEADING.match(line))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

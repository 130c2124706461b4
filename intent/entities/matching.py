"""Matching: how often a pattern is looked for in one text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

MAX_MATCHES = 100
"""RE2 takes linear time for a match; this bounds how many of them a text can cost."""


def matches_of(pattern: Any, text: str) -> Iterator[Any]:
    """The first matches of a compiled pattern in a text."""
    return islice(pattern.finditer(text), MAX_MATCHES)

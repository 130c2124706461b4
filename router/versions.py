"""Agent versions: order and ranges, as in semver.org 2.0.0 and npm's range notation."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from semantic_version import NpmSpec, Version

_COMMA = re.compile(r"\s*,\s*")


@lru_cache(maxsize=4096)
def parse(version: str) -> Any:
    """The version as an object that compares by precedence."""
    return Version(version)


@lru_cache(maxsize=4096)
def admits(wanted: str, version: str) -> bool:
    """Whether the range `wanted` admits `version`.

    >>> admits(">=2", "1.2.0"), admits("^1.2", "1.9.0"), admits(">=1.0, <2", "1.4.0")
    (False, True, True)
    """
    return bool(NpmSpec(_COMMA.sub(" ", wanted)).match(parse(version)))

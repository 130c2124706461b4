"""Agent versions: order and ranges, as in semver.org 2.0.0 and npm's range notation."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from semantic_version import NpmSpec, Version

_COMMA = re.compile(r"\s*,\s*")
_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")


@lru_cache(maxsize=4096)
def parse(version: str) -> Any:
    """The version as an object that compares by precedence."""
    return Version(version)


def order(version: str) -> tuple[Any, str]:
    """Sorts versions, older ones first; those that differ only in what does not count for precedence, by their text.

    >>> sorted(["1.10.0", "1.9.0+b", "1.9.0", "1.9.0+a", "1.9.0-rc.1"], key=order)
    ['1.9.0-rc.1', '1.9.0', '1.9.0+a', '1.9.0+b', '1.10.0']
    """
    return (parse(version).precedence_key, version)


@lru_cache(maxsize=4096)
def admits(wanted: str, version: str) -> bool:
    """Whether the range `wanted` admits `version`.

    >>> admits(">=2", "1.2.0"), admits("^1.2", "1.9.0"), admits(">=1.0, <2", "1.4.0")
    (False, True, True)
    """
    # "1.02" passes for a range of numbers and means 1.2; npm's own grammar refuses it
    return bool(NpmSpec(_LEADING_ZEROS.sub("", _COMMA.sub(" ", wanted))).match(parse(version)))

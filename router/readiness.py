"""Readiness: whether the service can decide, and what is amiss although it can."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Readiness:
    """What `/readyz` tells.

    Attributes:
        ready: set once the first snapshot is there.
        problems: by part, what is wrong now (a rejected card file, a stopped task).
    """

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    problems: dict[str, str] = field(default_factory=dict)

    def report(self, part: str, message: str) -> None:
        """Something is wrong with a part."""
        self.problems[part] = message

    def clear(self, part: str) -> None:
        """It is well again."""
        self.problems.pop(part, None)

"""Replayed: what came of a replay."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["equal", "differs", "erased", "not_replayable"]

PARTS = (
    "record",
    "request",
    "policy",
    "cards",
    "index",
    "encoder",
    "classifier",
    "reading",
    "weights",
    "live",
    "draws",
    "ranking",
    "plan",
    "answer",
)
"""What is compared, in this order."""

TAKEN = ("reading", "llm", "ticket")
"""What may be taken as it was sealed: a reading whose text or classifiers are not kept, and what others gave."""


class DifferentError(Exception):
    """A part is not what was sealed.

    Attributes:
        part: one of PARTS.
        detail: what differs, in words.
    """

    def __init__(self, part: str, detail: str) -> None:
        super().__init__(f"{part}: {detail}")
        self.part = part
        self.detail = detail


class NotReplayableError(Exception):
    """Something that is needed is not there any more; the message says what."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay.

    Attributes:
        part: the first part that differs; None under any other verdict.
        detail: what differs, or what is missing; None where all is equal.
        checked: the parts that were recomputed and found equal.
        taken: the parts that could not be recomputed, and were taken as they were sealed.
        is_partial: whether there were more agents than are sealed.
    """

    decision_id: str
    verdict: Verdict
    part: str | None = None
    detail: str | None = None
    checked: tuple[str, ...] = ()
    taken: tuple[str, ...] = field(default=())
    is_partial: bool = False

    def told(self) -> dict[str, Any]:
        """As a JSON value."""
        return {
            "decision_id": self.decision_id,
            "verdict": self.verdict,
            "part": self.part,
            "detail": self.detail,
            "checked": list(self.checked),
            "taken": list(self.taken),
            "partial": self.is_partial,
        }

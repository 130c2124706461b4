"""Subjects: whose data it is, a caller or a session, and what of it is kept, shown and erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from models.events import DecisionRow, EventRow, OutcomeRow, UsageRow, WeightRow
from models.queue import TicketRow
from models.review import StoredReview

ERASED_CALLER = "[erased]"
"""In whose name usage stands whose caller was erased; no agent can be called so."""


class Subject(NamedTuple):
    """A caller, by the name of its key or the agent id in whose name it asked, or a session.

    Attributes:
        name: all three are looked for.
        key: only what was asked with the key of that name; None means with any.
    """

    name: str
    key: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all that stands under the name belongs to it, sums included."""
        return self.key is None or self.key == self.name


class SubjectRecord(NamedTuple):
    """A decision with all that hangs on it.

    Attributes:
        tickets: each with its request's JSON text.
    """

    decision: DecisionRow
    outcomes: Sequence[OutcomeRow]
    reviews: Sequence[StoredReview]
    events: Sequence[EventRow]
    tickets: Sequence[tuple[TicketRow, str]]


class SubjectSums(NamedTuple):
    """What is kept under a caller's name beside its records; at most so many rows as were asked for."""

    usage: Sequence[UsageRow]
    evidence: Sequence[WeightRow]


class Erased(NamedTuple):
    """How many rows were erased; those of `usage` and `evidence` were added to others."""

    decisions: int = 0
    outcomes: int = 0
    reviews: int = 0
    events: int = 0
    tickets: int = 0
    others: int = 0
    usage: int = 0
    evidence: int = 0

    def plus(self, other: Erased) -> Erased:
        """Both together."""
        return Erased._make(one + another for one, another in zip(self, other, strict=True))


class SubjectStore(Protocol):
    """All tables, seen from a subject."""

    async def records(self, subject: Subject, after: str, limit: int) -> Sequence[SubjectRecord]:
        """The subject's decisions with an id greater than `after`, in the order of their ids."""

    async def sums(self, subject: Subject, limit: int) -> SubjectSums:
        """What is kept under its name beside the records."""

    async def erase_records(self, subject: Subject, at_ms: int, limit: int) -> Erased:
        """Erase at most `limit` decisions with all that hangs on them; their seals stay, noted as erased."""

    async def erase_name(self, subject: Subject) -> Erased:
        """Erase what else stands under its name; sums stay, without it."""

    async def rewrite_snapshot(self, version: int, body: bytes) -> None:
        """Put another body in the place of that of a snapshot of the weights."""

    async def give_back(self) -> None:
        """Let nothing of what was erased lie about in the files."""

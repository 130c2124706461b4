"""What the policy's ages are carried out on, and where imports are noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from models.events import LearnerRow, WeightRow


class RetentionStore(Protocol):
    """Drops what is old, so many rows at a time; what a method did is durable once it has returned."""

    async def redaction_key(self) -> bytes:
        """The key of the digests of this store, made at the first call."""

    async def drop_decisions(self, before_ms: int, at_ms: int, limit: int) -> int:
        """Drop at most `limit` decisions made before an instant; their seals stay, noted as erased."""

    async def drop_outcomes(self, before_ms: int, limit: int) -> int:
        """Drop at most `limit` outcomes that came before an instant."""

    async def drop_events(self, before_ms: int, limit: int) -> int:
        """Drop at most `limit` rows of events that happened before an instant."""

    async def drop_reviews(self, before_ms: int, accepted_before_ms: int, limit: int) -> int:
        """Drop at most `limit` corrections that came before an instant, accepted ones before one of their own."""

    async def compact_tickets(self, limit: int) -> int:
        """Empty the requests of at most `limit` tickets that came to their end."""

    async def oldest_decision(self) -> int | None:
        """When the oldest decision was made that is kept (epoch, milliseconds); None where there is none."""

    async def give_back(self, n_pages: int) -> int:
        """Give at most so many free pages back to the file system; how many pages are still free then."""


class ImportStore(Protocol):
    """Where it is noted which files of past outcomes were imported."""

    async def has(self, sha256: str) -> bool:
        """Whether a file with this content was imported."""

    async def put(self, sha256: str, rows: Sequence[WeightRow | LearnerRow], at_ms: int) -> bool:
        """Add what a file taught, all in one transaction; False, and nothing is done, where it was imported before."""


class Dropped(NamedTuple):
    """How many rows were dropped; `tickets` only lost their requests."""

    decisions: int = 0
    outcomes: int = 0
    events: int = 0
    reviews: int = 0
    tickets: int = 0
    generations: int = 0

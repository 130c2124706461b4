"""Reviews: corrections that callers sent, which teach nothing before somebody has accepted them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from models.answer import Answer


class ReviewState(StrEnum):
    """Where a correction stands; the last two are its ends."""

    WAITING = "waiting"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


Verdict = Literal[ReviewState.ACCEPTED, ReviewState.REJECTED]
"""What becomes of a correction that waits."""


class StoredReview(NamedTuple):
    """A correction as the store has it; instants in milliseconds since the epoch.

    Attributes:
        caller: name of the key that asked, else the agent in whose name the decision was asked.
        text: the utterance, as far as it is kept; None where there is none.
        intent: the one that was read.
        correct_intent: the one that was meant, as the caller says.
        decided_at: None while it waits.
        decided_by: name of the key that decided it; "" while keys are off, None while it waits.
        n_agree: other callers who say the same of the same text, in this namespace, and were not rejected.
    """

    review_id: str
    decision_id: str
    caller: str
    namespace: str
    text: str | None
    intent: str | None
    correct_intent: str
    created_at: int
    state: ReviewState
    decided_at: int | None
    decided_by: str | None
    n_agree: int = 0


class ReviewFilter(NamedTuple):
    """Which corrections are meant; None means any.

    Attributes:
        intent: read or meant.
    """

    namespaces: frozenset[str] | None = None
    state: ReviewState | None = None
    intent: str | None = None
    caller: str | None = None


class ReviewStore(Protocol):
    """Where corrections are; they come there with the other rows of the journal."""

    async def page(self, wanted: ReviewFilter, after: str, limit: int) -> Sequence[StoredReview]:
        """Corrections with an id greater than `after`, in the order of their ids."""

    async def n_waiting(self, wanted: ReviewFilter) -> int:
        """How many wait, whatever `wanted.state`."""

    async def n_refused(self) -> int:
        """How many were not kept, as too many of their caller waited."""

    async def get(self, review_id: str) -> StoredReview | None:
        """One correction."""

    async def decide(self, review_id: str, verdict: Verdict, decided_by: str, at_ms: int) -> StoredReview | None:
        """The correction after the verdict; None where there is none. Raises ConflictError after the other verdict."""


class Review(Answer):
    """A correction as it is shown; the fields are those of `StoredReview`."""

    review_id: str
    decision_id: str
    caller: str
    namespace: str
    text: str | None = None
    intent: str | None = None
    correct_intent: str
    created_at: int
    state: ReviewState
    decided_at: int | None = None
    decided_by: str | None = None
    n_agree: int = 0


class ReviewPage(Answer):
    """Some of the corrections, in the order of their ids, which is that in which they came.

    Attributes:
        n_waiting: how many wait in all, whatever the page and the state asked for.
        n_refused: how many were ever not kept, in all namespaces, as too many of their caller waited.
        next: give it as `after` to read on; None at the end.
    """

    reviews: list[Review]
    n_waiting: int
    n_refused: int
    next: str | None = None

"""Promotion: how far new classifiers have come on their way into force."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field

from models.answer import Answer
from models.contract import Contract
from models.events import ShadowRow

Epoch = Annotated[int, Field(ge=0, le=2**53)]


class PromotionStage(StrEnum):
    """How far it has come: the first three are the way, the others are ends."""

    SHADOW = "shadow"
    CANARY = "canary"
    FULL = "full"
    SUPERSEDED = "superseded"
    ENDED = "ended"
    ROLLED_BACK = "rolled_back"


class PromotionStep(Contract):
    """One change of the stage.

    Attributes:
        at_ms: epoch, milliseconds.
        by: name of the key or of the command that did it; "service" where the watch did.
        why: what it rested on, in words.
    """

    stage: Annotated[PromotionStage, Field(strict=False)]
    at_ms: Epoch
    by: str
    why: str


class Baseline(Contract):
    """Rewards of the classifiers before, over utterances; what a candidate is measured by.

    Attributes:
        n: outcomes.
        mean: 0..1.
        deviation: standard deviation of one reward, as it counts.
        skewness: of one reward; negative where failures are rare.
    """

    n: Annotated[int, Field(ge=0)]
    mean: Annotated[float, Field(ge=0, le=1)]
    deviation: Annotated[float, Field(gt=0, le=1)]
    skewness: float = 0.0


class PromotionBody(Contract):
    """What the store keeps of a promotion beside its columns.

    Attributes:
        history: all stages it has been in, oldest first.
        encoder_id: the encoder of its vectors; None where it does without.
        baseline: taken when it first had an effect; None before.
        after: outcomes with a larger number count for its watch; None before it had an effect.
        full_after: the same from the stage `full` on.
        is_watched: whether a drop of rewards takes it back by itself.
        superseded_by: the promotion that took its place; None where none did.
    """

    history: Annotated[tuple[PromotionStep, ...], Field(strict=False)] = ()
    encoder_id: str | None = None
    baseline: Baseline | None = None
    after: Annotated[int, Field(ge=0)] | None = None
    full_after: Annotated[int, Field(ge=0)] | None = None
    is_watched: bool = False
    superseded_by: int | None = None


class Promotion(Answer):
    """Classifiers that are, or were, on their way into force.

    Attributes:
        promotion_id: rises; 0 where the store has not given one yet.
        folder: the model folder as it was named; what serves is a copy beside the store.
        digest: of the folder's manifest and exam; name of the copy.
        created_at: epoch, milliseconds; so is `updated_at`.
        body: what belongs to its stage.
    """

    promotion_id: int
    folder: str
    digest: str
    stage: PromotionStage
    created_at: Epoch
    updated_at: Epoch
    body: PromotionBody = PromotionBody()


class Change(NamedTuple):
    """A promotion before and after a change."""

    before: Promotion
    after: Promotion


class ReadOutcome(NamedTuple):
    """An outcome of the first attempt of a decision on an utterance, with what judging its reading needs.

    Attributes:
        sequence: rises with each outcome that is stored; an amendment has a new one.
        namespace: of the request.
        body: the outcome's JSON text.
        charged: to whom (`feedback.attribution.Party`).
        intent: the one that was routed by.
        slice_ms: the time that the plan gave the attempt.
        promotion_id: whose classifiers read the utterance; None for those that no promotion brought.
        received_at: epoch, milliseconds.
        caller: name of the key that asked, else the agent in whose name it was asked; "" where there is neither.
        corrected: the intent that was meant, by the newest accepted correction; None where there is none.
        waiting: the one by the newest correction that waits; None where there is none, and where it was not asked for.
    """

    sequence: int
    decision_id: str
    namespace: str
    body: str
    charged: str
    intent: str | None
    slice_ms: int
    promotion_id: int | None
    received_at: int
    caller: str = ""
    corrected: str | None = None
    waiting: str | None = None


Cursor = tuple[int, str]
"""Instant of the verdict (epoch, milliseconds) and id of the last correction read."""


class PromotionStore(Protocol):
    """Where promotions are. What a method did is durable once it has returned."""

    async def load(self) -> Sequence[Promotion]:
        """All of them, oldest first."""

    async def add(self, promotion: Promotion) -> Promotion:
        """Store a new one; with its id. Raises ConflictError where another candidate is on its way."""

    async def change(self, changes: Sequence[Change]) -> bool:
        """Make all changes, or none where one of the promotions is no longer as it was before."""

    async def newest_outcome(self) -> int:
        """Number of the newest outcome; 0 where there is none."""

    async def outcomes(self, after: int, limit: int) -> tuple[Sequence[ReadOutcome], int]:
        """Outcomes among the next `limit` with a number > `after`, in order; the number to go on from."""

    async def shadows(
        self, promotion_id: int, after: str, limit: int
    ) -> Sequence[tuple[ShadowRow, ReadOutcome | None]]:
        """At most `limit` shadows of a promotion with their newest outcomes, of decisions with an id > `after`."""

    async def corrected(self, since_ms: int, after: Cursor, limit: int) -> tuple[Sequence[ReadOutcome], Cursor]:
        """Newest outcomes of decisions with one of the next `limit` accepted corrections; the place to go on from.

        Only corrections made at `since_ms` (epoch) or later; in the order of their acceptance.
        """

    async def n_shadows(self, promotion_id: int) -> int:
        """How many shadows it has."""

    async def encoder_id(self) -> str | None:
        """The encoder of the newest decision; None where there is none."""

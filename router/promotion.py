"""Lanes: which classifiers read an utterance: those in force, or for some sessions those of a candidate."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from feedback.success_slates import Slates
from intent.intake import Intake
from router.case import Case

FLOOR_WHILE_QUALIFYING = 0.1
"""Share of the decisions that explore while a candidate needs them to be compared by."""


class Lane(NamedTuple):
    """Classifiers and the promotion that brought them.

    Attributes:
        promotion_id: None where no promotion did.
        heads: success heads that came with them; None where there are none.
    """

    intake: Intake
    promotion_id: int | None = None
    heads: Slates | None = None


class Lanes:
    """Who reads what; swapped by one assignment.

    Args:
        intake: reads whatever no promotion takes over.
        heads: success heads that came with its classifiers; None where there are none.
    """

    def __init__(self, intake: Intake, heads: Slates | None = None) -> None:
        self._own = Lane(intake, heads=heads)
        self._main = self._own
        self._canary: Lane | None = None
        self._share = 0.0
        self._shadow: Lane | None = None

    @property
    def own(self) -> Intake:
        """What reads where no promotion has an effect."""
        return self._own.intake

    @property
    def shadow(self) -> Lane | None:
        """The candidate that reads beside the others without an effect; None where there is none."""
        return self._shadow

    def put(
        self, *, full: Lane | None = None, canary: Lane | None = None, share: float = 0.0, shadow: Lane | None = None
    ) -> None:
        """Put lanes in force; cases that are under way stay in theirs.

        Args:
            full: reads all but the canary's; None leaves them to the service's own.
            canary: reads a share of the sessions.
            share: of the canary, 0..1.
            shadow: reads without an effect.
        """
        self._main, self._canary, self._share, self._shadow = full or self._own, canary, share, shadow

    def assign(self, case: Case) -> None:
        """Give a case its lane."""
        lane, canary = self._main, self._canary
        if case.request.intent is not None:
            lane = self._own  # nothing is read
        elif canary is not None and is_canary(canary.promotion_id, _key(case), self._share):
            lane = canary
        case.intake, case.promotion_id, case.heads = lane
        case.classifier_generation = lane.intake.cascade.generation

    def intake_of(self, case: Case) -> Intake:
        """What reads a case; the service's own where it has no lane."""
        return case.intake or self._own.intake

    def floor_now(self, base: float) -> float:
        """The exploration floor that holds now: raised while a candidate qualifies, but only where there is one.

        Args:
            base: eps of the policy, 0..1; 0 explores nothing, whatever qualifies.
        """
        return max(base, FLOOR_WHILE_QUALIFYING) if self._shadow is not None and base > 0 else base


def is_canary(promotion_id: int | None, key: str, share: float) -> bool:
    """Whether a session, or a decision without one, belongs to the canary: by a hash, so that it stays so.

    >>> sum(is_canary(1, f"session-{number}", 0.1) for number in range(1000))
    108
    >>> [is_canary(1, "session-1", share) for share in (0.0, 1.0)]
    [False, True]
    """
    digest = sha256(f"{promotion_id}:{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def _key(case: Case) -> str:
    """Two callers' sessions of the same name are told apart."""
    session_id = case.request.caller.session_id
    return case.decision_id if session_id is None else f"{case.asker.caller}/{session_id}"

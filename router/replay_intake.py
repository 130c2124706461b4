"""ReplayIntake: reads an utterance again with the classifiers of the time, and compares with what was read then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from intent.cascade import Cascade
from intent.embed_pool import EmbedPool
from intent.intake import Intake
from intent.rules import Rules
from models.policy import Confidence
from models.ports import IntentSource
from models.reading import Reading
from router.case import Case
from router.promotion import Lanes
from router.replayed import DifferentError, NotReplayableError
from router.sealed_inputs import sealed_reading

_WAIT_MS = 60_000.0
_N_TRIES = 3
_NO_TIME = "no time"


@dataclass(slots=True)
class Given:
    """What was read at the time.

    Attributes:
        reading: as it was sealed; None where it was not read in time.
        why_taken: why it cannot be read again; "" where it can.
        is_read: whether it was read again, and was the same.
    """

    reading: Reading | None
    sealed: Any
    why_taken: str = ""
    is_read: bool = field(default=False, init=False)


class ReplayIntake(Intake):
    """An intake for one utterance.

    Args:
        pool: the encoder.
        cascade: the classifiers of the time.
        given: what they read then.
        inline_rows: larger indexes are searched in a worker thread.
    """

    def __init__(self, pool: EmbedPool, cascade: Cascade, given: Given, *, inline_rows: int = 20_000) -> None:
        super().__init__(pool, cascade, inline_rows=inline_rows)
        self._given = given

    async def read(
        self,
        utterance: str,
        source: IntentSource,
        *,
        rules: Rules,
        namespace: str,
        thresholds: Confidence,
        wait_ms: float,
    ) -> Reading:
        """The reading: made again where that can be done, else as it was sealed.

        Raises:
            DifferentError: it is read otherwise now.
            TimeoutError: it was not read in time then.
        """
        given = self._given
        if given.reading is None:
            raise TimeoutError
        if given.why_taken:
            return given.reading
        for _ in range(_N_TRIES):
            reading = await super().read(
                utterance, source, rules=rules, namespace=namespace, thresholds=thresholds, wait_ms=_WAIT_MS
            )
            # how long the encoder takes now is nothing that was sealed
            if not any(_NO_TIME in each for each in reading.degraded):
                break
        check_reading(reading, given.sealed)
        given.is_read = True
        return reading

    async def reread(self, reading: Reading, source: IntentSource) -> Reading:
        """The same utterance over other intents; needs its vector.

        Raises:
            NotReplayableError: the utterance was not read again.
        """
        if self._given.why_taken:
            raise NotReplayableError(f"it was read twice, and cannot be read again: {self._given.why_taken}")
        return await super().reread(reading, source)


class ReplayLanes(Lanes):
    """One lane: that of the record.

    Args:
        intake: reads.
        promotion_id: that brought its classifiers; None where none did.
        generation: the number that the classifiers had.
    """

    def __init__(self, intake: Intake, promotion_id: int | None, generation: int) -> None:
        super().__init__(intake)
        self._promotion_id = promotion_id
        self._generation = generation

    def assign(self, case: Case) -> None:
        """Give a case the lane that it had."""
        case.intake, case.promotion_id = self.own, self._promotion_id
        case.classifier_generation = self._generation


def check_reading(reading: Reading, sealed: Any) -> None:
    """Raises DifferentError where a reading is not the one that was sealed."""
    if sealed is None:
        raise DifferentError("reading", "nothing was read at the time")
    found = orjson.loads(orjson.dumps(sealed_reading(reading)))
    if found == sealed:
        return
    names = [name for name in {**found, **sealed} if found.get(name) != sealed.get(name)]
    told = ", ".join(f"{name} is {found.get(name)!r}, was {sealed.get(name)!r}" for name in names[:3])
    raise DifferentError("reading", told)


def is_hurried(sealed: Any) -> bool:
    """Whether something was left out of a reading for want of time."""
    return sealed is not None and any(_NO_TIME in each for each in sealed["degraded"])

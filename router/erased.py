"""What says of a decision without a record whether there ever was one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from models.errors import ErasedError, NotFoundError
from router.seals import Seal


class SealStore(Protocol):
    """Where seals are."""

    async def seal(self, decision_id: str) -> tuple[Seal | None, str]:
        """The seal of a decision, None where it has none, and the chain before it."""


async def missing(
    decision_id: str, seals: SealStore, otherwise: NotFoundError, may_see: Callable[[str], bool]
) -> ErasedError | NotFoundError:
    """The error that tells why a decision has no record.

    Args:
        decision_id: whose record was looked for.
        seals: a seal outlives its record.
        otherwise: where there never was one, it is there, or whoever asks could not see it while it was.
        may_see: whether records of the key of that name are seen; "" where none is known.
    """
    seal, _ = await seals.seal(decision_id)
    if seal is None or seal.erased_at is None or not may_see(seal.caller or ""):
        return otherwise
    return ErasedError(f"the record of decision {decision_id!r} was erased, or dropped at its age")

"""What says of a decision without a record whether there ever was one."""

from __future__ import annotations

from typing import Protocol

from models.errors import ErasedError, NotFoundError
from router.seals import Seal


class SealStore(Protocol):
    """Where seals are."""

    async def seal(self, decision_id: str) -> tuple[Seal | None, str]:
        """The seal of a decision, None where it has none, and the chain before it."""


async def missing(decision_id: str, seals: SealStore, otherwise: NotFoundError) -> ErasedError | NotFoundError:
    """The error that tells why a decision has no record.

    Args:
        decision_id: whose record was looked for.
        seals: a seal outlives its record.
        otherwise: where there never was one, or it is there.
    """
    seal, _ = await seals.seal(decision_id)
    if seal is None or seal.erased_at is None:
        return otherwise
    return ErasedError(f"the record of decision {decision_id!r} was erased, or dropped at its age")

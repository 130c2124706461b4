"""Seals: digests that tell whether a record is still what was written, and the chain that ties each to all before it.

What is chained is a salted digest and not the record itself: a record can be erased, salt and all, and the chain still
holds, while nobody can try out whether some guessed content was in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import orjson

from models.events import DecisionRow

GENESIS = "0" * 64
"""What comes before the first record."""

N_SALT_BYTES = 16
_N_SHORT = 16


class Seal(NamedTuple):
    """The seal of one record.

    Attributes:
        sequence: place in the chain, from 1.
        salt: hex; None once the record was erased.
        digest: `record_digest` of the record as it was written.
        chain: `chained` of the seal before and this one.
        erased_at: epoch, milliseconds; None while the record is kept.
        caller: name of the key with which an erased record was asked for, so that nobody else hears of it; None where
            keys were off or the name was erased too, and while the record itself tells it.
    """

    sequence: int
    decision_id: str
    salt: str | None
    digest: str
    chain: str
    happened_at: int
    erased_at: int | None = None
    caller: str | None = None


def record_digest(salt: str, row: DecisionRow) -> str:
    """SHA-256, in hex, of a salt and all columns of a record: of the JSON text of the list of them.

    Raises:
        ValueError: a column holds what is no text.
    """
    try:
        return sha256(orjson.dumps([salt, *row])).hexdigest()
    except TypeError as error:
        raise ValueError(f"the record of decision {row.decision_id!r} cannot be sealed: {error}") from error


def chained(before: str, decision_id: str, digest: str) -> str:
    """The chain after a record: SHA-256, in hex, of the chain before it, its id and its digest, one a line.

    >>> first = chained(GENESIS, "d1", "ab")
    >>> chained(first, "d2", "cd") == chained(GENESIS, "d2", "cd")
    False
    """
    return sha256(f"{before}\n{decision_id}\n{digest}".encode()).hexdigest()


def section_digest(*texts: bytes) -> str:
    """What tells which section of a record was altered: 64 bits of the SHA-256 of its JSON texts, in hex.

    That a record was altered at all is for `record_digest` to find; this one is kept in the record itself.
    """
    return sha256(b"\n".join(texts)).hexdigest()[:_N_SHORT]


def holds(seal: Seal, row: DecisionRow) -> bool:
    """Whether a record is the one that was sealed."""
    try:
        return seal.salt is not None and record_digest(seal.salt, row) == seal.digest
    except ValueError:
        return False


class Break(NamedTuple):
    """The first seal that is not what it should be.

    Attributes:
        sequence: its place in the chain.
        detail: what is wrong, in words.
    """

    sequence: int
    decision_id: str
    detail: str


def first_break(
    before: tuple[int, str], page: Sequence[tuple[Seal, DecisionRow | None]]
) -> tuple[tuple[int, str], Break | None]:
    """Follow the chain over a page of seals and their records.

    Args:
        before: place and chain of the seal before the page; (0, GENESIS) for the first page.
        page: seals by rising place, each with its record; None where there is none.

    Returns:
        Place and chain of the last seal that was right, and what is wrong with the one after it; None: nothing.
    """
    for seal, row in page:
        wrong = _wrong(before, seal, row)
        if wrong is not None:
            return before, Break(seal.sequence, seal.decision_id, wrong)
        before = (seal.sequence, seal.chain)
    return before, None


def _wrong(before: tuple[int, str], seal: Seal, row: DecisionRow | None) -> str | None:
    if chained(before[1], seal.decision_id, seal.digest) != seal.chain:
        gap = (
            "" if seal.sequence == before[0] + 1 else f"; the seals {before[0] + 1} to {seal.sequence - 1} are missing"
        )
        return f"it does not follow from the seal before it{gap}"
    if seal.erased_at is not None:
        return None if row is None else "its record is noted as erased, and is there"
    if row is None or seal.salt is None:
        return "its record is gone, and it is not noted as erased"
    return None if holds(seal, row) else "its record is not the one that was sealed"

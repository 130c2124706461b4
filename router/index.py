"""The index: exact nearest texts among those that are allowed, grouped by what owns them."""

from __future__ import annotations

import math
import os

# The thread count that faiss takes from OpenMP is fixed when the library is loaded; one search is one thread's work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


POOLED_ROWS = 32
"""How many of the nearest rows are pooled; rows beyond hardly add to anything."""

POOL_WIDTH = 0.05
"""How fast a row's weight fades with its distance, in cosine; fitted by benchmarks/fit_confidence.py."""

_IDENTICAL = 1 - 1e-5


def pooled(owners: Ints, similarities: Floats) -> list[tuple[int, float]]:
    """Owners by their pooled similarity, best first; ties go to the nearer row, then the smaller owner.

    Each row is evidence p = exp((cosine - 1) / POOL_WIDTH) for its owner, and independent evidence adds up as in a
    noisy or (Pearl 1988): 1 - prod(1 - p), turned back into a cosine. So one row counts as its cosine, more rows never
    make an owner worse, and an identical text (cosine 1) is never beaten by any number of weaker ones.

    >>> pooled(np.array([3, 7]), np.array([0.75, 0.5], dtype=np.float32))[0]
    (3, 0.75)

    Args:
        owners: int64, shape (n,).
        similarities: float32, shape (n,), descending; only the first POOLED_ROWS are pooled.
    """
    nearest: dict[int, float] = {}
    doubt: dict[int, float] = {}
    cosines = similarities.tolist()
    faded = np.log1p(-np.exp((np.minimum(similarities[:POOLED_ROWS], _IDENTICAL, dtype=np.float64) - 1) / POOL_WIDTH))
    for position, owner in enumerate(owners.tolist()):
        nearest.setdefault(owner, cosines[position])
        if position < POOLED_ROWS:
            doubt[owner] = doubt.get(owner, 0.0) + float(faded[position])
    scored = [(owner, _as_cosine(best, doubt.get(owner)), best) for owner, best in nearest.items()]
    scored.sort(key=lambda found: (-found[1], -found[2], found[0]))
    return [(owner, similarity) for owner, similarity, _ in scored]


def _as_cosine(best: float, doubt: float | None) -> float:
    if best >= _IDENTICAL:
        return 1.0
    if doubt is None:
        return best
    return min(_IDENTICAL, max(best, 1.0 + POOL_WIDTH * math.log(-math.expm1(doubt))))


@dataclass(frozen=True, slots=True)
class Mask:
    """Which rows of an index may be found, ready for many searches.

    Attributes:
        n_allowed: number of rows that may be found.
        selector: faiss's view of `bits`.
        bits: the packed bitmap; kept because the selector only points at it.
    """

    n_allowed: int
    selector: Any
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, allowed: Bools) -> Mask:
        """From one boolean a row, shape (n_rows,)."""
        bits = np.packbits(allowed, bitorder="little")
        return cls(int(allowed.sum()), faiss.IDSelectorBitmap(bits.size, faiss.swig_ptr(bits)), bits)


class Index:
    """Exact search by inner product over unit vectors. Built once, never changed: build beside, then swap."""

    def __init__(self, vectors: Floats) -> None:
        """Take the rows.

        Args:
            vectors: float32, shape (n_rows, dim), each row of unit length.
        """
        self.n_rows: int = vectors.shape[0]
        self.dim: int = vectors.shape[1]
        self._flat = faiss.IndexFlatIP(self.dim)
        if self.n_rows:
            self._flat.add(np.ascontiguousarray(vectors))

    def digest(self) -> str:
        """SHA-256, in hex, of the rows and their shape; reads all of them."""
        found = sha256(f"{self.n_rows} {self.dim}\n".encode())
        if self.n_rows:
            found.update(faiss.rev_swig_ptr(self._flat.get_xb(), self.n_rows * self.dim).data)
        return found.hexdigest()

    def nearest(self, vector: Floats, owners: Ints, mask: Mask, n_owners: int) -> list[tuple[int, float]]:
        """The `n_owners` owners nearest to a vector, best first; ties go to the nearer row, then the smaller owner.

        The evidence for an owner is pooled from its rows among the nearest `POOLED_ROWS` (see `pooled`); owners
        without a row among those follow by their nearest row. Rows are fetched until enough owners are among them.

        Args:
            vector: float32, shape (dim,), unit length.
            owners: int64, shape (n_rows,): who owns each row.
            mask: the rows that may be found.
            n_owners: how many owners are wanted, at least 1.

        Returns:
            (owner, similarity) pairs; fewer than `n_owners` where fewer are allowed.
        """
        wanted = min(mask.n_allowed, max(POOLED_ROWS, 4 * n_owners))
        while wanted:
            similarities, rows = self._search(vector, mask, wanted)
            found = pooled(owners[rows], similarities)
            if len(found) >= n_owners or wanted == mask.n_allowed:
                return found[:n_owners]
            wanted = min(mask.n_allowed, wanted * 4)
        return []

    def _search(self, vector: Floats, mask: Mask, n_rows: int) -> tuple[Floats, Ints]:
        everything = mask.n_allowed == self.n_rows
        parameters = None if everything else faiss.SearchParameters(sel=mask.selector)  # type: ignore[call-arg]
        similarities, rows = self._flat.search(vector[None, :], n_rows, params=parameters)
        return similarities[0], rows[0]

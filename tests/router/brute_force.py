"""Ground truth for the index: every cosine, a full sort, and the noisy-or in decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from router.index import POOL_WIDTH, POOLED_ROWS, Bools, Floats, Ints

IDENTICAL = Decimal(1) - Decimal("1e-5")


def all_owners(vectors: Floats, owners: Ints, allowed: Bools, query: Floats) -> dict[int, float]:
    """Owner → similarity over all allowed rows: the nearest POOLED_ROWS pooled, further owners by their nearest row."""
    cosines = vectors @ query
    order = [int(row) for row in np.argsort(-cosines, kind="stable") if allowed[row]]
    with localcontext(prec=60):
        doubt: dict[int, Decimal] = {}
        for row in order[:POOLED_ROWS]:
            owner = int(owners[row])
            doubt[owner] = doubt.get(owner, Decimal(1)) * (1 - _evidence(float(cosines[row])))
        found: dict[int, float] = {}
        for row in order:
            owner = int(owners[row])
            if owner in found:
                continue
            if cosines[row] >= IDENTICAL:
                found[owner] = 1.0
            elif owner in doubt:
                pooled = 1 + Decimal(str(POOL_WIDTH)) * (1 - doubt[owner]).ln()
                found[owner] = float(min(IDENTICAL, pooled))
            else:
                found[owner] = float(cosines[row])
    return found


def _evidence(cosine: float) -> Decimal:
    return ((min(Decimal(cosine), IDENTICAL) - 1) / Decimal(str(POOL_WIDTH))).exp()


def unit_rows(rng: np.random.Generator, n_rows: int, dim: int = 16, n_clusters: int = 4, spread: float = 0.3) -> Floats:
    """Rows of unit length around a few centres, so that many are near each other."""
    centres = rng.normal(size=(n_clusters, dim))
    rows = centres[rng.integers(0, n_clusters, n_rows)] + spread * rng.normal(size=(n_rows, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows, dtype=np.float32)


def at_cosine(query: Floats, cosine: float, rng: np.random.Generator) -> Floats:
    """A unit vector with that cosine to the query."""
    other = rng.normal(size=query.shape)
    other -= (other @ query) * query
    other /= np.linalg.norm(other)
    row = cosine * query.astype(np.float64) + np.sqrt(1 - cosine**2) * other
    return np.asarray(row / np.linalg.norm(row), dtype=np.float32)

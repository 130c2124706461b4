"""Latency of one search of `router.index`, by size and by how many rows are allowed."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks.report import Quantiles, Report
from router.index import Floats, Index, Mask

SIZES = (1_000, 10_000, 100_000)
DIM = 384
_ROWS_PER_OWNER = 5
_N_OWNERS = 6
_SPREAD = 0.6
"""Noise around the centre of an owner's rows, by the centre's length: rows of an owner have a cosine of about 0.7."""


def clustered(n_rows: int, dim: int, seed: int) -> Floats:
    """Unit vectors that lie around a common centre by fives, shape (n_rows, dim)."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((-(-n_rows // _ROWS_PER_OWNER), dim), dtype=np.float32)
    rows = np.repeat(centres, _ROWS_PER_OWNER, axis=0)[:n_rows]
    rows = rows + _SPREAD * generator.standard_normal((n_rows, dim), dtype=np.float32)
    unit: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def search_by_size(report: Report, n_calls: int, n_repeats: int, seed: int = 0) -> None:
    """Measure and report every size, with all rows allowed and with one in ten."""
    for n_rows in SIZES:
        vectors = clustered(n_rows, DIM, seed)
        index = Index(vectors)
        owners = np.arange(n_rows, dtype=np.int64) // _ROWS_PER_OWNER
        generator = np.random.default_rng(seed + 1)
        noise = _SPREAD * generator.standard_normal((n_calls, DIM), dtype=np.float32) / np.sqrt(np.float32(DIM))
        queries = vectors[generator.integers(n_rows, size=n_calls)] + noise
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        for name, allowed in (("all", np.ones(n_rows, np.bool_)), ("a tenth", generator.random(n_rows) < 0.1)):
            mask = Mask.of(allowed)
            repeats = []
            for _ in range(n_repeats):
                took = []
                for query in queries:
                    start = perf_counter()
                    index.nearest(query, owners, mask, _N_OWNERS)
                    took.append((perf_counter() - start) * 1000)
                repeats.append(took)
            report.add_latency(f"{n_rows:,} rows, {name} allowed", Quantiles.of(repeats))

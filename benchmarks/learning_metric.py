"""RouteLLM's measures of a router between a weak and a strong model (Ong et al. 2024, section 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_N_STEPS = 100

Floats = NDArray[np.float64]


class GapRecovered(NamedTuple):
    """How much of the gap between the two models a ranking of requests recovers.

    Attributes:
        apgr: average performance gap recovered, over all shares of calls to the strong model (area under the curve of
            the gap recovered, by trapezoids).
        cpt50: call-performance threshold: least share of calls to the strong model, 0..1, that recovers half of the
            gap; 1 where none does.
        cpt80: the same of 80 % of it.
    """

    apgr: float
    cpt50: float
    cpt80: float


def gap_recovered(ranking: Floats, weak: Floats, strong: Floats) -> GapRecovered:
    """Of requests that go to the strong model in order of `ranking`, the highest first.

    The curve has a point at every percent of calls and is straight between them. Requests that rank alike go in
    random order, of which this is the mean.

    Args:
        ranking: shape (n,).
        weak: shape (n,): what the weak model made of each request.
        strong: shape (n,): the same of the strong one.

    Raises:
        ValueError: the strong model is not the better one.

    >>> found = gap_recovered(np.array([4.0, 3, 2, 1]), np.array([0.0, 0, 1, 1]), np.array([1.0, 1, 1, 1]))
    >>> found.apgr, found.cpt50, round(found.cpt80, 2)
    (0.75, 0.25, 0.4)
    """
    gaps = strong - weak
    if gaps.sum() <= 0:
        raise ValueError(f"the strong model is right {strong.mean():.3f} of the time, the weak one {weak.mean():.3f}")
    _, places, counts = np.unique(-ranking, return_inverse=True, return_counts=True)
    mean_gaps = np.bincount(places, gaps) / counts
    recovered = np.append(0, np.cumsum(np.repeat(mean_gaps, counts))) / gaps.sum()
    shares = np.linspace(0, 1, _N_STEPS + 1)
    curve = np.interp(shares, np.linspace(0, 1, len(recovered)), recovered)
    return GapRecovered(float(np.trapezoid(curve, shares)), _reached(curve, 0.5), _reached(curve, 0.8))


def _reached(curve: Floats, wanted: float) -> float:
    """The share at which the curve first gets there."""
    place = int(np.argmax(curve >= wanted))
    if curve[place] < wanted:
        return 1.0
    if place == 0:
        return 0.0
    before, after = curve[place - 1], curve[place]
    return float((place - 1 + (wanted - before) / (after - before)) / _N_STEPS)

"""Exponents of the merit, learned from which outcomes followed which features."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

FEATURES = ("similarity", "quality", "health", "load")
"""The features that have an exponent; cost has none."""

BOUNDS = (0.25, 4.0)
"""A learned exponent stays within these; one that the policy sets outside is the operator's, and not learned."""

LEAST_FEATURE = 0.01
"""Features count within [LEAST_FEATURE, 1]."""

PULL = 2.0
"""Strength of the pull towards the policy's exponents (L2): that of some fifty outcomes."""

SUM_UNIT = 1_000_000_000
"""Sums are whole numbers, in parts of this, so that they add up the same in any order."""

MAX_VALUES = 16
"""Exponents are kept for so many of those that they were learned from, until the next outcome."""

HALVINGS = 12
"""How finely the part of what is taken back is found, where not all of it is there."""

PAIRS = tuple((row, col) for row in range(4) for col in range(row, 4))
"""The products of gradients that are summed, as they follow the four sums of A."""

PLACE_OF = tuple(tuple(4 + PAIRS.index((min(row, col), max(row, col))) for col in range(4)) for row in range(4))
"""The place of each product among the sums."""

Vector = tuple[float, float, float, float]


class Exponents:
    """Online model of success, P = prod_k f_k^w_k, from sums of gradients and of their products.

    The loss is (P - reward)^2 / 2; unlike that of the likelihood its gradient (P - reward) * j, with j_k = P * log f_k,
    is bounded as P nears 1. Each outcome adds its quadratic model around the exponents w_t of that time, so that

        w = (PULL * 1 + M)^-1 (PULL * base + A),   M = sum j j^T,   A = sum j * (j . w_t - (P - reward))

    which is dual averaging with the Gauss-Newton matrix as its proximal function (Xiao 2010, "Dual averaging methods
    for regularized stochastic learning", eq. 8; Hazan, Agarwal and Kale 2007, online Newton step). An outcome among n
    moves the exponents by the order of 1/n. Two of them merge by adding A and M. A feature that tells nothing (always
    1) keeps its exponent.

    >>> exponents = Exponents()
    >>> exponents.value((1.0, 1.0, 1.0, 1.0))
    (1.0, 1.0, 1.0, 1.0)
    >>> for _ in range(2000):
    ...     _ = exponents.learn_one((1.0, 0.5, 1.0, 1.0), 0.7)
    >>> [round(w, 2) for w in exponents.value((1.0, 1.0, 1.0, 1.0))]
    [1.0, 0.52, 1.0, 1.0]
    """

    def __init__(self) -> None:
        self.n = 0
        self._sums = [0] * (4 + len(PAIRS))
        self._values: dict[tuple[float, ...], Vector] = {}

    def value(self, base: Sequence[float]) -> Vector:
        """The exponents in the order of FEATURES, as learned from those of the policy (`base`)."""
        asked = tuple(base)
        found = self._values.get(asked)
        if found is None:
            if len(self._values) >= MAX_VALUES:
                self._values.clear()
            found = self._values[asked] = self._value(asked)
        return found

    def learn_one(
        self, features: Sequence[float], reward: float, base: Sequence[float] = (1.0,) * 4, weight: float = 1.0
    ) -> list[int]:
        """Takes an outcome.

        Args:
            features: those of the agent that was chosen, 0..1, in the order of FEATURES.
            reward: 0..1.
            base: the policy's exponents.
            weight: how much of the outcome counts, 0..1.

        Returns:
            What was added to the sums, to be taken back by `add(..., sign=-1)`.
        """
        current = self.value(base)
        counted = [min(max(feature, LEAST_FEATURE), 1.0) for feature in features]
        success = 1.0
        for feature, w in zip(counted, current, strict=True):
            success *= feature**w
        j = [success * log(feature) for feature in counted]
        target = sum([slope * w for slope, w in zip(j, current, strict=True)]) - (success - reward)
        scale = weight * SUM_UNIT
        added = [round(scale * slope * target) for slope in j]
        added += [round(scale * j[row] * j[col]) for row, col in PAIRS]
        self.add(added)
        return added

    def add(self, sums: Sequence[int], sign: int = 1, n: int = 1) -> None:
        """Adds the sums of `n` outcomes, or with sign -1 takes them back.

        What was added comes off exactly. Of sums that were not (they went with a rollback, or belong to another
        namespace) only as much comes off as leaves M positive semidefinite.
        """
        self.n = max(self.n + sign * n, 0)
        self._values.clear()
        old = self._sums
        self._sums = _sum_of(old, sums, sign)
        if sign > 0 or _is_sound(self._sums):
            return
        least, most = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (least + most) / 2
            if _is_sound(_sum_of(old, sums, -middle)):
                least = middle
            else:
                most = middle
        self._sums = _sum_of(old, sums, -least)

    def sums(self) -> list[int]:
        """A, then the upper half of M row by row, in parts of SUM_UNIT."""
        return list(self._sums)

    def _value(self, base: tuple[float, ...]) -> Vector:
        least, most = BOUNDS
        sums = self._sums
        free = [place for place in range(4) if sums[PLACE_OF[place][place]] and least <= base[place] <= most]
        fixed = [place for place in range(4) if place not in free]
        matrix, right = [], []
        for row in free:
            places = PLACE_OF[row]
            matrix.append([sums[places[col]] / SUM_UNIT + (PULL if row == col else 0.0) for col in free])
            given = sum([sums[places[col]] * base[col] for col in fixed])
            right.append(PULL * base[row] + (sums[row] - given) / SUM_UNIT)
        learned = [float(w) for w in base]
        for place, w in zip(free, _solved(matrix, right), strict=True):
            learned[place] = min(max(w, least), most)
        return (learned[0], learned[1], learned[2], learned[3])


def _sum_of(sums: Sequence[int], others: Sequence[int], factor: float) -> list[int]:
    return [one + round(factor * other) for one, other in zip(sums, others, strict=True)]


def _is_sound(sums: Sequence[int]) -> bool:
    """Whether M is positive semidefinite, but for what was rounded.

    >>> _is_sound([0] * 14), _is_sound([0] * 4 + [-1] + [0] * 9)
    (True, False)
    """
    if any(sums[PLACE_OF[place][place]] < 0 for place in range(4)):
        return False
    matrix = [
        [sums[PLACE_OF[row][col]] / SUM_UNIT + (PULL if row == col else 0.0) for col in range(4)] for row in range(4)
    ]
    # the pivots of PULL * 1 + M are PULL at least where M is so; half of it leaves room for rounding
    for pivot in range(4):
        if matrix[pivot][pivot] < PULL / 2:
            return False
        for row in range(pivot + 1, 4):
            factor = matrix[row][pivot] / matrix[pivot][pivot]
            for col in range(pivot + 1, 4):
                matrix[row][col] -= factor * matrix[pivot][col]
    return True


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """x of matrix x = right, for a matrix that is symmetric and positive definite, of at most 4 rows.

    >>> _solved([[2.0, 1.0], [1.0, 3.0]], [4.0, 7.0])
    [1.0, 2.0]
    """
    n = len(right)
    # plain floats: for so few rows several times faster than a call of numpy
    for pivot in range(n):
        for row in range(pivot + 1, n):
            factor = matrix[row][pivot] / matrix[pivot][pivot]
            for col in range(pivot + 1, n):
                matrix[row][col] -= factor * matrix[pivot][col]
            right[row] -= factor * right[pivot]
    for row in range(n - 1, -1, -1):
        rest = right[row] - sum([matrix[row][col] * right[col] for col in range(row + 1, n)])
        right[row] = rest / matrix[row][row]
    return right

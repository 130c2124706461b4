"""The distance of two failures: how much of what matters at their stage they do not share.

Failures of two stages have nothing in common. Of those of one stage the distance, squared, is Gower's sum (1971, eq. 5,
without its division) over what both tell:

    d^2(a, b) = sum_k w_k * [a_k != b_k] + w_text * (1 - cos(text_a, text_b))

with the weights w of `shares_of`. What one of two does not tell counts half, what neither tells counts nothing. As each
summand is the squared distance of two vectors (of the unit vectors of the values, and of the texts, by sqrt(w / 2) in
length), the whole is Euclidean, and is computed as such. Two things are approximate so that the space stays small:
texts on their first `TEXT_AXES` principal axes, and values that are not among the frequent ones, whose unit vectors
point somewhere in `RARE_AXES` dimensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.failure import Failure, FailureStage

TEXT_AXES = 32
"""Principal axes of the texts that are kept; the rest is mostly noise."""

MAX_VALUES = 24
"""Of each kind of value the most frequent have an axis of their own."""

RARE_AXES = 16
"""What the other values of a kind share; two of them are as far apart as w, give or take a quarter."""


class Shares(NamedTuple):
    """What each thing weighs at a stage, beside a whole difference of 1.

    Attributes:
        charged: to whom it was charged.
    """

    text: float = 0.05
    intent: float = 0.0
    meant: float = 0.0
    agent: float = 0.0
    error: float = 0.0
    fingerprint: float = 0.0
    dependency: float = 0.0
    charged: float = 0.0


_CORRECTED = Shares(text=0.4, intent=1.0, meant=1.0)

_SHARES: Mapping[FailureStage, Shares] = {
    # what was said is the cause where nothing was read, or it fails everywhere; elsewhere it only happens to be asked
    FailureStage.READING: Shares(text=1.0, intent=0.2),
    FailureStage.REQUEST: Shares(text=1.0, error=0.2),
    FailureStage.PERMISSION: Shares(intent=1.0),
    FailureStage.ELIGIBILITY: Shares(intent=1.0, error=1.0),
    FailureStage.DEADLINE: Shares(agent=1.0, charged=1.0),
    FailureStage.DEPENDENCY: Shares(dependency=1.0),
    FailureStage.AGENT: Shares(agent=1.0, error=0.45, fingerprint=0.05),
    FailureStage.SCHEMA: Shares(agent=1.0, fingerprint=0.05),
}


def shares_of(failure: Failure) -> Shares:
    """What each thing weighs: by the stage, and for a reading by whether it was corrected.

    >>> shares_of(Failure("d", "t", 0, "default", FailureStage.AGENT, "failed")).agent
    1.0
    """
    return _CORRECTED if failure.meant and failure.stage is FailureStage.READING else _SHARES[failure.stage]


def coordinates(failures: Sequence[Failure], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Points whose Euclidean distances are those of failures of one stage.

    Args:
        failures: n of them.
        vectors: (n, dim) float32, unit length, of their utterances; all zero where there is none.

    Returns:
        (n, at most `TEXT_AXES` and 24 + 16 for each kind of value) float64.
    """
    shares = [shares_of(failure) for failure in failures]
    parts = [
        np.sqrt([[share.text / 2] for share in shares]) * _principal(vectors),
    ]
    for name, values in _values(failures).items():
        parts.append(_columns(values, [getattr(share, name) for share in shares]))
    return np.hstack(parts)


def _values(failures: Sequence[Failure]) -> dict[str, list[str | None]]:
    """By the name of its share what each failure tells."""
    told: dict[str, list[str | None]] = {
        name: [getattr(failure, name) or None for failure in failures]
        for name in ("error", "fingerprint", "dependency", "charged")
    }
    # equal names in two namespaces are two things
    for name in ("intent", "meant", "agent"):
        values = [getattr(failure, name) for failure in failures]
        told[name] = [
            f"{failure.namespace}\0{value}" if value else None for failure, value in zip(failures, values, strict=True)
        ]
    return told


def _columns(values: Sequence[str | None], weights: Sequence[float]) -> NDArray[np.float64]:
    """A unit vector for each value by sqrt(weight / 2); zero where there is none, or it does not weigh."""
    counts = Counter(value for value, weight in zip(values, weights, strict=True) if value is not None and weight > 0)
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:MAX_VALUES]
    axes = {value: axis for axis, value in enumerate(frequent)}
    n_rare = RARE_AXES if len(axes) < len(counts) else 0
    columns = np.zeros((len(values), len(axes) + n_rare))
    for row, (value, weight) in enumerate(zip(values, weights, strict=True)):
        if value in axes:
            columns[row, axes[value]] = (weight / 2) ** 0.5
        elif value in counts:
            columns[row, len(axes) :] = (weight / 2) ** 0.5 * _somewhere(value or "")
    return columns


@lru_cache(maxsize=1024)
def _somewhere(value: str) -> NDArray[np.float64]:
    """A unit vector that depends on nothing but the value."""
    seed = int.from_bytes(sha256(value.encode("utf-8", "replace")).digest()[:8], "little")
    drawn = np.random.default_rng(seed).standard_normal(RARE_AXES)
    return np.asarray(drawn / np.linalg.norm(drawn))


def _principal(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """On the axes that tell most of them (Pearson, 1901), from the origin, where texts are that nothing is known of."""
    if vectors.shape[1] <= TEXT_AXES:
        return vectors.astype(np.float64)
    _, axes = np.linalg.eigh((vectors.T @ vectors).astype(np.float64))
    return np.asarray(vectors.astype(np.float64) @ axes[:, : -TEXT_AXES - 1 : -1])

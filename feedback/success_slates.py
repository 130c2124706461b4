"""Slates: success heads as they are asked while a caller waits, of a few agents about one request. NumPy only."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from feedback.success_features import EMBEDDING_SCALE, LIMIT, PRODUCT_LIMIT, PRODUCT_SCALE, Floats
from feedback.success_heads import MAX_LOGIT, SuccessHeads
from feedback.text_features import NAMES, text_features
from models.card import AgentKey

_MOST_VALUES = 1 << 23
"""Of weights that are held ready for slates that were asked for, 32 MiB."""

_N_FIRST = 128
"""Landmarks that are looked at first; mostly one of them is near enough."""


class Foretold(NamedTuple):
    """What its head says of an agent.

    Attributes:
        trust: how much it counts beside the posterior, 0..1.
        predicted: the probability that the agent does well on the request, 0..1.
        level: as `predicted`, of a request that is about the same and usually worded: how well the agent did there when
            the heads were fitted.
    """

    trust: float
    predicted: float
    level: float


class _Heads(NamedTuple):
    """Weights, so that a row needs neither scaling nor centring.

    Attributes:
        weights: float32, shape (n_agents, n_columns).
        bias: float32, shape (n_agents,).
    """

    weights: Floats
    bias: Floats

    def of(self, places: NDArray[np.intp]) -> _Heads:
        return _Heads(self.weights[places], self.bias[places])


class _Slate(NamedTuple):
    """The heads of some agents.

    Attributes:
        trusts: of each agent; None where it has no head.
        level: of those that have one, in their order, the part of the head that is about the embedding.
        wording: float32, the part that is about the wording too.
        plain: over the wording alone.
    """

    trusts: tuple[float | None, ...]
    level: _Heads
    wording: Floats
    plain: _Heads

    @property
    def n_values(self) -> int:
        # a slate without heads holds names only, which are to be bounded too
        return 1000 + sum(int(each.size) for each in (self.level.weights, self.wording, self.plain.weights))


class Slates:
    """The same predictions as those of `SuccessHeads.predict`, in a tenth of the time.

    Attributes:
        encoder_id: of the encoder whose vectors are understood.
    """

    def __init__(self, heads: SuccessHeads) -> None:
        features, n_features = heads.features, len(NAMES)
        dim, n_axes = features.dim, len(features.axes)
        self.encoder_id = heads.encoder_id
        self._dim = dim
        self._scales, self._shifts = 1 / features.scales, features.means / features.scales
        self._axes, self._offsets = features.axes, features.axes @ features.centre
        left, right = np.triu_indices(n_features + n_axes)
        order = np.argsort(left < n_features, kind="stable")  # products of two axes come first
        self._left, self._right, self._n_of_axes = left[order], right[order], n_axes * (n_axes + 1) // 2
        self._left_of_wording, self._right_of_wording = np.triu_indices(n_features)
        self._first, self._others = (np.ascontiguousarray(part) for part in np.split(heads.landmarks, [_N_FIRST]))
        self._least = heads.least
        of_wording = features.of_wording[n_features:] - dim - n_features
        full = _folded(heads.full, dim, dim + n_features, features.product_means)
        of_axes, others = np.split(dim + n_features + order, [self._n_of_axes])
        self._level = _Heads(full.weights[:, [*range(dim), *of_axes]], full.bias)
        self._wording = full.weights[:, [*range(dim, dim + n_features), *others]]
        self._plain = _folded(heads.plain, 0, n_features, features.product_means[of_wording])
        self._trusts = heads.trusts
        self._place_of = {agent: place for place, agent in enumerate(heads.agents)}
        self._slates: dict[tuple[AgentKey, ...], _Slate] = {}
        self._n_values = 0

    def foretell(self, agents: tuple[AgentKey, ...], text: str, vector: bytes) -> tuple[Foretold | None, ...]:
        """What the heads say of agents, in their order; None where there is no head, () where there is none at all.

        Args:
            agents: those that one decision is about.
            text: as it was written.
            vector: its embedding, little-endian float32 of unit length.

        Raises:
            ValueError: the vector has another length, or is none.
        """
        slate = self._slates.get(agents) or self._slate(agents)
        if not len(slate.level.bias):
            return ()
        logits = np.array(self._logits(slate, text, vector), dtype=np.float64)
        predicted, levels = (1 / (1 + np.exp(-np.minimum(np.maximum(logits, -MAX_LOGIT), MAX_LOGIT)))).tolist()
        if not isfinite(sum(predicted) + sum(levels)):
            raise ValueError("the heads say nothing that is a number")
        found = zip(predicted, levels, strict=True)
        return tuple([None if trusted is None else Foretold(trusted, *next(found)) for trusted in slate.trusts])

    def _logits(self, slate: _Slate, text: str, vector: bytes) -> tuple[Floats, Floats]:
        """Of the predictions, and of the levels."""
        if len(vector) != 4 * self._dim:
            raise ValueError(f"a vector has {len(vector)} bytes, expected {4 * self._dim}")
        values = np.frombuffer(vector, dtype="<f4")
        plain = _bounded(np.array(text_features(text), dtype=np.float32) * self._scales - self._shifts, LIMIT)
        if not self._is_known(values):
            products = plain.take(self._left_of_wording) * plain.take(self._right_of_wording)
            row = np.concatenate((plain, _bounded(products, PRODUCT_LIMIT)))
            return slate.plain.weights @ row + slate.plain.bias, slate.plain.bias
        factors = np.concatenate((plain, _bounded(self._axes @ values - self._offsets, LIMIT)))
        products = _bounded(factors.take(self._left) * factors.take(self._right), PRODUCT_LIMIT)
        level = slate.level.weights @ np.concatenate((values, products[: self._n_of_axes])) + slate.level.bias
        return level + slate.wording @ np.concatenate((plain, products[self._n_of_axes :])), level

    def _is_known(self, values: Floats) -> bool:
        nearest = float(np.maximum.reduce(self._first @ values))
        if nearest < self._least and len(self._others):
            nearest = float((self._others @ values).max())
        if not isfinite(nearest):
            raise ValueError("the vector is none: its values are not all finite")
        return nearest >= self._least

    def _slate(self, agents: tuple[AgentKey, ...]) -> _Slate:
        found = [self._place_of.get("/".join(agent)) for agent in agents]
        places = np.array([place for place in found if place is not None], dtype=np.intp)
        trusts = tuple([None if place is None else self._trusts[place] for place in found])
        slate = _Slate(trusts, self._level.of(places), self._wording[places], self._plain.of(places))
        self._n_values += slate.n_values
        if self._n_values > _MOST_VALUES:
            self._slates.clear()
            self._n_values = slate.n_values
        self._slates[agents] = slate
        return slate


def _folded(heads: Floats, dim: int, n_before: int, product_means: Floats) -> _Heads:
    """Heads for rows that are neither scaled nor centred.

    Args:
        heads: the intercept last.
        dim: so many first columns are those of the embedding.
        n_before: the columns before those of the products.
        product_means: float32, shape (n_products,).
    """
    weights = heads[:, :-1].copy()
    weights[:, :dim] *= EMBEDDING_SCALE
    weights[:, n_before:] *= PRODUCT_SCALE
    return _Heads(weights, heads[:, -1] - weights[:, n_before:] @ product_means)


def _bounded(values: Floats, limit: float) -> Floats:
    # np.clip takes three times as long
    np.minimum(values, limit, out=values)
    np.maximum(values, -limit, out=values)
    return values

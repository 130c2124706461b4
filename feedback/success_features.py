"""What success heads look at: embedding, wording, and how these go together. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from feedback.text_features import NAMES, text_features

EMBEDDING_SCALE = 5.0
PRODUCT_SCALE = 0.3
N_AXES = 20
"""Main directions of the embeddings that are multiplied with each other and with the wording."""

LIMIT = 4.0
PRODUCT_LIMIT = 5.0
_LEAST_SCALE = 1e-3

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """How requests become rows of numbers; fitted on some of them.

    A row is 5 × embedding, the standardized text features, and 0.3 × products of two of the text features and main
    directions of the embedding. Without the products, heads recover 0.02 less of the gap on MMLU.

    Attributes:
        means: float32, shape (n_features,): of the text features.
        scales: float32, shape (n_features,): their standard deviations, over 0.
        centre: float32, shape (dim,): mean embedding.
        axes: float32, shape (n_axes, dim): main directions, by the inverse of the deviation along each.
        product_means: float32, shape (n_products,).
    """

    means: Floats
    scales: Floats
    centre: Floats
    axes: Floats
    product_means: Floats

    def __post_init__(self) -> None:
        n_features, dim, n_axes = len(NAMES), len(self.centre), len(self.axes)
        n_factors = n_features + n_axes
        expected = {
            "means": (n_features,),
            "scales": (n_features,),
            "centre": (dim,),
            "axes": (n_axes, dim),
            "product_means": (n_factors * (n_factors + 1) // 2,),
        }
        found = {name: getattr(self, name).shape for name in expected}
        if found != expected:
            raise ValueError(f"arrays of the features have the shapes {found}, expected {expected}")

    @classmethod
    def fitted(cls, features: Floats, vectors: Floats, n_axes: int = N_AXES) -> Self:
        """To these requests.

        Args:
            features: float32, shape (n, n_features): of `features_of`.
            vectors: float32, shape (n, dim), unit length.
            n_axes: at most as many as there are requests and values of a vector.
        """
        centre = vectors.mean(axis=0)
        spread = (vectors - centre).astype(np.float64)
        variances, directions = np.linalg.eigh(spread.T @ spread / len(spread))
        deviations = np.sqrt(np.maximum(variances[::-1][:n_axes], _LEAST_SCALE**2))
        axes = (directions.T[::-1][:n_axes] / deviations[:, None]).astype(np.float32)
        scales = np.maximum(features.std(axis=0), _LEAST_SCALE).astype(np.float32)
        n_factors = len(NAMES) + len(axes)
        unset = np.zeros(n_factors * (n_factors + 1) // 2, dtype=np.float32)
        raw = cls(features.mean(axis=0), scales, centre, axes, unset)
        products = raw._products(raw._plain(features), vectors)
        return cls(raw.means, scales, centre, axes, products.mean(axis=0))

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return len(self.centre)

    @property
    def n_columns(self) -> int:
        """Length of a row."""
        return self.dim + len(NAMES) + len(self.product_means)

    @property
    def of_wording(self) -> NDArray[np.intp]:
        """The columns that the wording alone decides, ascending."""
        n_features = len(NAMES)
        left, right = np.triu_indices(n_features + len(self.axes))
        products = np.flatnonzero((left < n_features) & (right < n_features))
        own = np.arange(self.dim, self.dim + n_features)
        return np.concatenate([own, self.dim + n_features + products])

    def rows(self, features: Floats, vectors: Floats) -> Floats:
        """float32, shape (n, n_columns)."""
        plain = self._plain(features)
        products = PRODUCT_SCALE * (self._products(plain, vectors) - self.product_means)
        return np.hstack([EMBEDDING_SCALE * vectors, plain, products]).astype(np.float32, copy=False)

    def _plain(self, features: Floats) -> Floats:
        found: Floats = np.clip((features - self.means) / self.scales, -LIMIT, LIMIT)
        return found

    def _products(self, plain: Floats, vectors: Floats) -> Floats:
        along = np.clip((vectors - self.centre) @ self.axes.T, -LIMIT, LIMIT)
        factors = np.hstack([plain, along])
        left, right = np.triu_indices(factors.shape[1])
        products: Floats = np.clip(factors[:, left] * factors[:, right], -PRODUCT_LIMIT, PRODUCT_LIMIT)
        return products


def features_of(texts: list[str]) -> Floats:
    """Text features, float32, shape (n, n_features); the texts are as they were written."""
    return np.array([text_features(text) for text in texts], dtype=np.float32).reshape(len(texts), len(NAMES))


def vectors_of(vectors: list[bytes], dim: int) -> Floats:
    """Embeddings, float32, shape (n, dim).

    Raises:
        ValueError: a vector has another length.
    """
    for vector in vectors:
        if len(vector) != 4 * dim:
            raise ValueError(f"a vector has {len(vector)} bytes, expected {4 * dim} ({dim} values of float32)")
    return np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), dim).astype(np.float32)

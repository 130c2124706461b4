"""SuccessHeads: per agent, the probability that it does well on a request; fitted offline, asked with NumPy alone."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from feedback.success_features import Features, Floats, features_of, vectors_of
from models.errors import ModelError

HALF_TRUST = 1000
"""Outcomes of an agent from which on its head counts for half beside the posterior, unless an exam chose fewer."""

_VERSION = 2
_MAX_AGENTS = 10_000
_MAX_BYTES = 1 << 28
MAX_LOGIT = 30.0
_OF_FEATURES = ("means", "scales", "centre", "axes", "product_means")
_OWN = ("full", "plain", "landmarks")


@dataclass(frozen=True, slots=True, eq=False)
class SuccessHeads:
    """Logistic heads over embedding and wording, one an agent.

    Rank agents by what is predicted for each of them (the *gap*), not by one head that says whether the cheaper one is
    enough: that loses 0.08 of the average performance gap recovered on MMLU.

    Attributes:
        agents: in the order of the rows of `full`, `plain` and `n_outcomes`.
        features: how a request becomes a row of numbers.
        full: float32, shape (n_agents, n_columns + 1): weights, the intercept last.
        plain: float32, shape (n_agents, n_of_wording + 1): of heads over the wording alone, that know how hard a
            request is but not what it is about.
        n_outcomes: int64, shape (n_agents,): how many outcomes each head was fitted on.
        landmarks: float32, shape (n, dim), unit length: some of the requests that were fitted on.
        least: cosine similarity to the nearest landmark below which a request is out of the domain of experience.
        encoder_id: of the encoder whose vectors these are.
        half_trust: outcomes of an agent from which on its head counts for half beside the posterior, 1 or more.
    """

    agents: tuple[str, ...]
    features: Features
    full: Floats
    plain: Floats
    n_outcomes: NDArray[np.int64]
    landmarks: Floats
    least: float
    encoder_id: str
    half_trust: int = HALF_TRUST

    def __post_init__(self) -> None:
        if self.half_trust < 1:
            raise ValueError(f"half_trust is {self.half_trust}, expected 1 or more")
        n_agents = len(self.agents)
        expected = {
            "full": (n_agents, self.features.n_columns + 1),
            "plain": (n_agents, len(self.features.of_wording) + 1),
            "n_outcomes": (n_agents,),
            "landmarks": (max(1, len(self.landmarks)), self.features.dim),
        }
        found = {name: getattr(self, name).shape for name in expected}
        if found != expected:
            raise ValueError(f"arrays of the heads have the shapes {found}, expected {expected}")

    @property
    def trusts(self) -> tuple[float, ...]:
        """How much each agent's head counts beside the posterior, 0..1."""
        return tuple([trust(n_outcomes, self.half_trust) for n_outcomes in self.n_outcomes.tolist()])

    def predict(self, text: str, vector: bytes) -> Prediction:
        """For every agent.

        Args:
            text: as it was written.
            vector: its embedding, `dim` little-endian float32 of unit length.

        Raises:
            ValueError: the vector has another length.
        """
        found = self.predict_all(features_of([text]), vectors_of([vector], self.features.dim))
        return Prediction(tuple(found.probabilities[0].tolist()), float(found.nearness[0]), bool(found.is_known[0]))

    def predict_all(self, features: Floats, vectors: Floats) -> Predictions:
        """For every agent and many requests at once.

        Args:
            features: float32, shape (n, n_features): of `features_of`.
            vectors: float32, shape (n, dim), unit length.
        """
        rows = self.features.rows(features, vectors)
        nearness = (vectors @ self.landmarks.T).max(axis=1)
        is_known = nearness >= self.least
        wording = rows[:, self.features.of_wording]
        logits = np.where(is_known[:, None], _logits(self.full, rows), _logits(self.plain, wording))
        bounded = np.clip(logits.astype(np.float64), -MAX_LOGIT, MAX_LOGIT)
        return Predictions(1 / (1 + np.exp(-bounded)), nearness, is_known)

    def to_bytes(self) -> bytes:
        """A NumPy archive without pickled objects."""
        arrays: dict[str, Any] = {name: getattr(self.features, name) for name in _OF_FEATURES}
        arrays |= {name: getattr(self, name) for name in _OWN}
        arrays |= {"n_outcomes": self.n_outcomes, "least": np.array(self.least), "version": np.array(_VERSION)}
        arrays |= {"half_trust": np.array(self.half_trust)}
        arrays |= {"agents": np.array(self.agents, dtype=np.str_), "encoder_id": np.array(self.encoder_id)}
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """The same heads again.

        Raises:
            ModelError: these are no heads, or of another version, for which other features stood under the same names.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                n_bytes = sum(each.file_size for each in archive.infolist())
            if n_bytes > _MAX_BYTES:
                raise ValueError(f"{n_bytes:,} bytes unpacked, at most {_MAX_BYTES:,} are taken")
            with np.load(io.BytesIO(content), allow_pickle=False) as found:
                return cls._of({name: found[name] for name in found.files})
        except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
            raise ModelError(f"these are no success heads ({error}); fit them again with `retrain`") from error

    @classmethod
    def _of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        if arrays["version"].item() != _VERSION:
            raise ModelError(
                f"these success heads are of version {arrays['version'].item()}, expected {_VERSION};"
                " fit them again with `retrain`"
            )
        floats = {name: arrays[name].astype(np.float32) for name in (*_OF_FEATURES, *_OWN)}
        least = float(arrays["least"].item())
        if not all(np.isfinite(each).all() for each in floats.values()) or not np.isfinite(least):
            raise ValueError("weights are not all finite")
        if (floats["scales"] <= 0).any():
            raise ValueError("scales are not all over 0")
        agents = tuple(map(str, arrays["agents"].tolist()))
        if len(agents) > _MAX_AGENTS:
            raise ValueError(f"{len(agents)} agents, at most {_MAX_AGENTS} are taken")
        return cls(
            agents,
            Features(*(floats[name] for name in _OF_FEATURES)),
            full=floats["full"],
            plain=floats["plain"],
            n_outcomes=arrays["n_outcomes"].astype(np.int64),
            landmarks=floats["landmarks"],
            least=least,
            encoder_id=str(arrays["encoder_id"].item()),
            half_trust=int(arrays["half_trust"].item()),
        )


class Prediction(NamedTuple):
    """What heads say of one request.

    Attributes:
        probabilities: that each agent does well, in the order of the heads' agents.
        nearness: cosine similarity to the nearest request that was fitted on.
        is_known: whether the request is in the domain of experience; else they go by its difficulty alone.
    """

    probabilities: tuple[float, ...]
    nearness: float
    is_known: bool


class Predictions(NamedTuple):
    """What heads say of many requests.

    Attributes:
        probabilities: float64, shape (n, n_agents).
        nearness: float32, shape (n,).
        is_known: bool, shape (n,).
    """

    probabilities: NDArray[np.float64]
    nearness: Floats
    is_known: NDArray[np.bool_]


def trust(n_outcomes: int, half_trust: int = HALF_TRUST) -> float:
    """How much a head counts beside the posterior, 0..1.

    >>> trust(0), trust(1000), trust(3000), trust(900, 100)
    (0.0, 0.5, 0.75, 0.9)
    """
    return n_outcomes / (n_outcomes + half_trust)


def _logits(weights: Floats, rows: Floats) -> Floats:
    found: Floats = rows @ weights[:, :-1].T + weights[:, -1]
    return found

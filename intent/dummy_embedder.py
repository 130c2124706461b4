"""An encoder without weights: lets all that needs an `Embedder` be tested in microseconds."""

from __future__ import annotations

import re
from zlib import crc32

import numpy as np

from models.ports import Embedded

_WORD = re.compile(r"\w+")
_WORD_WEIGHT = 2.0


class DummyEmbedder:
    """An `Embedder` of hashed words and character trigrams: texts that share words get similar vectors.

    It is deterministic across processes and machines, and knows nothing of meaning. Like the bundled English encoder
    it calls other scripts unknown.

    Example:
        >>> one, two = DummyEmbedder().embed("Turn on the light"), DummyEmbedder().embed("turn on the light!")
        >>> one == two, len(one.vector)
        (True, 256)
    """

    @property
    def encoder_id(self) -> str:
        """`dummy-64`; changes with the features."""
        return "dummy-64"

    @property
    def dim(self) -> int:
        """Length of a vector, 64."""
        return 64

    @property
    def languages(self) -> None:
        """None: what it does not know, it says itself."""
        return None

    def embed(self, text: str) -> Embedded:
        """Encode one text; case, white space and punctuation do not count.

        Args:
            text: Any string. One without a word gets the first unit vector.

        Returns:
            The vector, 64 little-endian float32 of unit length, and the share of the letters that are not ASCII (0
            without letters).
        """
        vector = np.zeros(self.dim, dtype=np.float64)
        for word in _WORD.findall(text.lower()):
            self._add(vector, f"w:{word}", _WORD_WEIGHT)
            padded = f" {word} "
            for start in range(len(padded) - 2):
                self._add(vector, f"c:{padded[start : start + 3]}", 1.0)
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            vector[0] = length = 1.0
        letters = [char for char in text if char.isalpha()]
        share = sum(not char.isascii() for char in letters) / len(letters) if letters else 0.0
        return Embedded(vector=(vector / length).astype("<f4").tobytes(), unknown_share=share)

    def _add(self, vector: np.ndarray[tuple[int], np.dtype[np.float64]], feature: str, weight: float) -> None:
        digest = crc32(feature.encode("utf-8", "surrogatepass"))
        sign = 1.0 if digest & 0x40 else -1.0
        vector[digest % self.dim] += sign * weight

"""Two encoders side by side: one that was tuned for the intents, and the one that it was tuned from.

Tuning draws texts of known intents together, and unknown texts with them. Beside the vector of the encoder as it was
the tuned one reads the known ones no worse, and the unknown ones are told again. It takes the time of both.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from intent.embedder import MANIFEST_FILE, MODEL_FILE, TOKENIZER_FILE, OnnxEmbedder
from models.ports import Embedded, Embedder

FIRST_FOLDER, SECOND_FOLDER = "first", "second"
"""What a folder of two encoders holds."""

_SHARE = np.float32(np.sqrt(0.5))


class PairEmbedder:
    """An `Embedder` whose vectors are those of two, one after the other: a cosine is the mean of two cosines."""

    def __init__(self, first: Embedder, second: Embedder) -> None:
        self.first = first
        self.second = second

    @property
    def encoder_id(self) -> str:
        """Digest of both ids, 16 hex digits."""
        return sha256(f"{self.first.encoder_id}+{self.second.encoder_id}".encode()).hexdigest()[:16]

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.first.dim + self.second.dim

    @property
    def languages(self) -> frozenset[str] | None:
        """Those of the first; the second was made from it."""
        return self.first.languages

    def embed(self, text: str) -> Embedded:
        """Encode one text twice."""
        return joined(self.first.embed(text), self.second.embed(text))


def joined(first: Embedded, second: Embedded) -> Embedded:
    """Two vectors of unit length as one of unit length."""
    vectors = [np.frombuffer(each.vector, dtype="<f4") for each in (first, second)]
    vector = np.concatenate(vectors) * _SHARE
    return Embedded(vector.astype("<f4").tobytes(), max(first.unknown_share, second.unknown_share))


def open_encoder(folder: Path) -> Embedder:
    """The encoder of a folder, or the two of it.

    Raises:
        EncoderError: a file is missing, or is not what the manifest says.
    """
    if (folder / FIRST_FOLDER).is_dir():
        return PairEmbedder(OnnxEmbedder(folder / FIRST_FOLDER), OnnxEmbedder(folder / SECOND_FOLDER))
    return OnnxEmbedder(folder)


def write_pair(first: Path | Traversable, second: Path | Traversable, out: Path) -> None:
    """Copy two encoder folders into one."""
    for source, name in ((first, FIRST_FOLDER), (second, SECOND_FOLDER)):
        (out / name).mkdir(parents=True, exist_ok=True)
        for file in (MODEL_FILE, TOKENIZER_FILE, MANIFEST_FILE):
            (out / name / file).write_bytes(source.joinpath(file).read_bytes())

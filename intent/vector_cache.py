"""VectorCache: the vectors of many texts, embedded once and kept in one file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np

from intent.pair_embedder import PairEmbedder, joined
from models.errors import ModelError
from models.ports import Embedded, Embedder

Progress = Callable[[int, int], None]
"""Told how many of how many texts are embedded."""

_SLICE = 64
_DIGEST_BYTES = 32


def silent(n_done: int, n: int) -> None:
    """A `Progress` that tells nobody."""


class VectorCache:
    """Vectors by digest of their text, each encoder's in a file of its own kind: another encoder's file is ignored."""

    def __init__(self, embedder: Embedder, path: Path | None = None, *, n_threads: int = 2) -> None:
        """Read the file.

        Args:
            embedder: embeds what the file lacks.
            path: of the file; None keeps vectors in memory only.
            n_threads: that embed.
        """
        self.embedder = embedder
        self._path = path
        self._n_threads = n_threads
        self._known: dict[bytes, Embedded] = _read(path, embedder) if path is not None and path.exists() else {}

    def of(self, texts: Iterable[str], progress: Progress = silent) -> dict[str, Embedded]:
        """Text → vector; what was embedded anew is in the file when this returns.

        Raises:
            ModelError: the file cannot be written.
        """
        digests = {text: sha256(text.encode("utf-8", "replace")).digest() for text in texts}
        missing = [text for text, digest in digests.items() if digest not in self._known]
        with ThreadPoolExecutor(self._n_threads) as pool:
            for start in range(0, len(missing), _SLICE):
                chunk = missing[start : start + _SLICE]
                for text, embedded in zip(chunk, pool.map(self.embedder.embed, chunk), strict=True):
                    self._known[digests[text]] = embedded
                progress(start + len(chunk), len(missing))
        if missing and self._path is not None:
            self._write(self._path)
        return {text: self._known[digest] for text, digest in digests.items()}

    def beside(self, other: VectorCache) -> VectorCache:
        """A cache, in memory only, for both encoders side by side; it has the vectors that both caches have."""
        pair = VectorCache(PairEmbedder(self.embedder, other.embedder), n_threads=self._n_threads)
        both = self._known.keys() & other._known.keys()
        pair._known = {digest: joined(self._known[digest], other._known[digest]) for digest in both}
        return pair

    def _write(self, path: Path) -> None:
        beside = path.with_name(path.name + ".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                np.savez(
                    file,
                    encoder_id=np.array(self.embedder.encoder_id),
                    digests=np.frombuffer(b"".join(self._known), dtype=np.uint8).reshape(-1, _DIGEST_BYTES),
                    vectors=np.stack([np.frombuffer(each.vector, dtype="<f4") for each in self._known.values()]),
                    unknown=np.array([each.unknown_share for each in self._known.values()]),
                )
            os.replace(beside, path)
        except OSError as error:
            raise ModelError(f"the vectors cannot be kept in {path} ({error})") from error


def trusted(vectors: dict[str, Embedded]) -> dict[str, bytes]:
    """Text → vector, for those that are to be trusted."""
    return {text: embedded.vector for text, embedded in vectors.items() if embedded.is_trusted}


def _read(path: Path, embedder: Embedder) -> dict[bytes, Embedded]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if str(arrays["encoder_id"]) != embedder.encoder_id or arrays["vectors"].shape[1] != embedder.dim:
                return {}
            digests: Sequence[bytes] = [row.tobytes() for row in arrays["digests"]]
            rows = zip(digests, arrays["vectors"], arrays["unknown"].tolist(), strict=True)
            return {digest: Embedded(vector.tobytes(), unknown) for digest, vector, unknown in rows}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path} holds no vectors ({error}); remove it, it is made anew") from error

"""Job: what is to be retrained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from intent.model_folder import read_manifest
from models.errors import ModelError

_VERSION = 4
"""Rises when the same arguments would be worked out otherwise."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be retrained.

    Attributes:
        log: URL of the store with decisions, outcomes and corrections.
        out: folder for the model.
        cards: files and folders; none takes the cards of the store.
        golden: the file of pinned rows.
        examples: files of labelled texts.
        base: folder of the model in force; None compares with classifiers fitted on the cards alone.
        seed: of folds, clusters and the choice among the rows of a caller.
        allow_golden_loss: whether pinned rows may be lost.
    """

    log: str
    out: Path
    cards: Sequence[Path] = ()
    golden: Path | None = None
    examples: Sequence[Path] = ()
    base: Path | None = None
    seed: int = 0
    allow_golden_loss: bool = False

    def digest(self, encoder_id: str) -> str:
        """Of all that a run hangs on but the log itself, as hex."""
        files = [*self.cards, *self.examples, *([] if self.golden is None else [self.golden])]
        base = None if self.base is None else read_manifest(self.base).digest
        parts = [
            _VERSION,
            self.log,
            self.seed,
            encoder_id,
            base,
            self.allow_golden_loss,
            [_file(each) for each in files],
        ]
        return sha256(json.dumps(parts).encode()).hexdigest()


def _file(path: Path) -> list[str]:
    """A path and the digest of what is there; of a folder, of all files in it."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    try:
        digest = sha256(b"".join(sha256(each.read_bytes()).digest() for each in files)).hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error})") from error
    return [str(path), digest]

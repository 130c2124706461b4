"""The success heads of a model folder, verified and read."""

from __future__ import annotations

from pathlib import Path

from feedback.success_heads import SuccessHeads
from feedback.success_slates import Slates
from intent.model_folder import SUCCESS_FILE, read_success
from models.errors import ModelError


def load_success(folder: Path, *, encoder_id: str | None = None) -> SuccessHeads | None:
    """The success heads of a model folder; None where it has none. Blocks while they are read.

    Args:
        folder: as `retrain` writes it.
        encoder_id: of the encoder at hand; None where its vectors do not matter.

    Raises:
        ModelError: they are missing though the manifest names them, are not what it says, are damaged, or their vectors
            are those of another encoder; or there is no manifest to be read.
    """
    content = read_success(folder)
    if content is None:
        return None
    path = folder / SUCCESS_FILE
    try:
        heads = SuccessHeads.from_bytes(content)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    if encoder_id not in (None, heads.encoder_id):
        raise ModelError(
            f"{path} was fitted with the vectors of encoder {heads.encoder_id}, the encoder at hand is {encoder_id};"
            " set `encoder` to the one it was fitted with, or retrain"
        )
    return heads


def slates_of(folder: Path, encoder_id: str) -> Slates | None:
    """The same as they are asked while serving. Blocks while they are read.

    Raises:
        ModelError: as `load_success` says.
    """
    heads = load_success(folder, encoder_id=encoder_id)
    return None if heads is None else Slates(heads)

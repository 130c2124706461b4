"""Model folders: heads on disk, with a manifest that says what they were fitted on and what they are worth.

A folder holds `manifest.json`, `arrays.npz` and `vocabulary.txt` (one gram a line, in the order of the rows), and
`encoder/` where the encoder was tuned for them; `success_heads.npz` where `retrain` found that what agents are good at
shows in the request. Only bytes that match the manifest's digests are loaded, and nothing in them is executed: the
arrays are read without pickle.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from intent.embedder import FileRecord
from intent.heads import Heads
from intent.lexical import Lexical
from intent.model_arrays import bytes_of, checked, read_arrays, relevance_of, stage_of
from intent.model_numbers import Numbers
from intent.semantic import Semantic
from models.errors import ModelError
from models.exam_report import EXAM_FILE

MANIFEST_FILE = "manifest.json"
ARRAYS_FILE = "arrays.npz"
VOCABULARY_FILE = "vocabulary.txt"
SUCCESS_FILE = "success_heads.npz"
"""Not in every folder; kept and verified here, and read by those who know what it holds."""
ENCODER_FOLDER = "encoder"
RETRAIN_FOLDER = ".retrain"
"""What `retrain` keeps of a run that is not through."""

FORMAT: Literal[1] = 1
_ALWAYS = frozenset({ARRAYS_FILE, VOCABULARY_FILE})


class Origin(BaseModel):
    """What heads were made from, and what they are worth.

    Attributes:
        encoder_id: of the encoder whose vectors the semantic head was fitted on; None where there is no such head.
        seed: of the fit.
        n_examples: labelled texts it was fitted on.
        data: name of each source → sha256 of what was read.
        metrics: figures of the exam.
        made_by: the command that wrote the folder; None where it does not say.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder_id: str | None = None
    seed: int = 0
    n_examples: int = 0
    data: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, Any] = Field(default_factory=dict)
    made_by: Literal["train", "retrain"] | None = None


class Manifest(Origin):
    """What a model folder holds.

    Attributes:
        format: of the folder.
        labels: the intents, in the order of the scores.
        labels_sha256: of the labels, to compare two folders by.
        languages: what a part of the examples is in; none in folders of before they were told.
        numbers: the single numbers of the heads.
        versions: of Python and the libraries that made it.
        files: records of the arrays, the vocabulary and success heads, by file name.
    """

    format: Literal[1]
    labels: tuple[str, ...] = Field(min_length=2)
    labels_sha256: str
    languages: tuple[str, ...] = ()
    numbers: Numbers
    versions: dict[str, str]
    files: dict[str, FileRecord]

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if set(self.files) - {SUCCESS_FILE} != _ALWAYS:
            raise ValueError(
                f"files are {sorted(self.files)}, expected {sorted(_ALWAYS)}, with or without {SUCCESS_FILE}"
            )
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("a label stands twice in labels")
        derived = labels_digest(self.labels)
        if self.labels_sha256 != derived:
            raise ValueError(f"labels_sha256 is {self.labels_sha256}, but the labels give {derived}")
        return self

    @property
    def digest(self) -> str:
        """The sha256, as hex, of all that decides what the model does: equal digests read and choose alike."""
        parts = self.model_dump(mode="json", include={"encoder_id", "labels", "languages", "numbers", "files"})
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def heads_digest(self) -> str:
        """The same of the classifiers alone; equal to `digest` where the folder holds nothing else."""
        return self.with_files({name: self.files[name] for name in _ALWAYS}).digest

    def with_files(self, files: Mapping[str, FileRecord]) -> Self:
        """The manifest of a folder that holds these files instead."""
        return self.model_copy(update={"files": dict(files)})

    @property
    def fix(self) -> str:
        """What to do about a folder that is damaged."""
        return _fix(self.made_by)


def labels_digest(labels: tuple[str, ...]) -> str:
    """The sha256 of an ordered list of labels, as hex."""
    return sha256(json.dumps(labels).encode()).hexdigest()


def save_heads(
    heads: Heads, folder: Path, origin: Origin, encoder: Path | None = None, success: bytes | None = None
) -> Manifest:
    """Write a model folder; an older one in its place is overwritten.

    Args:
        heads: what to keep.
        folder: is made where there is none.
        origin: for the manifest.
        encoder: folder of the encoder that was tuned for them, to be copied; None for one that is at hand anyway.
        success: what `SUCCESS_FILE` holds; None writes none.

    Returns:
        The manifest that was written.

    Raises:
        ModelError: the folder holds other files, or cannot be written.
    """
    check_writable(folder)
    contents = {ARRAYS_FILE: bytes_of(heads), VOCABULARY_FILE: _vocabulary_of(heads.lexical)}
    contents |= {} if success is None else {SUCCESS_FILE: success}
    manifest = Manifest(
        **origin.model_dump(),
        format=FORMAT,
        labels=heads.labels,
        labels_sha256=labels_digest(heads.labels),
        languages=tuple(sorted(heads.languages)),
        numbers=Numbers.of(heads),
        versions={"python": platform.python_version(), **{name: version(name) for name in ("numpy", "scikit-learn")}},
        files={name: FileRecord.of(content) for name, content in contents.items()},
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST_FILE).unlink(missing_ok=True)  # last to come, first to go: half a folder has none
        for name in (EXAM_FILE, SUCCESS_FILE):  # of the model that was there before
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / ENCODER_FOLDER, ignore_errors=True)
        if encoder is not None:
            shutil.copytree(encoder, folder / ENCODER_FOLDER)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        text = manifest.model_dump_json(indent=1)
        temporary = folder / f"{MANIFEST_FILE}.new"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, folder / MANIFEST_FILE)
    except OSError as error:
        raise ModelError(f"{folder} cannot be written ({error}); name another folder") from error
    return manifest


def check_writable(folder: Path) -> None:
    """Whether a model may be put there: in a new folder, an empty one, or in place of another model.

    Raises:
        ModelError: it is a file, or holds other things.
    """
    try:
        found = {path.name for path in folder.iterdir()}
        others = found - _ALWAYS - {MANIFEST_FILE, SUCCESS_FILE, ENCODER_FOLDER, EXAM_FILE, RETRAIN_FOLDER}
    except FileNotFoundError:
        return
    except OSError as error:
        raise ModelError(f"{folder} cannot be written ({error}); name another folder") from error
    if others:
        raise ModelError(f"{folder} is no model folder, it holds {min(others)}; name a new or an empty folder")


def tuned_encoder(folder: Path) -> Path | None:
    """The folder of the encoder that a model brings along; None where it was trained for one that is at hand."""
    found = folder / ENCODER_FOLDER
    return found if found.is_dir() else None


def load_heads(folder: Path, *, encoder_id: str | None = None) -> Heads:
    """Read a model folder.

    Args:
        folder: as `save_heads` wrote it.
        encoder_id: of the encoder at hand; None where its vectors do not matter.

    Raises:
        ModelError: a file is missing, is not what the manifest says, or the vectors are those of another encoder.
    """
    manifest = read_manifest(folder)
    if None not in (encoder_id, manifest.encoder_id) and encoder_id != manifest.encoder_id:
        raise ModelError(
            f"{folder} was trained with the vectors of encoder {manifest.encoder_id}, the encoder at hand is"
            f" {encoder_id}; set `encoder` to the one it was trained with, or train again"
        )
    content = _read_verified(folder, ARRAYS_FILE, manifest)
    words = _read_verified(folder, VOCABULARY_FILE, manifest).decode("utf-8")
    for name in sorted(manifest.files.keys() - _ALWAYS):
        _read_verified(folder, name, manifest)
    vocabulary = {gram: row for row, gram in enumerate(words.split("\n"))} if words else {}
    try:
        arrays = checked(
            read_arrays(content),
            n_rows=len(vocabulary),
            n_labels=len(manifest.labels),
            has_relevance=manifest.numbers.relevance is not None,
        )
    except ValueError as error:
        raise ModelError(f"{folder / ARRAYS_FILE}: {error}; {manifest.fix}") from error
    numbers = manifest.numbers
    semantic = None
    if "prototypes" in arrays:
        semantic = Semantic(*(arrays[name] for name in ("semantic_weights", "semantic_bias", "prototypes", "first")))
    idf, weights, bias = (arrays[name] for name in ("idf", "lexical_weights", "lexical_bias"))
    return Heads(
        labels=manifest.labels,
        lexical=Lexical(manifest.labels, vocabulary, idf, weights, bias, numbers.unseen_idf),
        semantic=semantic,
        lexical_stage=stage_of(numbers.lexical_in_scope, numbers.lexical_is_right, arrays, "lexical"),
        full_stage=stage_of(numbers.full_in_scope, numbers.full_is_right, arrays, "full"),
        lexical_weight=numbers.lexical_weight,
        early=numbers.early,
        languages=frozenset(manifest.languages),
        relevance=relevance_of(numbers.relevance, arrays),
        digest=manifest.heads_digest,
    )


def read_success(folder: Path) -> bytes | None:
    """What `SUCCESS_FILE` holds; None where the manifest names none.

    Raises:
        ModelError: it is missing, or is not what the manifest says; or there is no manifest to be read.
    """
    manifest = read_manifest(folder)
    return _read_verified(folder, SUCCESS_FILE, manifest) if SUCCESS_FILE in manifest.files else None


def read_manifest(folder: Path) -> Manifest:
    """Read `manifest.json` without opening the files it names.

    Raises:
        ModelError: it is missing, or no manifest of this format.
    """
    path = folder / MANIFEST_FILE
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error}); {_fix(None)}") from error
    except ValidationError as error:
        found = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'manifest'}: {each['msg']}" for each in error.errors())
        raise ModelError(f"{path} is not a model's manifest of format {FORMAT} ({found}); {_fix(None)}") from error


def _fix(made_by: str | None) -> str:
    if made_by is None:
        return "write the folder again with the command that made it: `agency-router train` or `agency-router retrain`"
    return f"write the folder again with `agency-router {made_by}`"


def _vocabulary_of(lexical: Lexical) -> bytes:
    return "\n".join(sorted(lexical.vocabulary, key=lexical.vocabulary.__getitem__)).encode()


def _read_verified(folder: Path, name: str, manifest: Manifest) -> bytes:
    path, expected = folder / name, manifest.files[name].sha256
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error}), expected sha256 {expected}; {manifest.fix}") from error
    found = sha256(content).hexdigest()
    if found != expected:
        told = f"expected sha256 {expected}, found {found}"
        raise ModelError(f"{path} is not the file of the manifest: {told}; {manifest.fix}")
    return content

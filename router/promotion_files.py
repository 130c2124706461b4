"""Model folders of promotions: checked, and copied beside the store so that they cannot vanish."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from pydantic import ValidationError

from feedback.promote import Check
from feedback.success_slates import Slates
from intent.heads import Heads
from intent.model_folder import MANIFEST_FILE, load_heads, read_manifest
from models.errors import ModelError
from models.exam_report import EXAM_FILE, ExamReport
from models.promotion import Promotion
from router.stores.sqlite import sqlite_file
from router.success_file import load_success, slates_of


class KeptModel(NamedTuple):
    """What the copy of a promotion's folder holds.

    Attributes:
        heads: the classifiers.
        success: the success heads that go with them; None where there are none.
    """

    heads: Heads
    success: Slates | None


class Examined(NamedTuple):
    """A model folder and what speaks for it.

    Attributes:
        digest: of the model (`Manifest.digest`).
        encoder_id: of its vectors; None where it does without.
    """

    digest: str
    encoder_id: str | None
    checks: tuple[Check, ...]


def models_folder(store_url: str) -> Path:
    """Where the copies are: `<store>.models` beside the store's file."""
    return models_beside(sqlite_file(store_url))


def models_beside(file: Path) -> Path:
    """The same of a store's file, or of a backup of one."""
    return file.with_name(f"{file.name}.models")


def examine(folder: Path, encoder_id: str) -> Examined:
    """What speaks for a model folder before anything was served by it. Blocks while it is read.

    Args:
        folder: as `retrain` writes it.
        encoder_id: of the encoder that serves.

    Raises:
        ModelError: there is no manifest to be read.
    """
    manifest = read_manifest(folder)
    checks = [
        _whole(folder, encoder_id),
        _same_encoder(manifest.encoder_id, encoder_id),
        _passed(folder, manifest.digest),
    ]
    return Examined(manifest.digest, manifest.encoder_id, tuple(checks))


def keep(folder: Path, models: Path, digest: str) -> Path:
    """Copy a model folder to `models/<digest>`, and check the copy. Blocks meanwhile.

    Raises:
        ModelError: it cannot be copied, or has changed meanwhile.
    """
    kept, coming = models / digest, models / f".{digest}.{uuid4().hex}"
    if holds_model(kept, digest):
        return kept
    try:
        coming.mkdir(parents=True)
        # the manifest last: a copy that was cut short has none
        for name in (*read_manifest(folder).files, EXAM_FILE, MANIFEST_FILE):
            shutil.copyfile(folder / name, coming / name)
        if not holds_model(coming, digest):
            raise ModelError(f"{folder} has changed while it was copied: promote it again")
        shutil.rmtree(kept, ignore_errors=True)
        os.replace(coming, kept)
    except OSError as error:
        raise ModelError(f"{folder} cannot be copied to {kept} ({error}): make room, or let it be written") from error
    finally:
        shutil.rmtree(coming, ignore_errors=True)
    return kept


def kept_model(promotion: Promotion, models: Path, encoder_id: str) -> KeptModel:
    """What a promotion puts in force, out of its copy. Blocks while it is read.

    Raises:
        ModelError: the copy is missing or altered, or its vectors are those of another encoder.
    """
    folder = models / promotion.digest
    heads = load_heads(folder, encoder_id=encoder_id)
    found = read_manifest(folder).digest
    if found != promotion.digest:
        raise ModelError(f"{folder} holds the model {found}: roll promotion {promotion.promotion_id} back")
    return KeptModel(heads, slates_of(folder, encoder_id))


def holds_model(folder: Path, digest: str) -> bool:
    """Whether a folder holds that model, whole. Blocks while it is read."""
    try:
        load_heads(folder)
        return read_manifest(folder).digest == digest
    except ModelError:
        return False


def _whole(folder: Path, encoder_id: str) -> Check:
    try:
        load_heads(folder)
        load_success(folder, encoder_id=encoder_id)
    except ModelError as error:
        return Check("folder", False, str(error), "retrain once more, and leave the folder as it was written")
    return Check("folder", True, "all files are those of the manifest")


def _same_encoder(wanted: str | None, encoder_id: str) -> Check:
    if wanted is None or wanted == encoder_id:
        return Check("encoder", True, "its vectors are those of the encoder that serves")
    told = f"its vectors are of encoder {wanted}, {encoder_id} serves"
    return Check("encoder", False, told, "retrain without --fine-tune, or serve it with --model after a restart")


def _passed(folder: Path, digest: str) -> Check:
    again = "write the folder again with `agency-router retrain`"
    try:
        report = ExamReport.model_validate_json((folder / EXAM_FILE).read_bytes())
    except FileNotFoundError:
        return Check("exam", False, f"there is no {EXAM_FILE}: a model that nobody examined is not promoted", again)
    except OSError as error:
        return Check("exam", False, f"{EXAM_FILE} cannot be read ({error})", again)
    except ValidationError as error:
        found = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'exam'}: {each['msg']}" for each in error.errors())
        return Check("exam", False, f"{EXAM_FILE} is no exam ({found})", again)
    if report.model_digest != digest:
        return Check("exam", False, f"{EXAM_FILE} is of another model, {report.model_digest}", again)
    if not report.passes:
        return Check("exam", False, "; ".join(report.refusals), "retrain with more, or better, examples")
    held_out = report.held_out
    told = f"{held_out.right_after} of {held_out.n} held-out texts are read right, {held_out.right_before} before"
    return Check("exam", True, told)

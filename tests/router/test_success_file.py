from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feedback.fit_success import Evidence, fit_success
from feedback.success_features import features_of
from feedback.success_heads import SuccessHeads
from intent.embedder import FileRecord
from intent.model_folder import MANIFEST_FILE, SUCCESS_FILE, Origin, load_heads, read_manifest, save_heads
from models.errors import ModelError
from models.exam_report import EXAM_FILE, ExamReport
from router.promotion_files import examine, keep
from router.success_file import load_success
from tests.router.promotions import ENCODER, good_heads

AGENT = "default/shop/1.0.0"


def success_heads() -> SuccessHeads:
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    evidence = {AGENT: Evidence(np.arange(60), (vectors[:, 0] > 0).astype(float))}
    features = features_of(["where is my parcel?"] * 60)
    return fit_success(features, vectors, evidence, encoder_id=ENCODER, seed=0, least_outcomes=50)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_heads(good_heads(), tmp_path / "model", Origin(encoder_id=ENCODER, made_by="retrain"), None, CONTENT)
    return tmp_path / "model"


CONTENT = success_heads().to_bytes()


def test_heads_of_a_folder_predict_as_they_did_before(folder: Path) -> None:
    found = load_success(folder, encoder_id=ENCODER)
    assert found is not None
    vector = np.eye(8, dtype="<f4")[2].tobytes()
    assert found.predict("Is it late?", vector) == success_heads().predict("Is it late?", vector)
    assert found.agents == (AGENT,)


def test_a_folder_without_them_has_none(tmp_path: Path) -> None:
    save_heads(good_heads(), tmp_path, Origin(encoder_id=ENCODER))
    assert load_success(tmp_path) is None


def test_those_of_a_model_that_was_there_before_are_gone(folder: Path) -> None:
    save_heads(good_heads(), folder, Origin(encoder_id=ENCODER))
    assert load_success(folder) is None
    assert not (folder / SUCCESS_FILE).exists()


def test_an_altered_file_is_refused_by_all_who_load_the_folder(folder: Path) -> None:
    content = (folder / SUCCESS_FILE).read_bytes()
    (folder / SUCCESS_FILE).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    told = r"success_heads\.npz is not the file of the manifest: expected sha256 .* again with `agency-router retrain`$"
    for load in (load_success, load_heads):
        with pytest.raises(ModelError, match=told):
            load(folder)


def test_a_missing_file_is_told_with_the_way_out(folder: Path) -> None:
    (folder / SUCCESS_FILE).unlink()
    with pytest.raises(ModelError, match=r"success_heads\.npz cannot be read .* again with `agency-router retrain`$"):
        load_success(folder)


def test_a_file_that_the_manifest_knows_and_that_holds_no_heads_is_refused(folder: Path) -> None:
    (folder / SUCCESS_FILE).write_bytes(b"no archive")
    manifest: dict[str, Any] = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest["files"][SUCCESS_FILE] = FileRecord.of(b"no archive").model_dump()
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ModelError, match=r"success_heads\.npz: these are no success heads .*`retrain`"):
        load_success(folder)


def test_vectors_of_another_encoder_are_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match=f"fitted with the vectors of encoder {ENCODER}, the encoder at hand is other"):
        load_success(folder, encoder_id="other")


def test_a_folder_with_heads_is_another_model_and_reads_the_same(folder: Path, tmp_path: Path) -> None:
    plain = save_heads(good_heads(), tmp_path / "plain", Origin(encoder_id=ENCODER))
    manifest = read_manifest(folder)
    assert manifest.digest != plain.digest
    assert manifest.heads_digest == plain.digest == load_heads(folder).digest


def test_they_travel_with_the_folder_that_is_promoted(folder: Path, tmp_path: Path) -> None:
    digest = read_manifest(folder).digest
    exam = ExamReport(model_digest=digest, made_at=1, passes=True)
    (folder / EXAM_FILE).write_text(exam.model_dump_json(), encoding="utf-8")
    assert all(check.is_met for check in examine(folder, ENCODER).checks)
    kept = keep(folder, tmp_path / "models", digest)
    assert (kept / SUCCESS_FILE).read_bytes() == CONTENT
    assert keep(folder, tmp_path / "models", digest) == kept

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from intent.heads import Heads
from intent.model_folder import ARRAYS_FILE, MANIFEST_FILE
from models.errors import ModelError
from models.exam_report import EXAM_FILE
from models.promotion import Promotion, PromotionStage
from router.promotion_files import Examined, examine, keep, kept_model, models_folder
from tests.router.promotions import ENCODER, bad_heads, good_heads, model_folder


@pytest.fixture(scope="module")
def heads() -> Heads:
    return good_heads()


@pytest.fixture
def folder(tmp_path: Path, heads: Heads) -> Path:
    return model_folder(tmp_path / "model", heads)


def promotion_of(digest: str) -> Promotion:
    stage = PromotionStage.SHADOW
    return Promotion(promotion_id=4, folder="/m", digest=digest, stage=stage, created_at=0, updated_at=0)


def missing(examined: Examined) -> dict[str, str]:
    """Name → what was found, of all evidence that is missing; each says what to do."""
    assert [check.name for check in examined.checks] == ["folder", "encoder", "exam"]
    assert all(check.fix for check in examined.checks if not check.is_met)
    return {check.name: check.told for check in examined.checks if not check.is_met}


def test_a_whole_folder_that_passed_its_exam_lacks_nothing(folder: Path) -> None:
    examined = examine(folder, ENCODER)
    assert missing(examined) == {}
    assert examined.encoder_id == ENCODER
    assert "95 of 100 held-out texts are read right, 90 before" in examined.checks[2].told


def test_a_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"manifest\.json cannot be read"):
        examine(tmp_path, ENCODER)


def test_an_altered_file_is_found(folder: Path) -> None:
    content = bytearray((folder / ARRAYS_FILE).read_bytes())
    content[100] ^= 1
    (folder / ARRAYS_FILE).write_bytes(bytes(content))
    assert "expected sha256" in missing(examine(folder, ENCODER))["folder"]


def test_vectors_of_another_encoder_are_refused_and_words_need_none(tmp_path: Path, heads: Heads) -> None:
    other = model_folder(tmp_path / "other", heads, encoder_id="e5")
    assert missing(examine(other, ENCODER))["encoder"] == f"its vectors are of encoder e5, {ENCODER} serves"
    words = model_folder(tmp_path / "words", heads, encoder_id=None)
    assert missing(examine(words, ENCODER)) == {}


def test_an_exam_is_needed_and_must_be_passed_by_this_very_model(tmp_path: Path, folder: Path, heads: Heads) -> None:
    failed = model_folder(tmp_path / "failed", heads, refusals=["2 golden rows are lost: g-1, g-7"])
    assert missing(examine(failed, ENCODER)) == {"exam": "2 golden rows are lost: g-1, g-7"}
    other = model_folder(tmp_path / "other", bad_heads())
    shutil.copy(other / EXAM_FILE, folder / EXAM_FILE)
    assert "is of another model" in missing(examine(folder, ENCODER))["exam"]
    (folder / EXAM_FILE).write_text('{"passes": true}')
    assert "exam.json is no exam (model_digest: Field required" in missing(examine(folder, ENCODER))["exam"]
    (folder / EXAM_FILE).unlink()
    assert "there is no exam.json" in missing(examine(folder, ENCODER))["exam"]


def test_the_copy_serves_when_the_folder_is_gone(folder: Path, tmp_path: Path, heads: Heads) -> None:
    models, digest = tmp_path / "models", examine(folder, ENCODER).digest
    kept = keep(folder, models, digest)
    shutil.rmtree(folder)
    assert kept == models / digest
    assert kept_model(promotion_of(digest), models, ENCODER).heads.labels == heads.labels
    assert [path.name for path in models.iterdir()] == [digest]


def test_a_copy_that_is_whole_is_kept_and_a_broken_one_is_made_again(folder: Path, tmp_path: Path) -> None:
    models, digest = tmp_path / "models", examine(folder, ENCODER).digest
    kept = keep(folder, models, digest)
    (kept / "mark").touch()
    keep(folder, models, digest)
    assert (kept / "mark").exists()
    (kept / MANIFEST_FILE).unlink()
    keep(folder, models, digest)
    assert not (kept / "mark").exists()
    assert kept_model(promotion_of(digest), models, ENCODER).heads.labels


def test_a_folder_that_changes_while_it_is_copied_is_not_kept(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has changed while it was copied"):
        keep(folder, tmp_path / "models", "0" * 64)
    (folder / ARRAYS_FILE).unlink()
    with pytest.raises(ModelError, match="cannot be copied"):
        keep(folder, tmp_path / "models", "0" * 64)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_copy_of_another_model_is_not_served(folder: Path, tmp_path: Path) -> None:
    models, digest = tmp_path / "models", examine(folder, ENCODER).digest
    keep(folder, models, digest)
    (models / digest).rename(models / ("1" * 64))
    with pytest.raises(ModelError, match="roll promotion 4 back"):
        kept_model(promotion_of("1" * 64), models, ENCODER)
    with pytest.raises(ModelError, match="cannot be read"):
        kept_model(promotion_of(digest), models, ENCODER)


def test_copies_lie_beside_the_store(tmp_path: Path) -> None:
    assert models_folder(f"sqlite:///{tmp_path}/router.db") == tmp_path / "router.db.models"


def test_what_is_in_the_manifest_beside_the_model_makes_no_other_model(folder: Path) -> None:
    before = examine(folder, ENCODER).digest
    manifest = json.loads((folder / MANIFEST_FILE).read_text())
    (folder / MANIFEST_FILE).write_text(json.dumps({**manifest, "metrics": {"note": "copied"}}))
    assert examine(folder, ENCODER).digest == before

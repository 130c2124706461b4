from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.model_folder import ARRAYS_FILE, read_manifest
from models.errors import ModelError
from models.promotion import Promotion, PromotionStage
from models.settings import Settings
from router.permit import OPEN
from router.promotion_files import holds_model, keep, models_beside, models_folder
from router.running import Parts, running
from router.store_copies import back_up, put_back
from router.stores.open import open_store
from tests.builders import FakeClock, request
from tests.router.promotions import CARDS, SAID, bad_heads, good_heads, model_folder
from tests.router.stores.make_store_0001 import STORE_0001

PARCEL = SAID["track_parcel"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    return model_folder(folder / "good", good_heads()), model_folder(folder / "bad", bad_heads())


def url_of(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return f"sqlite:///{folder}/store.db"


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def promoted(url: str, folder: Path, stage: PromotionStage) -> str:
    """Put a model in a stage, as `promote` would with all evidence; its digest."""
    digest = read_manifest(folder).digest
    keep(folder, models_folder(url), digest)
    row = Promotion(promotion_id=0, folder=str(folder), digest=digest, stage=stage, created_at=5, updated_at=5)
    async with open_store(url) as store:
        await store.promotions.add(row)
    return digest


@asynccontextmanager
async def serving(url: str, folder: Path) -> AsyncIterator[Parts]:
    cards = folder / "cards.json"
    cards.write_text(json.dumps({"agents": [each.model_dump(mode="json") for each in CARDS]}))
    settings = Settings(store=url, classifier=False, cards=(cards,), watch=False)
    async with running(settings, embedder=DummyEmbedder(), clock=FakeClock()) as parts:
        await parts["readiness"].ready.wait()
        await parts["promotion"].follower.follow()
        yield parts


async def intent_read(parts: Parts) -> str | None:
    decision, _ = await parts["service"].route(request(utterance=PARCEL), OPEN)
    return decision.intent.name if decision.intent else None


async def test_what_was_promoted_serves_from_a_backup_that_was_restored_elsewhere(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    _, bad = folders
    url, elsewhere = url_of(tmp_path / "here"), url_of(tmp_path / "elsewhere")
    digest = await promoted(url, bad, PromotionStage.FULL)
    async with serving(url, tmp_path) as parts:
        assert await intent_read(parts) == "refund_status"
        made = await back_up(url, tmp_path / "copy.db")
    assert made == (tmp_path / "copy.db.models", (digest,), ())
    shutil.rmtree(tmp_path / "here")
    back = await put_back(tmp_path / "copy.db", elsewhere)
    assert back == (models_folder(elsewhere), (digest,), ())
    shutil.rmtree(tmp_path / "copy.db.models")
    async with serving(elsewhere, tmp_path) as parts:
        full = parts["promotion"].follower.now.full
        assert full is not None
        assert (full.digest, await intent_read(parts)) == (digest, "refund_status")
        assert parts["readiness"].problems == {}


async def test_models_that_a_rollback_may_put_in_force_go_along_and_ended_ones_do_not(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    good, bad = folders
    url = url_of(tmp_path / "here")
    before = await promoted(url, good, PromotionStage.SUPERSEDED)
    await promoted(url, bad, PromotionStage.ROLLED_BACK)
    made = await back_up(url, tmp_path / "copy.db")
    assert (made.digests, made.missing) == ((before,), ())
    assert names(made.folder) == [before]


async def test_a_model_that_is_nowhere_is_told_and_keeps_no_backup_from_being_made_or_restored(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    url, elsewhere = url_of(tmp_path / "here"), url_of(tmp_path / "elsewhere")
    digest = await promoted(url, folders[0], PromotionStage.FULL)
    arrays = models_folder(url) / digest / ARRAYS_FILE
    arrays.write_bytes(arrays.read_bytes()[:-1])
    assert await back_up(url, tmp_path / "copy.db") == (tmp_path / "copy.db.models", (), (digest,))
    assert not (tmp_path / "copy.db.models").exists()
    assert (await put_back(tmp_path / "copy.db", elsewhere)).missing == (digest,)
    # one that the store has already need not be in the backup
    keep(folders[0], models_folder(elsewhere), digest)
    assert (await put_back(tmp_path / "copy.db", elsewhere)).digests == (digest,)


async def test_a_backup_without_promotions_is_one_file(tmp_path: Path) -> None:
    url = url_of(tmp_path / "here")
    shutil.copy(STORE_0001, tmp_path / "here" / "store.db")
    assert (await back_up(url, tmp_path / "copy.db")).digests == ()
    assert names(tmp_path) == ["copy.db", "here"]


async def test_what_fails_puts_nothing_in_its_place(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    url = url_of(tmp_path / "here")
    digest = await promoted(url, folders[0], PromotionStage.FULL)
    out = tmp_path / "copy.db"
    models_beside(out).write_text("in the way")
    with pytest.raises(ModelError, match="cannot be copied"):
        await back_up(url, out)
    assert not out.exists()
    assert holds_model(models_folder(url) / digest, digest)

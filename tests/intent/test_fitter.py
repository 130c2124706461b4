from __future__ import annotations

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.fitter import FitError, fit_apart
from intent.heads import Heads
from intent.model_folder import Origin, load_heads, read_manifest
from models.errors import RouterError
from tests.intent.fitted import BOTH, examples_on, heads_of, vectors_on
from tests.router.waiting import eventually

MINUTE_S = 60.0
PAIRS = [(example.text, example.intent) for example in examples_on(BOTH)]
VECTORS = vectors_on(examples_on(BOTH))
ORIGIN = Origin(encoder_id="dummy-64", n_examples=len(PAIRS), data={"examples": "abc"})


def children() -> set[int]:
    """Processes that this one started and has not seen the end of; zombies are among them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it is gone since
            continue
        if int(after_name[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def assert_equal_scores(one: Heads, other: Heads) -> None:
    assert one.labels == other.labels
    allowed = np.ones(len(one.labels), dtype=np.bool_)
    for text in ("cancel it please", "where is my parcel", "帮我取消订单", "zzz"):
        scores = [heads.lexical.score(text) for heads in (one, other)]
        np.testing.assert_array_equal(scores[0].scores, scores[1].scores)
        assert scores[0].coverage == scores[1].coverage
        vector = DummyEmbedder().embed(text).vector
        ranked = [heads.by_both(score, vector, allowed, 3) for heads, score in zip((one, other), scores, strict=True)]
        assert ranked[0].places == ranked[1].places
        assert ranked[0].confidences == pytest.approx(ranked[1].confidences, rel=1e-5)


async def test_heads_fitted_apart_score_like_those_fitted_here_whatever_the_working_directory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "hostile"
    for package in ("intent", "models", "numpy"):
        (hostile / package).mkdir(parents=True)
        (hostile / package / "__init__.py").write_text("raise SystemExit('taken over')")
    (hostile / "json.py").write_text("raise SystemExit('taken over')")
    monkeypatch.chdir(hostile)
    keep = tmp_path / "deep" / "kept"
    heads = await fit_apart(PAIRS, VECTORS, origin=ORIGIN, timeout_s=MINUTE_S, keep=keep)
    assert heads.semantic is not None
    assert_equal_scores(heads, heads_of(BOTH))
    # and the folder holds the same
    assert_equal_scores(load_heads(keep, encoder_id="dummy-64"), heads)
    manifest = read_manifest(keep)
    assert (manifest.data, manifest.n_examples) == ({"examples": "abc"}, len(PAIRS))
    assert os.listdir(tmp_path / "deep") == ["kept"]


async def test_what_was_kept_is_replaced_whole(tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    for folder in (keep, tmp_path / "kept.new", tmp_path / "kept.old"):
        folder.mkdir()
        (folder / "left_over.txt").write_text("half a folder")
    await fit_apart(PAIRS[:4], {}, origin=Origin(), timeout_s=MINUTE_S, keep=keep)
    assert "left_over.txt" not in os.listdir(keep)
    assert set(load_heads(keep).labels) == {intent for _, intent in PAIRS[:4]}
    assert os.listdir(tmp_path) == ["kept"]


async def test_a_folder_that_cannot_be_kept_is_a_warning_and_the_heads_are_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    heads = await fit_apart(PAIRS, VECTORS, origin=ORIGIN, timeout_s=MINUTE_S, keep=tmp_path / "file" / "kept")
    assert len(heads.labels) == 3
    assert "the classifiers are not kept" in caplog.text


async def test_a_job_that_fails_is_an_error_with_its_last_line_and_what_was_kept_stays(tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    keep.mkdir()
    (keep / "manifest.json").write_text("old")
    before = children()
    with pytest.raises(FitError, match=r"failed: ValueError: .* need at least 2 intents, the examples have 1$"):
        await fit_apart(PAIRS[:1], VECTORS, origin=ORIGIN, timeout_s=MINUTE_S, keep=keep)
    assert (keep / "manifest.json").read_text() == "old"
    assert children() <= before
    assert (FitError.code, issubclass(FitError, RouterError)) == ("fit_failed", True)


async def test_a_job_that_takes_too_long_is_killed_and_leaves_no_process(tmp_path: Path) -> None:
    before = children()
    with pytest.raises(FitError, match="longer than 0 s"):
        await fit_apart(PAIRS, VECTORS, origin=ORIGIN, timeout_s=0.05, keep=tmp_path / "kept")
    assert children() <= before
    assert os.listdir(tmp_path) == []


async def test_who_gives_up_takes_the_process_along() -> None:
    before = children()
    task = asyncio.create_task(fit_apart(PAIRS, VECTORS, origin=ORIGIN, timeout_s=MINUTE_S))
    await eventually(lambda: bool(children() - before))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() <= before


async def test_no_room_for_the_job_is_a_failed_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(FitError, match="nowhere"):
        await fit_apart(PAIRS, VECTORS, origin=ORIGIN, timeout_s=MINUTE_S)

from __future__ import annotations

from pathlib import Path

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.model_folder import MANIFEST_FILE, SUCCESS_FILE, load_heads, read_manifest
from models.errors import ModelError
from models.exam_report import EXAM_FILE
from router.retraining.job import Job
from router.retraining.lock import locked
from router.retraining.run import Run
from router.success_file import load_success
from tests.builders import START_MS, FakeClock
from tests.router.retraining.outcomes import logged
from tests.router.retraining.test_run import STEPS, StoppedError, report_of, some_outcomes, stop_after
from tests.router.retraining.world import make_store, retrain


def test_outcomes_become_success_heads_that_are_named_in_the_manifest(tmp_path: Path) -> None:
    url, out = make_store(tmp_path, logged(1200)), tmp_path / "out"
    retrain(url, out)
    exam, manifest = report_of(out).success, read_manifest(out)
    assert exam is not None
    assert exam.is_kept
    assert exam.n_outcomes == {"default/shop/1.0.0": 600, "default/travel/1.0.0": 600}
    assert exam.gain is not None
    assert exam.gain > 0.03  # 0.06 where this was written
    heads = load_success(out, encoder_id=DummyEmbedder().encoder_id)
    assert heads is not None
    assert heads.n_outcomes.tolist() == [600, 600]
    # whatever words alone would tell: without a vector nobody could ask the heads
    assert load_heads(out).early > 1
    assert SUCCESS_FILE in manifest.files
    assert manifest.made_by == "retrain"
    assert report_of(out).model_digest == manifest.digest
    assert manifest.metrics["exam"]["success"] == exam.model_dump(mode="json")

    # the next model takes its place, and has no heads without outcomes
    (tmp_path / "next").mkdir()
    retrain(make_store(tmp_path / "next", some_outcomes()), out)
    assert load_success(out) is None
    assert load_heads(out).early <= 1
    assert report_of(out).success is not None


@pytest.mark.parametrize("step", ["gather", "fit_success", "exam"])
def test_a_run_that_was_ended_makes_the_same_success_heads(step: str, tmp_path: Path) -> None:
    url = make_store(tmp_path, logged(1200))
    retrain(url, tmp_path / "whole")
    job = Job(url, tmp_path / "cut")
    with pytest.raises(StoppedError):
        Run(job, DummyEmbedder(), FakeClock(START_MS), after=stop_after(step)).run()
    rest = Run(job, DummyEmbedder(), FakeClock(START_MS + 5000))
    rest.run()
    assert rest.done == STEPS[STEPS.index(step) + 1 :]
    for name in (SUCCESS_FILE, EXAM_FILE, MANIFEST_FILE):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_success_heads_lack_is_told_and_stands_in_nobodys_way(tmp_path: Path) -> None:
    retrain(make_store(tmp_path, logged(100)), tmp_path / "out")
    report = report_of(tmp_path / "out")
    assert report.success is not None
    assert report.success.why == (
        "an agent needs 500 outcomes that count, on 50 texts; default/shop/1.0.0 has 50 on 50;"
        " default/travel/1.0.0 has 50 on 50"
    )
    assert not any("success" in refusal for refusal in report.refusals)
    assert not (tmp_path / "out" / SUCCESS_FILE).exists()


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    url, out = make_store(tmp_path, some_outcomes()), tmp_path / "out"
    with locked(out):
        with pytest.raises(ModelError, match=f"another `retrain` is writing to {out}: wait .* or name another --out"):
            retrain(url, out)
        retrain(url, tmp_path / "other")
    assert not out.exists()
    retrain(url, out)
    assert report_of(out).model_digest == report_of(tmp_path / "other").model_digest

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.evaluate import read_all
from intent.model_folder import MANIFEST_FILE, RETRAIN_FOLDER, load_heads, read_manifest
from models.errors import ModelError, StoreError
from models.events import Row
from models.exam_report import EXAM_FILE, ExamReport
from router.retraining.job import Job
from router.retraining.kept import MOST_OF_CALLER
from router.retraining.run import Run
from router.retraining.state import MOST_AGE_MS
from tests.builders import START_MS, FakeClock
from tests.router.retraining.world import (
    NOW_MS,
    TEXTS,
    Correction,
    CountingEmbedder,
    add_corrections,
    lines,
    make_store,
    retrain,
    settled,
)

ODD = "the paper with the sum on it, for my files"
"""What nobody has told of: it shares no word with the right intent."""

GOLDEN = [(f"{text} today", intent) for intent, texts in TEXTS.items() for text in texts]
STEPS = ["gather", "embed", "fit_success", "fit_before", "fit_after", "exam", "write"]


class StoppedError(Exception):
    """Ends a run, as a kill would between two steps."""


def stop_after(step: str) -> Callable[[str], None]:
    def told(done: str) -> None:
        if done == step:
            raise StoppedError(step)

    return told


def reads(out: Path, *texts: str) -> list[str]:
    heads, embedder = load_heads(out), DummyEmbedder()
    return [each.intent for each in read_all(heads, embedder.embed, [(text, None) for text in texts])]


def report_of(out: Path) -> ExamReport:
    return ExamReport.model_validate_json((out / EXAM_FILE).read_bytes())


def some_outcomes() -> list[Row]:
    rows: list[Row] = []
    for number, (text, intent) in enumerate(GOLDEN):
        rows += settled(f"d{number}", f"{text}, said caller {number % 3}", intent, caller=f"c{number % 3}")
    return rows


def test_an_accepted_correction_flips_a_reading_and_a_waiting_one_does_not(tmp_path: Path) -> None:
    url = make_store(tmp_path, some_outcomes())
    retrain(url, tmp_path / "before")
    (wrong,) = reads(tmp_path / "before", ODD)
    meant = next(intent for intent in ("get_invoice", "book_hotel") if intent != wrong)

    add_corrections(
        url,
        [Correction("r1", ODD, meant, wrong, state="waiting"), Correction("r2", ODD, meant, wrong, state="rejected")],
    )
    retrain(url, tmp_path / "waiting")
    assert reads(tmp_path / "waiting", ODD) == [wrong]
    assert read_manifest(tmp_path / "waiting").digest == read_manifest(tmp_path / "before").digest

    add_corrections(url, [Correction("r3", ODD, meant, wrong)])
    retrain(url, tmp_path / "accepted")
    assert reads(tmp_path / "accepted", ODD) == [meant]
    assert report_of(tmp_path / "accepted").n_examples["corrections"] == 1


def test_the_folder_is_a_model_with_its_exam_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = retrain(make_store(tmp_path, some_outcomes()), out, golden=lines(tmp_path / "golden.jsonl", GOLDEN))
    report, manifest = report_of(out), read_manifest(out)
    assert run.done == STEPS
    assert sorted(path.name for path in out.iterdir()) == ["arrays.npz", "exam.json", "manifest.json", "vocabulary.txt"]
    assert report.model_digest == manifest.digest
    assert report.made_at == NOW_MS
    assert report.passes
    assert report.golden.n == len(GOLDEN)
    assert set(manifest.data) == {"cards", "log", str(tmp_path / "golden.jsonl")}
    assert manifest.metrics["exam"]["golden"] == report.golden.model_dump(mode="json")
    assert manifest.metrics["exam"]["n_examples"] == report.n_examples
    assert not {"embed_s", "fit_s"} & set(manifest.metrics)


def test_held_out_texts_are_never_trained_on_and_both_models_read_the_same_ones(tmp_path: Path) -> None:
    out = tmp_path / "out"
    url = make_store(tmp_path, some_outcomes())
    with pytest.raises(StoppedError):
        Run(Job(url, out), DummyEmbedder(), FakeClock(START_MS), after=stop_after("gather")).run()
    plan = json.loads((out / RETRAIN_FOLDER / "plan.json").read_text())
    trained, held_out = ({row[1] for row in plan[name]} for name in ("more", "held_out"))
    assert len(held_out) >= 3
    assert not trained & held_out
    assert len(trained | held_out) == len(GOLDEN)
    Run(Job(url, out), DummyEmbedder(), FakeClock(START_MS)).run()
    report = report_of(out)
    assert report.n_held_out == {"outcomes": len(held_out)}
    assert report.held_out.n == len(held_out)
    assert sum(score.n for score in report.by_intent.values()) == len(held_out)


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_was_ended_goes_on_and_ends_the_same(step: str, tmp_path: Path) -> None:
    url = make_store(tmp_path, some_outcomes(), [Correction("r1", ODD, "get_invoice", "cancel_order")])
    golden = lines(tmp_path / "golden.jsonl", GOLDEN)
    retrain(url, tmp_path / "whole", golden=golden)

    job = Job(url, tmp_path / "cut", golden=golden)
    with pytest.raises(StoppedError):
        Run(job, DummyEmbedder(), FakeClock(START_MS), after=stop_after(step)).run()
    assert stat.S_IMODE((job.out / RETRAIN_FOLDER).stat().st_mode) == 0o700
    add_corrections(url, [Correction("r2", "a word that came later", "book_hotel")])  # the rows are those of the start
    embedder = CountingEmbedder()
    rest = Run(job, embedder, FakeClock(START_MS + 5000))
    rest.run()

    n_done = STEPS.index(step) + 1
    assert rest.done == (STEPS[n_done:] or ["write"])
    assert bool(embedder.texts) == (step == "gather")
    for name in (EXAM_FILE, MANIFEST_FILE, "arrays.npz", "vocabulary.txt"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("later", [{"seed": 1}, {"golden": "golden.jsonl"}, {"ms": MOST_AGE_MS + 1}])
def test_a_run_of_other_arguments_or_of_yesterday_begins_anew(later: dict[str, object], tmp_path: Path) -> None:
    job = Job(make_store(tmp_path, some_outcomes()), tmp_path / "out")
    with pytest.raises(StoppedError):
        Run(job, DummyEmbedder(), FakeClock(START_MS), after=stop_after("fit_after")).run()
    if "golden" in later:
        job = replace(job, golden=lines(tmp_path / "golden.jsonl", GOLDEN))
    clock = FakeClock(START_MS + float(str(later.get("ms", 0))))
    run = Run(replace(job, seed=int(str(later.get("seed", 0)))), DummyEmbedder(), clock)
    run.run()
    assert run.done == STEPS


def flood(n: int) -> list[str]:
    """Texts of parcels that one caller says to mean a hotel."""
    return [f"{TEXTS['track_parcel'][number % 6]} day {number}" for number in range(n)]


@pytest.mark.parametrize("kind", ["outcomes", "corrections"])
def test_a_thousand_rows_of_one_caller_do_not_move_another_intent(kind: str, tmp_path: Path) -> None:
    rows, corrections = some_outcomes(), []
    for number, text in enumerate(flood(1000)):
        if kind == "outcomes":
            rows += settled(f"p{number}", text, "book_hotel", caller="mallory")
        else:
            corrections.append(Correction(f"x{number}", text, "book_hotel", "track_parcel", "mallory"))
    retrain(make_store(tmp_path, rows, corrections), tmp_path / "out")
    report = report_of(tmp_path / "out")
    probes = [text for text, intent in GOLDEN if intent == "track_parcel"]
    assert reads(tmp_path / "out", *probes) == ["track_parcel"] * len(probes)
    assert report.n_left_out["over_cap"] >= 980
    assert report.n_examples[kind] <= MOST_OF_CALLER + (len(GOLDEN) if kind == "outcomes" else 0)


def test_golden_rows_that_are_lost_refuse_the_model_unless_that_is_allowed(tmp_path: Path) -> None:
    # every caller says the same false thing, and somebody has accepted it
    lies = [
        Correction(f"l{n}", f"{text} {word}", "book_hotel", intent, f"c{n}")
        for n, (text, intent, word) in enumerate(
            (text, intent, word)
            for intent in ("track_parcel", "cancel_order")
            for text in TEXTS[intent]
            for word in ("at once", "right now", "this week", "please do")
        )
    ]
    url = make_store(tmp_path, some_outcomes(), lies)
    golden = lines(tmp_path / "golden.jsonl", GOLDEN)
    retrain(url, tmp_path / "out", golden=golden)
    report = report_of(tmp_path / "out")
    assert report.golden.lost
    assert all(row.startswith("golden.jsonl:") for row in report.golden.lost)
    assert report.golden.right_after <= report.golden.right_before - len(report.golden.lost) + len(report.golden.gained)
    assert not report.passes
    assert report.refusals[0].startswith(f"golden: {len(report.golden.lost)} row(s)")

    retrain(url, tmp_path / "allowed", golden=golden, allow_golden_loss=True)
    allowed = report_of(tmp_path / "allowed")
    assert allowed.golden == report.golden
    assert not any(refusal.startswith("golden") for refusal in allowed.refusals)


def test_a_golden_text_is_not_trained_on_wherever_it_comes_from(tmp_path: Path) -> None:
    golden = lines(tmp_path / "golden.jsonl", [*GOLDEN, (ODD, "get_invoice")])
    url = make_store(
        tmp_path, settled("d1", "A bed for the night!", "book_hotel"), [Correction("r1", ODD.upper(), "get_invoice")]
    )
    retrain(
        url, tmp_path / "out", golden=golden, examples=[lines(tmp_path / "more.jsonl", [(f"{ODD}?", "get_invoice")])]
    )
    report = report_of(tmp_path / "out")
    assert report.n_left_out["golden"] == 2
    assert "corrections" not in report.n_examples
    assert "examples" not in report.n_examples


def test_the_model_in_force_is_the_one_that_is_compared_with(tmp_path: Path) -> None:
    url = make_store(tmp_path, some_outcomes())
    retrain(url, tmp_path / "base")
    retrain(url, tmp_path / "out", base=tmp_path / "base")
    report = report_of(tmp_path / "out")
    assert report.base_digest == read_manifest(tmp_path / "base").digest
    assert report.held_out.right_before == report_of(tmp_path / "base").held_out.right_after
    assert report.model_digest == report.base_digest  # the same rows make the same model
    with pytest.raises(ModelError, match="name a new folder as --out"):
        retrain(url, tmp_path / "base", base=tmp_path / "base")


def test_an_encoder_that_was_tuned_for_the_model_in_force_goes_along(tmp_path: Path) -> None:
    url = make_store(tmp_path, some_outcomes())
    retrain(url, tmp_path / "base")
    (tmp_path / "base" / "encoder").mkdir()
    (tmp_path / "base" / "encoder" / "manifest.json").write_text("{}")
    retrain(url, tmp_path / "out", base=tmp_path / "base")
    assert (tmp_path / "out" / "encoder" / "manifest.json").read_text() == "{}"


def test_a_model_that_reads_several_intents_stays_one(tmp_path: Path) -> None:
    url = make_store(tmp_path, some_outcomes())
    several = tmp_path / "several.jsonl"
    pairs = [(one, other) for one in TEXTS["track_parcel"] for other in TEXTS["get_invoice"]]
    rows = [{"text": f"{one} and {other}", "intents": ["track_parcel", "get_invoice"]} for one, other in pairs]
    several.write_text("".join(json.dumps(row) + "\n" for row in rows))
    retrain(url, tmp_path / "base", examples=[several])
    assert load_heads(tmp_path / "base").relevance is not None
    assert report_of(tmp_path / "base").n_examples["examples"] == len(pairs)
    retrain(url, tmp_path / "out", base=tmp_path / "base")
    assert load_heads(tmp_path / "out").relevance is None
    assert report_of(tmp_path / "out").refusals[-1].startswith("several intents in one text")


def test_few_rows_are_no_evidence(tmp_path: Path) -> None:
    retrain(make_store(tmp_path, settled("d1", "a bed for the night", "book_hotel")), tmp_path / "out")
    report = report_of(tmp_path / "out")
    assert not report.passes
    assert report.refusals == (
        f"not enough evidence: {report.held_out.n} held-out and golden rows, 20 are needed; pin more with --golden",
    )


def test_out_of_scope_rows_are_examined_by(tmp_path: Path) -> None:
    outside = [
        (f"{who} {what} {when}", "oos")
        for who in ("birds", "my uncle", "this river")
        for what in ("sings well", "was old", "talks of rain")
        for when in ("often", "in May", "at dusk")
    ]
    examples = lines(tmp_path / "more.jsonl", outside)
    retrain(make_store(tmp_path, some_outcomes()), tmp_path / "out", examples=[examples])
    report = report_of(tmp_path / "out")
    assert report.oos_measured_on == "held_out"
    assert report.oos_auroc is not None
    assert report.oos_auroc.after is not None
    assert report.oos_auroc.after > 0.9
    assert report.n_held_out["out_of_scope"] + report.n_examples["out_of_scope"] == len(outside)


def test_what_is_missing_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(StoreError, match="there is no store"):
        retrain(f"sqlite:///{tmp_path / 'none.db'}", out)
    empty = make_store(tmp_path)
    with pytest.raises(ModelError, match="holds no settled decision and no accepted correction"):
        retrain(empty, out)
    (tmp_path / "bare").mkdir()
    with pytest.raises(ModelError, match="fewer than 2 intents: name others with --cards"):
        retrain(make_store(tmp_path / "bare", some_outcomes(), cards=()), out)
    with pytest.raises(ModelError, match=r"no-such-file\.yaml cannot be read"):
        retrain(empty, out, cards=[tmp_path / "no-such-file.yaml"])
    with pytest.raises(ModelError, match="cannot be read"):
        retrain(empty, out, golden=tmp_path / "none.jsonl")
    several = tmp_path / "several.jsonl"
    several.write_text('{"text": "both at once", "intents": ["get_invoice", "book_hotel"]}\n')
    with pytest.raises(ModelError, match="pinned rows mean one intent each"):
        retrain(make_store(tmp_path / "bare", some_outcomes()), out, golden=several)
    assert not out.exists()
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "notes.txt").touch()
    with pytest.raises(ModelError, match="holds notes"):
        retrain(empty, tmp_path / "others")

"""bench_intents on small made-up sets with the dummy encoder: every row of the table is there, in its order."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentTypeError
from pathlib import Path

import pytest
import yaml

from benchmarks.bench_intents import without_fine_tuning
from benchmarks.data_sets import Row
from benchmarks.effort import asks, decided
from benchmarks.measured import Bench, Readings
from benchmarks.peers import Answer, add_answers
from benchmarks.report import Report
from benchmarks.tuned_rows import TUNED_SETS, sets_of
from intent.dummy_embedder import DummyEmbedder
from intent.evaluate import Read
from intent.fit_classifiers import Example
from intent.vector_cache import VectorCache
from tests.intent.labelled import OUTSIDE, THINGS, sentences

MORE_THINGS = (*THINGS, "camera", "garden", "bicycle", "coat", "lamp", "window")
SECTIONS = (
    "CLINC150: train part",
    "near out of scope",
    "BANKING77",
    "the published lists of 10 examples",
    "the cards alone",
    "the light path on CLINC150",
    "CLINC150 with its out-of-scope rows",
    "Chinese, by words",
    "all CLINC150 test requests",
    "training on",
    "for comparison: the intent of the nearest example",
)


def _write(path: Path, rows: list[Example], **more: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"text": row.text, "intent": row.intent, **more}) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cards(rows: list[Example]) -> str:
    examples: dict[str, list[str]] = {}
    for row in rows:
        examples.setdefault(row.intent, []).append(row.text)
    schemas = {"input_schema": "text", "output_schema": "text"}
    capabilities = [{"intent": intent, "examples": texts, **schemas} for intent, texts in sorted(examples.items())]
    agent = {"agent_id": "all", "namespace": "shop", "endpoint": "http://all.internal", "capabilities": capabilities}
    return yaml.safe_dump({"agents": [agent]}, sort_keys=False)


def _chinese(n: int) -> list[Example]:
    things = {"包裹": "parcel", "发票": "invoice", "账户": "account", "打印机": "printer"}
    verbs = {"请查看": "check", "请取消": "cancel", "马上寄出": "send", "现在更新": "renew"}
    pairs = [(f"{verb}{thing}", f"{verbs[verb]}_{things[thing]}") for verb in verbs for thing in things]
    return [Example(f"{text}{number}", intent) for number in range(n) for text, intent in pairs]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders that the benchmark reads, with a few made-up rows in each file."""
    folder = tmp_path_factory.mktemp("data")
    intents = folder / "intents"
    for name, rows in (
        ("clinc150", sentences(MORE_THINGS)[::2]),
        ("banking77", sentences()[::2]),
        ("hwu64", sentences()[::2]),
    ):
        third = len(rows) // 3
        _write(intents / name / "train.jsonl", rows[third:])
        _write(intents / name / "fewshot_10.jsonl", rows[third:])
        _write(intents / name / "val.jsonl", rows[third // 2 : third])
        _write(intents / name / "test.jsonl", rows[: third // 2])
        (folder / "cards").mkdir(exist_ok=True)
        (folder / "cards" / f"{name}.yaml").write_text(_cards(rows[third:]), encoding="utf-8")
    outside = [Example(text, "oos") for text in OUTSIDE]
    for part in ("oos_val", "oos_train", "oos_train_plus", "oos_test"):
        _write(intents / "clinc150" / f"{part}.jsonl", outside)
    for name, parts, lang in (
        ("xsid", ("valid", "test"), "zh"),
        ("home_assistant", ("train", "test"), "zh-CN"),
        ("crosswoz", ("train", "test"), ""),
    ):
        for part, n in zip(parts, (6, 2), strict=True):
            _write(intents / name / f"{part}.jsonl", _chinese(n), lang=lang, dup_in_train=part == "test")
    return folder


def _bench(data: Path, report: Report) -> Bench:
    return Bench(report, data / "intents", data / "cards", VectorCache(DummyEmbedder()), 1, 1, is_quick=True)


def test_every_row_is_there_in_the_order_of_the_table(data: Path) -> None:
    report = Report("title")
    without_fine_tuning(_bench(data, report), None)
    sections = list(dict.fromkeys(figure["section"] for figure in report.figures))
    assert [found[: len(wanted)] for found, wanted in zip(sections, SECTIONS, strict=True)] == list(SECTIONS)
    goals = [goal["goal"] for figure in report.figures for goal in figure["goals"]]
    for wanted in (
        ">= 0.965",
        ">= 0.98",
        ">= 0.915",
        ">= 0.935",
        ">= 0.942",
        ">= 0.87",
        ">= 0.905",
        ">= 0.7",
        "<= 0.026",
    ):
        assert wanted in goals
    assert "answered without an LLM, as shipped" in {figure["name"] for figure in report.figures}


def test_a_language_model_is_asked_for_what_is_neither_sure_nor_far(data: Path) -> None:
    bench = _bench(data, Report("title"))
    task = bench.task("clinc150", held_out="val", out_of_scope=True)
    heads = bench.trained(task).first
    texts = [task.examples[0].text, "the parcel or the invoice", "?!"]
    decisions = asyncio.run(decided(bench, heads, texts, {"accept": 0.999, "plausible": 0.0001}))
    assert [decision.action for decision in decisions] == ["invoke", "clarify", "fallback"]
    assert [asks(decision) for decision in decisions] == [False, True, False]


def test_rows_whose_text_is_in_the_train_part_are_counted_apart() -> None:
    rows = [Row("a", "x"), Row("b", "x", is_repeat=True), Row("c", "y")]
    reads = [Read(row.intent, "x", 0.9, False, 1.0) for row in rows]
    found = Readings(rows, reads, [Read(None, "x", 0.1, False, 1.0)])
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.fresh_accuracy == pytest.approx(1 / 2)
    assert (found.auroc, found.fpr95) == (1.0, 0.0)


def test_a_peer_is_judged_by_its_best_answer_and_its_score(data: Path) -> None:
    report = Report("title")
    rows = [Row("a", "x"), Row("b", "y")]
    answers = [Answer("x", 0.9), Answer(None, 0.2), Answer("x", 0.1)]
    assert add_answers(_bench(data, report), "peer", rows, answers) == 0.5
    assert [figure["value"] for figure in report.figures] == [0.5, 1.0, 0.0]


def test_sets_to_tune_are_known_ones() -> None:
    assert sets_of(",".join(TUNED_SETS)) == TUNED_SETS
    with pytest.raises(ArgumentTypeError, match="there is no banking"):
        sets_of("banking,hwu64")

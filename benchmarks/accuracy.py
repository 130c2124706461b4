"""Rows of bench_intents about what is read right, and what is told to be out of scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.data_sets import Row
from benchmarks.measured import Bench, Readings, Subject, Task, add_accuracy, add_figure
from benchmarks.report import Goal
from benchmarks.targets import CARDS_ALONE, CHINESE, NAMES, WITHHELD, Targets
from intent.evaluate import figures
from intent.fit_classifiers import Example
from router.assemble import capability_texts
from router.card_files import read_card_files

Fit = Callable[[Task, int], Subject]
"""Heads of one seed for a task."""


def clinc_in_scope(bench: Bench, subject: Subject, rows: Sequence[Row], targets: Targets) -> list[Readings]:
    """Accuracy and what is out of scope; the readings, for other rows of the report."""
    found = subject.readings(rows, bench.outside())
    report = bench.report
    add_accuracy(report, "in scope", found, Goal(">=", targets.full["clinc150"]))
    add_figure(report, "out-of-scope AUROC", found, lambda each: each.auroc, "", Goal(">=", targets.oos_auroc))
    add_figure(report, "out-of-scope FPR at 95 % recall", found, lambda each: each.fpr95, "%")
    always = subject.readings(rows, bench.outside(), early=False)
    add_figure(report, "out-of-scope AUROC with the encoder always", always, lambda each: each.auroc, "")
    shown = _shown(subject, found)
    report.add_spread("expected calibration error", [each["ece"] for each in shown], "")
    report.add_spread("macro F1", [each["macro_f1"] for each in shown], "")
    return found


def near_out_of_scope(bench: Bench, name: str, goal: float, fit: Fit) -> None:
    """Intents of a set withheld; its other intents are what is known. A seed draws them and is that of the training."""
    rows, test = bench.examples(f"{name}/train"), bench.rows(f"{name}/test")
    labels = sorted({each.intent for each in rows})
    found, always = [], []
    for seed in range(bench.n_draws):
        withheld = set(np.random.default_rng(seed).choice(labels, WITHHELD[name], replace=False).tolist())
        inside = [row for row in test if row.intent not in withheld]
        outside = [row.text for row in test if row.intent in withheld]
        subject = fit(Task([each for each in rows if each.intent not in withheld], [], [], inside), seed)
        found += subject.readings(inside, outside)
        always += subject.readings(inside, outside, early=False)
    title = f"{NAMES[name]}: {WITHHELD[name]} of {len(labels)} withheld, AUROC"
    add_figure(bench.report, title, found, lambda each: each.auroc, "", Goal(">=", goal))
    add_figure(bench.report, "  the same with the encoder always", always, lambda each: each.auroc, "")
    add_figure(bench.report, "  withheld, FPR at 95 % recall", found, lambda each: each.fpr95, "%")


def read_right(bench: Bench, title: str, subject: Subject, rows: Sequence[Row], goal: float | None) -> list[Readings]:
    """How many of the test rows are read right."""
    found = subject.readings(rows)
    note = f"{subject.trained[0].n_examples} examples"
    add_accuracy(bench.report, title, found, None if goal is None else Goal(">=", goal), note)
    return found


def cards_alone(bench: Bench) -> None:
    """Examples and descriptions of the cards."""
    for name, goal in (("clinc150", CARDS_ALONE), ("banking77", None)):
        examples = [
            Example(text, capability.intent)
            for card in read_card_files([bench.cards / f"{name}.yaml"]).cards
            if card.enabled
            for capability in card.capabilities
            for text in capability_texts(capability)
        ]
        rows = bench.rows(f"{name}/test")
        subject = bench.trained(Task(examples, [], [], rows))
        read_right(bench, NAMES[name], subject, rows, goal)
        found = subject.readings(rows, bench.outside())
        name = "  AUROC against the out-of-scope rows of CLINC150"
        add_figure(bench.report, name, found, lambda each: each.auroc, "")


def stated_risk(bench: Bench, subject: Subject, found: Sequence[Readings], targets: Targets) -> None:
    """Wrong and answered at thresholds that come from validation rows."""
    report = bench.report
    shown = _shown(subject, found)
    for risk in ("0.01", "0.02", "0.05"):
        wrong, answered = targets.most_wrong.get(risk), targets.answered.get(risk)
        name = f"stated as {float(risk):.0%} of all requests"
        report.add_spread(
            f"{name}: wrong",
            [each["wrong_at_risk"][risk] for each in shown],
            "%",
            None if wrong is None else Goal("<=", wrong),
        )
        report.add_spread(
            f"{name}: answered in scope",
            [each["coverage_at_risk"][risk] for each in shown],
            "%",
            None if answered is None else Goal(">=", answered),
        )


def chinese(bench: Bench, *, judged: bool) -> None:
    """Chinese sets, trained in Chinese.

    Args:
        bench: by its encoder.
        judged: whether the targets are for it.
    """
    for name, parts, lang in (
        ("xsid", ("valid", "test"), "zh"),
        ("home_assistant", ("train", "test"), "zh-CN"),
        ("crosswoz", ("train", "test"), ""),
    ):
        examples, rows = bench.examples(f"{name}/{parts[0]}", lang), bench.rows(f"{name}/{parts[1]}", lang)
        subject = bench.trained(Task(examples, [], [], rows))
        read_right(bench, f"{name} {lang}".strip(), subject, rows, CHINESE[name] if judged else None)


def cross_lingual(bench: Bench) -> None:
    """English examples, Chinese requests."""
    rows = bench.rows("xsid/test", "zh")
    subject = bench.trained(Task(bench.examples("xsid/valid", "en"), [], [], rows))
    read_right(bench, "xsid: English examples, Chinese test", subject, rows, None)


def _shown(subject: Subject, found: Sequence[Readings]) -> list[dict[str, Any]]:
    pairs = zip(subject.trained, found, strict=True)
    return [figures(each.heads, readings.all) for each, readings in pairs]

"""How well sentences are read after training on the public sets: the rows of the project's table, in its order.

`python -m benchmarks.bench_intents --data DIR [--cache FOLDER] [--semantic-router PYTHON] [--multilingual ENCODER]
[--fine-tune SETS [--tuned-alone]] [--seeds 5] [--quick] [--markdown FILE] [--json]`

Full train part, shared test part. Confidences and thresholds come from training and validation rows, by
cross-validation where there are none; a test file is opened to be measured on and for nothing else.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from benchmarks import accuracy, effort, peers
from benchmarks.measured import N_SEEDS, Bench, Subject, Task
from benchmarks.report import Quantiles, Report
from benchmarks.targets import NAMES, WITHOUT_FINE_TUNING
from benchmarks.tuned_rows import TUNED_SETS, sets_of, with_fine_tuning
from intent.embedder import bundled
from intent.train import train
from intent.vector_cache import VectorCache
from models.ports import Embedder
from models.settings import Settings
from router.reading_parts import encoder_of


def without_fine_tuning(bench: Bench, python: Path | None) -> None:
    """All rows of the first column, then what others do."""
    report, targets = bench.report, WITHOUT_FINE_TUNING
    task = bench.task("clinc150", held_out="val", out_of_scope=True)
    clinc = bench.trained(task)
    report.section(f"CLINC150: train part, confidences on val and {len(task.out_of_scope)} out-of-scope texts")
    found = accuracy.clinc_in_scope(bench, clinc, task.rows, targets)
    ours = {"clinc150": fmean(each.accuracy for each in found)}
    report.section("near out of scope: intents of the set withheld, cross-validated")
    for name, goal in targets.near_auroc.items():
        accuracy.near_out_of_scope(bench, name, goal, lambda task, seed: _of_seed(bench, task, seed))
    report.section("BANKING77, all of its train part, cross-validated; HWU64, confidences on val")
    for name, held_out in (("banking77", ""), ("hwu64", "val")):
        full = bench.task(name, held_out=held_out)
        readings = accuracy.read_right(bench, NAMES[name], bench.trained(full), full.rows, targets.full[name])
        ours[name] = fmean(each.accuracy for each in readings)
    report.section("the published lists of 10 examples an intent, cross-validated")
    for name, goal in targets.few.items():
        few = bench.task(name, "fewshot_10")
        accuracy.read_right(bench, NAMES[name], bench.trained(few), few.rows, goal)
    report.section("the cards alone (examples, descriptions, names of the intents), cross-validated")
    accuracy.cards_alone(bench)
    report.section("the light path on CLINC150, and the time of a reading")
    effort.light_path(bench, clinc, found)
    texts = [*(row.text for row in task.rows), *bench.outside()]
    intake = effort.latency(bench, clinc.first, texts)
    report.section("CLINC150 with its out-of-scope rows, wrong-agent risk of all requests, fitted on val")
    accuracy.stated_risk(bench, clinc, found, targets)
    report.section("Chinese, by words")
    accuracy.chinese(bench, judged=True)
    report.section("all CLINC150 test requests with those out of scope, a language model configured")
    effort.without_llm(bench, clinc.first, texts[: len(task.rows)], texts[len(task.rows) :])
    effort.mean_intake(bench, intake)
    report.section(f"training on {len(task.examples)} examples")
    effort.training_time(bench, clinc, task)
    report.section("for comparison: the intent of the nearest example, same encoder")
    peers.nearest_example(bench)
    if python is not None:
        report.section("for comparison: semantic-router 1.1.1, same encoder")
        peers.semantic_router(bench, python, ours, Quantiles.of(intake).p50)


def multilingual(bench: Bench) -> None:
    """Chinese by an encoder that knows it."""
    bench.report.section("Chinese, with the multilingual encoder")
    accuracy.chinese(bench, judged=False)
    accuracy.cross_lingual(bench)


def run(bench: Bench, encoder: Embedder | None, options: argparse.Namespace) -> None:
    """Everything that was asked for; `encoder` is the multilingual one."""
    if not options.tuned_alone:
        bench.report.say("\nWithout fine-tuning")
        without_fine_tuning(bench, options.semantic_router)
    if encoder is not None or options.fine_tune:
        bench.report.say("\nWith fine-tuning, or with the multilingual encoder")
    with_fine_tuning(bench, options.fine_tune, options.cache / "tuned")
    if encoder is not None:
        multilingual(replace(bench, vectors=VectorCache(encoder, options.cache / "multilingual.npz")))


def _of_seed(bench: Bench, task: Task, seed: int) -> Subject:
    return Subject([train(task.examples, bench.vectors, seed=seed)], bench.vectors)


def options_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cards/ and intents/ in it")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors and tuned encoders for the next run")
    parser.add_argument(
        "--semantic-router", type=Path, metavar="PYTHON", help="python of an environment with semantic-router 1.1.1"
    )
    parser.add_argument(
        "--multilingual", metavar="ENCODER", help="a multilingual one, as the setting `encoder` names it"
    )
    parser.add_argument(
        "--fine-tune",
        type=sets_of,
        default=(),
        metavar="SETS",
        help=f"the rows with fine-tuning, minutes to hours each: some of {','.join(TUNED_SETS)}",
    )
    parser.add_argument("--tuned-alone", action="store_true", help="leave out the rows without fine-tuning")
    parser.add_argument(
        "--seeds", type=int, default=N_SEEDS, help=f"trainings of each kind; near out of scope is drawn {N_SEEDS} times"
    )
    parser.add_argument("--quick", action="store_true", help="one seed, one repeat, no cold training")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the figures there as tables")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = options_of()
    made = Report("Sentences read after training", chosen.json)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        chosen.cache = chosen.cache or Path(folder)
        chosen.cache.mkdir(parents=True, exist_ok=True)
        remembering = VectorCache(bundled(), chosen.cache / "vectors.npz")
        n_seeds, n_draws = (1, 1) if chosen.quick else (chosen.seeds, N_SEEDS)
        known = Bench(
            made, chosen.data / "intents", chosen.data / "cards", remembering, n_seeds, n_draws, is_quick=chosen.quick
        )
        run(known, None if chosen.multilingual is None else encoder_of(Settings(encoder=chosen.multilingual)), chosen)
    made.close()
    if chosen.markdown is not None:
        chosen.markdown.write_text(made.markdown(), encoding="utf-8")

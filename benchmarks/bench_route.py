"""How long a decision takes: in process, over HTTP, and beside semantic-router.

`python -m benchmarks.bench_route --data DIR [--semantic-router PYTHON] [--seconds 4] [--repeats 3] [--json]`

The test file's sentences are only what is asked; their labels are not looked at.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import uvloop

from benchmarks.data_sets import example_utterances, examples_by_intent, one_namespace, read_rows
from benchmarks.in_process import decisions_in_process
from benchmarks.index_search import search_by_size
from benchmarks.over_http import Effort, bare_echo, served_router
from benchmarks.report import Goal, Quantiles, Report
from intent.embedder import read_manifest
from router.card_files import read_card_files

TIMES_FASTER = Goal(">=", 10)
_PEER_TEXTS = 400
_WHAT = {
    "int8": "our int8 weights behind its encoder class",
    "fp32": "its local encoder on the fp32 weights (sentence-transformers)",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A set of cards and what is asked of it; `cards` is empty for the bundled example set."""

    name: str
    cards: list[Path]
    sentences: list[str]
    note: str


async def in_process(report: Report, sets: Sequence[Asked], n_calls: int, n_repeats: int) -> Quantiles:
    """Every set; the quantiles with the encoder of the last one."""
    found = None
    for asked in sets:
        report.section(f"{asked.name}: a decision in process, SQLite store and journal running")
        found = await decisions_in_process(report, asked.cards, asked.sentences, n_calls, n_repeats, asked.note)
    assert found is not None
    return found


def against_semantic_router(
    report: Report, python: Path, cards: Path, texts: Sequence[str], ours: Quantiles, n_repeats: int
) -> None:
    """The same examples as its routes, the same texts, one after the other; the faster of its two ways to be called."""
    report.section("semantic-router 1.1.1 with the same card examples as routes, in process")
    with as_file(files("intent").joinpath("weights")) as weights:
        given = {
            "weights": str(weights),
            "max_tokens": read_manifest(weights).max_tokens,
            "routes": examples_by_intent(read_card_files([cards]).cards),
            "texts": list(texts[:_PEER_TEXTS]),
            "n_repeats": n_repeats,
        }
        script = Path(__file__).with_name("semantic_router_peer.py")
        command = [str(python), str(script)]
        done = subprocess.run(command, input=json.dumps(given), check=True, stdout=subprocess.PIPE, text=True)
    found = {
        encoder: {how: Quantiles.of(repeats) for how, repeats in ways.items()}
        for encoder, ways in json.loads(done.stdout).items()
    }
    for encoder, ways in found.items():
        for how, quantiles in ways.items():
            report.add_latency(f"{_WHAT[encoder]}, {how}", quantiles)
    for encoder, ways in found.items():
        goal = TIMES_FASTER if encoder == "fp32" else None
        faster = min(quantiles.p50 for quantiles in ways.values())
        report.add(f"ours is faster (p50 with the encoder), {encoder}", faster / ours.p50, "times", goal)


def sets_of(data: Path, folder: Path) -> list[Asked]:
    """The bundled example set and CLINC150."""
    own = example_utterances()
    clinc = [row.text for row in read_rows(data / "intents/clinc150/test.jsonl")]
    distinct = list(dict.fromkeys(clinc))
    cards = one_namespace(data / "cards/clinc150.yaml", folder / "clinc150.yaml")
    return [
        Asked("example cards", [], own, f"{len(own)} sentences of its own, over and over"),
        Asked("CLINC150 cards", [cards], distinct, f"{len(distinct)} test sentences, all distinct"),
    ]


def run(report: Report, options: argparse.Namespace) -> None:
    """Everything that was asked for."""
    effort = Effort(options.seconds, options.repeats)
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        folder = Path(made)
        sets = sets_of(options.data, folder)
        clinc = sets[-1]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the server's event loop
            ours = runner.run(in_process(report, sets, options.calls, options.repeats))
        if options.semantic_router is not None:
            against_semantic_router(
                report, options.semantic_router, clinc.cards[0], clinc.sentences, ours, options.repeats
            )
        for number, asked in enumerate(sets):
            report.section(f"{asked.name}: over HTTP, one server process, the client in another")
            own = folder / str(number)
            own.mkdir()
            n_bytes = served_router(report, asked.cards, asked.sentences, own, effort, asked is clinc)
        report.section("a bare Starlette and pydantic echo: over HTTP, one server process, the client in another")
        bare_echo(report, clinc.sentences, n_bytes, folder, effort)
        report.section("search of the index, 384 values a row, exact, one thread")
        search_by_size(report, 300, options.repeats)


def options_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cards/ and intents/ in it")
    parser.add_argument(
        "--semantic-router", type=Path, metavar="PYTHON", help="python of an environment with semantic-router 1.1.1"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each run over HTTP")
    parser.add_argument("--calls", type=int, default=3000, help="decisions of each run in process")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = options_of()
    made_report = Report("Decisions: latency, throughput, memory, start-up", chosen.json)
    run(made_report, chosen)
    made_report.close()

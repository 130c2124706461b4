"""How many sentences a second a served router reads with trained classifiers.

`python -m benchmarks.bench_sentences --data DIR [--model DIR] [--seconds 4] [--repeats 3] [--json]`

Without `--model` one is trained first, by the command line: on CLINC150's train part, confidences fitted on its
validation part. The test file's sentences are only what is asked; their labels are not looked at.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.data_sets import one_namespace, permissions_of, read_rows
from benchmarks.load_client import Plan
from benchmarks.over_http import N_CONNECTIONS, Effort, Goals, loaded
from benchmarks.processes import HOST, Server, console_script, free_port, make_key, served
from benchmarks.report import Goal, Report
from router.card_files import read_card_files

SENTENCES_PER_S = Goal(">=", 1800)
BY_WORDS = Goal(">=", 0.7)
MEMORY = Goal("<", 350)
_WARM_UP_S = 1.0
_LIGHT = ("rule", "lexical")
"""Sources of a reading that needed no encoder."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A trained router and what is asked of it.

    Attributes:
        model: folder of the trained classifiers.
        cards: card file, all agents in one namespace.
    """

    model: Path
    cards: Path
    sentences: Sequence[str]


def train(data: Path, out: Path) -> dict[str, object]:
    """Train with `agency-router train`; what it said."""
    folder = data / "intents/clinc150"
    parts = {
        "--examples": ("train.jsonl.gz", "oos_train.jsonl"),
        "--val": ("val.jsonl", "oos_val.jsonl"),
    }
    options = [word for option, names in parts.items() for name in names for word in (option, str(folder / name))]
    command = [console_script(), "train", "--out", str(out), *options, "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, object] = json.loads(done.stdout)
    return told


def over_http(report: Report, asked: Asked, folder: Path, effort: Effort) -> None:
    """Serve the model, load it with sentences, and ask which stage read them."""
    store = f"sqlite:///{folder}/http.db"
    key = make_key(store, sorted(permissions_of(read_card_files([asked.cards]).cards)))
    port = free_port()
    command = [console_script(), "serve", "--model", str(asked.model), "--cards", str(asked.cards)]
    command += ["--port", str(port), "--store", store]
    bodies = [json.dumps({"utterance": text}) for text in asked.sentences]
    with served(command, port, folder / "server.log") as server:
        plan = Plan(HOST, port, "/route", key, bodies, N_CONNECTIONS, effort.seconds, _WARM_UP_S)
        loaded(report, "sentences with a key", server, plan, effort, Goals(SENTENCES_PER_S))
        memory = server.memory_mb()
        if memory is not None:
            report.add("resident memory after all that", memory, "MB", MEMORY)
        sources = _sources(server, key, asked.sentences)
    n = sources.total()
    for name, count in sources.most_common():
        report.add(f"read by {name}", count / n, "%")
    by_words = sum(sources[name] for name in _LIGHT) / n
    report.add("read by words alone, without the encoder", by_words, "%", BY_WORDS, f"{n:,} sentences, each once")


def _sources(server: Server, key: str, sentences: Sequence[str]) -> Counter[str]:
    """Stage → how many sentences it read; dry runs, one after the other."""
    found: Counter[str] = Counter()
    connection = HTTPConnection(HOST, server.port, timeout=30)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    for text in sentences:
        connection.request("POST", "/route", json.dumps({"utterance": text, "dry_run": True}), headers)
        intent = json.loads(connection.getresponse().read())["intent"]
        found[intent["source"] if intent is not None else "none"] += 1
    connection.close()
    return found


def run(report: Report, options: argparse.Namespace) -> None:
    """Train if need be, then measure."""
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        folder = Path(made)
        model = options.model
        if model is None:
            report.section("training: CLINC150's train part, confidences on its validation part")
            model = folder / "model"
            told = train(options.data, model)
            print(f"  {told['n_examples']} examples, {told['n_held_out']} held out", file=sys.stderr)
        cards = one_namespace(options.data / "cards/clinc150.yaml", folder / "clinc150.yaml")
        texts = [row.text for row in read_rows(options.data / "intents/clinc150/test.jsonl")]
        asked = Asked(model, cards, list(dict.fromkeys(texts)))
        report.section("CLINC150, trained: over HTTP, one server process, the client in another")
        own = folder / "server"
        own.mkdir()
        over_http(report, asked, own, Effort(options.seconds, options.repeats))


def options_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cards/ and intents/ in it")
    parser.add_argument("--model", type=Path, help="folder of trained classifiers; none trains them first")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each run over HTTP")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = options_of()
    made_report = Report("Sentences read by trained classifiers: throughput and latency", chosen.json)
    run(made_report, chosen)
    made_report.close()

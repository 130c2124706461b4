"""What live state costs, and what it is good for: decisions, outcomes, chains, a storm, overload, a million pairs.

`python -m benchmarks.bench_live [--quick] [--only NAME...] [--pairs 1000000] [--seconds 3] [--repeats 3] [--json]`
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.live_decisions import ADDED, added
from benchmarks.live_http import feedback, overload
from benchmarks.live_pairs import pairs
from benchmarks.live_scenes import chain, storm
from benchmarks.report import Report

_QUICK_PAIRS = 100_000
_OVERLOAD_S = 60.0
_QUICK_OVERLOAD_S = 10.0


def decisions_row(report: Report, options: argparse.Namespace) -> None:
    """What live state adds to a decision."""
    report.section("what live state adds to a decision, in process, given intents")
    for n_agents in ADDED:
        n_calls = max(100, (2000 if options.quick else 10_000) * 24 // (24 + n_agents))
        asyncio.run(added(report, n_agents, n_calls, options.repeats))


def feedback_row(report: Report, options: argparse.Namespace) -> None:
    """Outcomes over HTTP."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        feedback(report, Path(folder), options.seconds, options.repeats)


def overload_row(report: Report, options: argparse.Namespace) -> None:
    """Twice the capacity."""
    overload_s = _QUICK_OVERLOAD_S if options.quick else _OVERLOAD_S
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        overload(report, Path(folder), options.seconds, overload_s, options.repeats)


def pairs_row(report: Report, options: argparse.Namespace) -> None:
    """Many pairs of a decision and its outcome."""
    asyncio.run(pairs(report, options.pairs or (_QUICK_PAIRS if options.quick else 1_000_000)))


ROWS: dict[str, Callable[[Report, argparse.Namespace], None]] = {
    "decisions": decisions_row,
    "feedback": feedback_row,
    "chain": lambda report, options: chain(report, is_quick=options.quick),
    "storm": lambda report, options: storm(report, is_quick=options.quick),
    "overload": overload_row,
    "pairs": pairs_row,
}


def options_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, fewer pairs, a shorter overload")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--pairs", type=int, help="decisions with their outcomes; 1,000,000, quick 100,000")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each run over HTTP, at most 3")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = options_of()
    made_report = Report("Live state: what it costs, and what it is good for", chosen.json)
    for name, row in ROWS.items():
        if name in chosen.only:
            row(made_report, chosen)
    made_report.close()

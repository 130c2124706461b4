"""What learning is good for, held against the floors and aims of the project's table.

`python -m benchmarks.bench_learning --data DIR [--cache FOLDER] [--only NAME...] [--seeds 20] [--replay N] [--quick]
[--json] [--markdown FILE]`

Each row says in its module's docstring what it measures and how. Constants of the learner are those of the policy as
shipped; nothing is chosen on rows that are measured on.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.learning_added import added_row
from benchmarks.learning_data import LearningData
from benchmarks.learning_failures import CAUSES, planted_failures
from benchmarks.learning_fixture import drift_row, fixture_row
from benchmarks.learning_forged import forged_row
from benchmarks.learning_merit import merit_row
from benchmarks.learning_nine import offline_row, online_row
from benchmarks.learning_offpolicy import off_policy_row
from benchmarks.learning_replay import N_DECISIONS, replay_row
from benchmarks.learning_routellm import routellm
from benchmarks.report import Goal, Report
from intent.embedder import bundled
from intent.vector_cache import VectorCache

N_SEEDS = 20
_QUICK_SEEDS = 2
_QUICK_DECISIONS = 2000


class Bench:
    """What the rows need; the data is opened by the rows that read it."""

    def __init__(self, report: Report, options: argparse.Namespace, cache: Path) -> None:
        self.report = report
        self.options = options
        self.n_seeds: int = _QUICK_SEEDS if options.quick else options.seeds
        self.cache = cache
        self._data: LearningData | None = None

    @property
    def data(self) -> LearningData:
        """The tables.

        Raises:
            SystemExit: nobody said where they are.
        """
        if self.options.data is None:
            raise SystemExit("this row reads tables: name their folder with --data DIR")
        if self._data is None:
            vectors = VectorCache(bundled(), self.cache / "vectors.npz", n_threads=1)
            self._data = LearningData(self.options.data, vectors)
        return self._data


def failures_row(report: Report, n_seeds: int) -> None:
    """Clusters of the failures of a log with six planted causes."""
    report.section(f"failure clusters of a log with {len(CAUSES)} planted causes")
    encoder = bundled()
    found = [planted_failures(seed, encoder) for seed in range(n_seeds)]
    report.add_spread("adjusted Rand index", [each.adjusted_rand for each in found], "", Goal(">=", 0.8))
    named = [len(each.named) for each in found]
    report.add_spread("causes that the proposed fix names", named, f"of {len(CAUSES)}", Goal(">=", len(CAUSES)))


ROWS: dict[str, Callable[[Bench], None]] = {
    "routellm": lambda bench: routellm(bench.report, bench.data, bench.n_seeds),
    "nine": lambda bench: offline_row(bench.report, bench.data, bench.cache),
    "online": lambda bench: online_row(bench.report, bench.data, bench.cache, bench.n_seeds),
    "merit": lambda bench: merit_row(bench.report, bench.data, bench.cache, bench.n_seeds),
    "fixture": lambda bench: fixture_row(bench.report, bench.n_seeds),
    "drift": lambda bench: drift_row(bench.report, bench.n_seeds),
    "off-policy": lambda bench: off_policy_row(bench.report, bench.n_seeds),
    "added": lambda bench: added_row(bench.report, is_quick=bench.options.quick),
    "forged": lambda bench: forged_row(bench.report, bench.n_seeds),
    "replay": lambda bench: replay_row(
        bench.report, bench.options.replay or (_QUICK_DECISIONS if bench.options.quick else N_DECISIONS)
    ),
    "failures": lambda bench: failures_row(bench.report, bench.n_seeds),
}


def options_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with llm_routing/ in it")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors for the next run")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="runs of what is random")
    parser.add_argument("--replay", type=int, metavar="N", help="decisions to replay; 100,000, quick 2,000")
    parser.add_argument("--quick", action="store_true", help="two seeds, less of what takes long")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the figures there as tables")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = options_of()
    made = Report("Learning: what it is good for", chosen.json)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(made, chosen, chosen.cache or Path(folder))
        for name, row in ROWS.items():
            if name in chosen.only:
                row(bench)
    made.close()
    if chosen.markdown is not None:
        chosen.markdown.write_text(made.markdown(), encoding="utf-8")

"""How often a decision names the right intent, with only the cards as knowledge.

`python -m benchmarks.bench_cards --data DIR [--json]`
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sklearn.metrics import roc_auc_score

from benchmarks.data_sets import Row, one_namespace, permissions_of, read_rows
from benchmarks.report import Goal, Report
from benchmarks.serving import router_in_process
from models.decision import RouteDecision
from models.request import RouteRequest
from router.permit import Grants
from router.running import Parts

RIGHT_INTENT = Goal(">=", 0.8)


@dataclass(frozen=True, slots=True)
class Answered:
    """A labelled utterance and what became of it."""

    row: Row
    intent: str | None
    confidence: float
    action: str
    reason: str

    @property
    def is_right(self) -> bool:
        """Whether the best reading is the label, whatever the action."""
        return self.intent == self.row.intent


async def ask(parts: Parts, rows: Sequence[Row]) -> list[Answered]:
    """Route every row with all permissions."""
    grants = Grants("bench", permissions_of(parts["registry"].snapshot.cards))
    answered = []
    for row in rows:
        decision, _ = await parts["service"].route(RouteRequest(utterance=row.text), grants)
        answered.append(answered_by(row, decision))
    return answered


def answered_by(row: Row, decision: RouteDecision) -> Answered:
    """What a decision says of a row; no intent counts as no confidence."""
    read = decision.intent
    confidence = read.confidence if read else 0.0
    return Answered(row, read.name if read else None, confidence, decision.action.value, decision.reason.value)


def share(answered: Sequence[Answered]) -> float:
    """The share whose intent is right, 0..1; 0 of none."""
    return sum(item.is_right for item in answered) / len(answered) if answered else 0.0


def shares_of_actions(answered: Sequence[Answered]) -> dict[str, float]:
    """`action/reason` → share, most frequent first."""
    counted = Counter(f"{item.action}/{item.reason}" for item in answered)
    return {name: n / len(answered) for name, n in counted.most_common()}


def report_in_scope(report: Report, answered: Sequence[Answered], goal: Goal | None) -> None:
    """Figures over rows that an agent serves."""
    invoked = [item for item in answered if item.action == "invoke"]
    fresh = [item for item in answered if not item.row.is_repeat]
    report.add("right intent, whatever the action", share(answered), "%", goal, f"{len(answered)} rows")
    report.add("the same without rows whose text is in the train part", share(fresh), "%", None, f"{len(fresh)} rows")
    report.add("invoked", len(invoked) / len(answered), "%")
    report.add("right intent among invoked", share(invoked), "%")
    report_actions(report, answered)


def report_actions(report: Report, answered: Sequence[Answered]) -> None:
    """How the decisions divide."""
    for name, part in shares_of_actions(answered).items():
        report.add(f"  {name}", part, "%")


def report_out_of_scope(report: Report, inside: Sequence[Answered], outside: Sequence[Answered]) -> None:
    """How well the confidence tells them from rows in scope."""
    labels = [1] * len(inside) + [0] * len(outside)
    auroc = float(roc_auc_score(labels, [item.confidence for item in (*inside, *outside)]))
    invoked = sum(item.action == "invoke" for item in outside) / len(outside)
    report.add("AUROC of the confidence, in scope against out of scope", auroc, "", None, f"{len(outside)} rows")
    report.add("out of scope, yet invoked", invoked, "%")
    report_actions(report, outside)


async def run(report: Report, data: Path) -> None:
    """Both data sets."""
    outside_rows = read_rows(data / "intents/clinc150/oos_test.jsonl")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for name, goal in (("clinc150", RIGHT_INTENT), ("banking77", None)):
            cards = one_namespace(data / f"cards/{name}.yaml", Path(folder) / f"{name}.yaml")
            async with router_in_process([cards]) as parts:
                inside = await ask(parts, read_rows(data / f"intents/{name}/test.jsonl"))
                outside = await ask(parts, outside_rows)
            report.section(f"{name}: test rows, the cards as only knowledge (one namespace, all permissions)")
            report_in_scope(report, inside, goal)
            report.section(f"{name}: out-of-scope test rows of clinc150")
            report_out_of_scope(report, inside, outside)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with cards/ and intents/ in it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    made = Report("Intents read by the served path", options.json)
    asyncio.run(run(made, options.data))
    made.close()

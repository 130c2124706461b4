"""What is told of failure clusters is what they do."""

from __future__ import annotations

from feedback import clusters
from feedback.failure import FailureStage
from feedback.failure_distance import _CORRECTED, _SHARES, Shares
from feedback.proposed_fix import NEAR, FixKind
from router.cli.failures import failures
from tests.docs.pages import page, prose, rows, sections

WORDS = {"intent that was read": "intent", "intent that was meant": "meant", "reason": "error", "error class": "error",
         "who is charged": "charged", "its name": "dependency"}  # fmt: skip


def weights(cell: str) -> dict[str, float]:
    told = {}
    for part in cell.split(", "):
        words, number = part.rstrip(")").split(" (")
        told[WORDS.get(words, words)] = float(number)
    return told


def given(shares: Shares) -> dict[str, float]:
    return {name: weight for name, weight in shares._asdict().items() if weight}


def test_every_stage_is_told_with_its_weights() -> None:
    table = [row for row in rows(sections(page("feedback.md"))["Failures"]) if len(row) == 3 and row[0] != "stage"]
    told = [(row[0].strip("`"), weights(row[2])) for row in table]

    assert told[0] == ("reading", given(_CORRECTED))
    assert dict(told[1:]) == {stage.value: given(_SHARES[stage]) for stage in FailureStage}


def test_every_kind_of_fix_and_every_number_is_told() -> None:
    section = sections(page("feedback.md"))["Failures"]
    kinds = [row[0].strip("`") for row in rows(section) if row[0].strip("`") in set(FixKind)]
    text = prose(section)

    assert sorted(set(kinds)) == sorted(kind.value for kind in FixKind)
    assert f"groups nearer than {clusters.SAME} are one" in text
    assert f"farther than {clusters.FAR} from all" in text
    assert f"The newest {clusters.MAX_FAILURES} of them" in text
    assert f"under {NEAR})" in section
    assert failures.__name__ in section

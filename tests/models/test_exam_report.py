from __future__ import annotations

import pytest
from pydantic import ValidationError

from models.exam_report import Change, Confusion, Confusions, ExamReport, GoldenScore, Score

DIGEST = "ab" * 32


def test_a_report_comes_back_equal_from_its_json() -> None:
    report = ExamReport(
        model_digest=DIGEST,
        made_at=1_700_000_000_000,
        n_examples={"cards": 20},
        golden=GoldenScore(n=3, right_before=2, right_after=2, lost=("golden.jsonl:2",), gained=("golden.jsonl:3",)),
        by_intent={"track": Score(n=4, right_before=3, right_after=4)},
        confusions=Confusions(lost=(Confusion(meant="track", read="cancel", n=1, examples=("review:r1",)),)),
        ece=Change(before=0.04, after=0.03),
        passes=False,
        refusals=("golden: 1 row is lost",),
    )
    assert ExamReport.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize(("passes", "refusals"), [(True, ("golden: 1 row is lost",)), (False, ())])
def test_a_verdict_without_its_reasons_is_refused(passes: bool, refusals: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="refusals"):
        ExamReport(model_digest=DIGEST, made_at=0, passes=passes, refusals=refusals)


def test_a_digest_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="model_digest"):
        ExamReport(model_digest="sha256:ab", made_at=0, passes=True)

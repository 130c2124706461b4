from __future__ import annotations

from typing import Any

import pytest

from models.exam_report import Change, GoldenScore, Score
from router.retraining.verdict import LEAST_ROWS, Figures, refusals_of

EVEN = Change(before=0.04, after=0.04)
GOOD = Score(n=200, right_before=180, right_after=180)


FEW: dict[str, Any] = {"golden": GoldenScore(n=10), "held_out": Score(n=60), "n_out_of_scope": 0}


def refusals(**changes: Any) -> tuple[str, ...]:
    given: dict[str, Any] = {
        "golden": GoldenScore(n=50, right_before=50, right_after=50),
        "held_out": GOOD,
        "by_intent": {},
        "figures": Figures(EVEN, EVEN, EVEN),
        "n_out_of_scope": 200,
        "allow_golden_loss": False,
        "loses_sets": False,
    }
    return refusals_of(**{**given, **changes})


def test_a_model_that_is_as_good_passes() -> None:
    assert refusals() == ()


def test_golden_rows_that_are_lost_refuse_and_are_named() -> None:
    lost = GoldenScore(n=50, right_before=50, right_after=43, lost=tuple(f"g:{n}" for n in range(7)))
    assert refusals(golden=lost) == (
        "golden: 7 row(s) that were read right are lost: g:0, g:1, g:2, g:3, g:4 and 2 more",
    )
    assert refusals(golden=lost, allow_golden_loss=True) == ()


@pytest.mark.parametrize(
    ("n_golden", "n_held_out", "passes"), [(0, LEAST_ROWS, True), (LEAST_ROWS, 0, True), (9, 10, False), (0, 0, False)]
)
def test_few_rows_are_no_evidence(n_golden: int, n_held_out: int, passes: bool) -> None:
    found = refusals(golden=GoldenScore(n=n_golden), held_out=Score(n=n_held_out))
    assert (found == ()) == passes
    assert passes or "not enough evidence" in found[0]


@pytest.mark.parametrize(("right_after", "passes"), [(185, True), (178, True), (177, False)])
def test_more_than_one_in_a_hundred_may_not_be_lost(right_after: int, passes: bool) -> None:
    found = refusals(held_out=GOOD.model_copy(update={"right_after": right_after}))
    assert found == (() if passes else ("accuracy: of 200 held-out rows 177 are right, were 180",))


@pytest.mark.parametrize(("n", "right_after", "passes"), [(20, 18, True), (20, 17, False), (9, 0, True)])
def test_no_intent_pays_for_the_others(n: int, right_after: int, passes: bool) -> None:
    found = refusals(by_intent={"track": Score(n=n, right_before=min(n, 20), right_after=right_after)})
    assert found == (() if passes else ("intent track: of 20 held-out rows 17 are right, were 20",))


@pytest.mark.parametrize(
    ("before", "after", "n", "passes"),
    [(0.95, 0.94, 200, True), (0.95, 0.92, 200, False), (0.95, 0.5, 99, True), (None, 0.5, 200, True)],
)
def test_out_of_scope_texts_are_still_told_apart(before: float | None, after: float, n: int, passes: bool) -> None:
    found = refusals(figures=Figures(oos_auroc=Change(before=before, after=after)), n_out_of_scope=n)
    assert found == (() if passes else ("out of scope: AUROC is 0.920, was 0.950",))


@pytest.mark.parametrize(
    ("before", "after", "passes"), [(0.01, 0.05, True), (0.01, 0.07, False), (0.10, 0.10, True), (0.10, 0.12, False)]
)
def test_confidences_do_not_promise_more_than_before(before: float, after: float, passes: bool) -> None:
    figures = Figures(overconfidence=Change(before=before, after=after))
    told = f"calibration: confidences promise {after:.3f} too much, it was {before:.3f}"
    assert refusals(figures=figures) == (() if passes else (told,))
    assert refusals(figures=figures, **FEW) == ()


@pytest.mark.parametrize(("after", "passes"), [(0.9, True), (0.79, True), (0.77, False)])
def test_as_much_is_answered_as_before(after: float, passes: bool) -> None:
    figures = Figures(answered=Change(before=0.8, after=after))
    told = "confidence: 77.0% of the rows are read right and acted on, it was 80.0%"
    assert refusals(figures=figures) == (() if passes else (told,))
    assert refusals(figures=figures, **FEW) == ()


def test_several_intents_in_a_text_are_not_unlearned() -> None:
    assert refusals(loses_sets=True)[0].startswith("several intents in one text")

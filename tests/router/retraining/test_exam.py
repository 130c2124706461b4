from __future__ import annotations

import pytest

from intent.evaluate import Read
from models.exam_report import Change, Confusion, Score
from router.retraining.exam import (
    ACCEPTED,
    MOST_EXAMPLES,
    PLAUSIBLE,
    Readings,
    answered_of,
    confusions_of,
    ece_of,
    golden_score,
    oos_auroc_of,
    overconfidence_of,
    score_of,
    scores_by_intent,
)
from router.retraining.rows import Row, Source

Told = tuple[str, tuple[str, float], tuple[str, float]]


def readings(*told: Told) -> Readings:
    """Of (what is meant, (read before, confidence), (read after, confidence))."""
    rows = [Row(f"row:{n}", f"text {n}", meant, Source.EXAMPLES) for n, (meant, _, _) in enumerate(told)]

    def reads(side: int) -> list[Read]:
        return [
            Read(None if each[0] == "oos" else each[0], *each[side], is_early=False, ms=0.0)  # type: ignore[misc]
            for each in told
        ]

    return Readings(rows, reads(1), reads(2))


MIXED = readings(
    ("track", ("track", 0.9), ("track", 0.8)),
    ("track", ("invoice", 0.9), ("track", 0.8)),
    ("track", ("track", 0.9), ("invoice", 0.9)),
    ("invoice", ("track", 0.5), ("hotel", 0.5)),
    ("invoice", ("track", 0.5), ("track", 0.5)),
    ("oos", ("track", 0.6), ("track", 0.1)),
)


def test_both_models_are_counted_on_the_same_rows_in_scope() -> None:
    assert score_of(MIXED) == Score(n=5, right_before=2, right_after=2)
    assert scores_by_intent(MIXED) == {
        "invoice": Score(n=2, right_before=0, right_after=0),
        "track": Score(n=3, right_before=2, right_after=2),
    }


def test_confusions_gained_and_lost_are_pairs_with_ids_and_without_texts() -> None:
    found = confusions_of(MIXED)
    assert found.gained == (
        Confusion(meant="invoice", read="hotel", n=1, examples=("row:3",)),
        Confusion(meant="track", read="invoice", n=1, examples=("row:2",)),
    )
    assert found.lost == (
        Confusion(meant="invoice", read="track", n=1, examples=("row:3",)),
        Confusion(meant="track", read="invoice", n=1, examples=("row:1",)),
    )
    assert "text" not in found.model_dump_json()


def test_the_most_frequent_confusion_comes_first_with_a_few_of_its_ids() -> None:
    rare: Told = ("a", ("a", 0.9), ("b", 0.9))
    frequent: Told = ("z", ("z", 0.9), ("y", 0.9))
    found = confusions_of(readings(rare, *[frequent] * 9)).gained
    assert [(each.meant, each.n, len(each.examples)) for each in found] == [("z", 9, MOST_EXAMPLES), ("a", 1, 1)]


@pytest.mark.parametrize(
    ("meant", "before", "after", "lost", "gained"),
    [
        ("track", ("track", 0.9), ("invoice", 0.9), 1, 0),
        ("track", ("track", 0.9), ("track", PLAUSIBLE - 0.01), 1, 0),
        ("track", ("track", 0.9), ("track", PLAUSIBLE), 0, 0),
        ("track", ("invoice", 0.9), ("track", 0.9), 0, 1),
        ("oos", ("track", 0.1), ("track", PLAUSIBLE), 1, 0),
        ("oos", ("track", 0.9), ("track", PLAUSIBLE - 0.01), 0, 1),
    ],
)
def test_a_golden_row_is_right_as_meant_and_with_a_confidence_to_match(
    meant: str, before: tuple[str, float], after: tuple[str, float], lost: int, gained: int
) -> None:
    score = golden_score(readings((meant, before, after)))
    assert (score.n, len(score.lost), len(score.gained)) == (1, lost, gained)
    assert score.right_after - score.right_before == gained - lost


def test_out_of_scope_needs_rows_of_both_kinds() -> None:
    assert oos_auroc_of(MIXED) == Change(before=0.6, after=1.0)
    assert oos_auroc_of(readings(("oos", ("a", 0.1), ("a", 0.1)))) is None
    assert oos_auroc_of(readings(("a", ("a", 0.1), ("a", 0.1)))) is None


def test_what_is_answered_is_read_right_and_surely_enough() -> None:
    rows = readings(
        ("a", ("a", ACCEPTED - 0.01), ("a", ACCEPTED)),
        ("a", ("b", 0.9), ("a", 0.9)),
        ("a", ("a", 0.9), ("b", 0.9)),
        ("b", ("b", 0.9), ("b", 0.9)),
        ("oos", ("b", 0.9), ("b", 0.9)),
    )
    assert answered_of(rows) == Change(before=0.5, after=0.75)
    assert answered_of(readings(("oos", ("b", 0.9), ("b", 0.9)))) is None


def test_overconfidence_leaves_out_what_promises_too_little() -> None:
    found = overconfidence_of(readings(("a", ("a", 0.8), ("b", 0.5)), ("a", ("b", 0.4), ("b", 0.5))))
    assert found is not None
    assert found.before == pytest.approx(0.2)
    assert found.after == pytest.approx(0.5)
    assert overconfidence_of(readings()) is None


def test_calibration_is_of_all_rows() -> None:
    found = ece_of(readings(("a", ("a", 0.8), ("a", 1.0)), ("a", ("a", 0.8), ("a", 1.0))))
    assert found is not None
    assert found.before == pytest.approx(0.2)
    assert found.after == pytest.approx(0.0)
    assert ece_of(readings()) is None

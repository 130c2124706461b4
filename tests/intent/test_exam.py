from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score

from intent.exam import at_risk, auroc, expected_calibration_error, fpr_at_recall, macro_f1, set_scores

_SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]), min_size=1, max_size=20)


@given(_SCORES, _SCORES)
def test_auroc_is_that_of_scikit_learn(positive: list[float], negative: list[float]) -> None:
    expected = roc_auc_score([1] * len(positive) + [0] * len(negative), positive + negative)
    assert auroc(np.array(positive), np.array(negative)) == pytest.approx(expected)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=1))
def test_macro_f1_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    expected, read = [list(each) for each in zip(*pairs, strict=True)]
    theirs = f1_score(expected, read, average="macro", labels=sorted(set(expected)), zero_division=0)
    assert macro_f1(expected, read) == pytest.approx(theirs)


def test_fpr_counts_what_lies_above_the_threshold_that_keeps_the_recall() -> None:
    positive = np.arange(1, 101) / 100
    assert fpr_at_recall(positive, np.array([0.05, 0.06, 0.5])) == pytest.approx(2 / 3)
    assert fpr_at_recall(positive, np.array([0.005]), recall=1.0) == 0.0


def test_calibration_error_is_the_distance_of_confidence_and_accuracy() -> None:
    right = np.array([True] * 8 + [False] * 2)
    assert expected_calibration_error(np.full(10, 0.8), right) == pytest.approx(0.0)
    assert expected_calibration_error(np.full(10, 1.0), right) == pytest.approx(0.2)


def test_coverage_is_of_texts_in_scope_and_wrong_of_all() -> None:
    found = at_risk(
        np.array([0.9, 0.8, 0.7, 0.6]),
        np.array([True, False, False, True]),
        np.array([True, True, False, True]),
        {0.02: 0.75, 0.05: 0.65},
    )
    assert found["coverage"] == pytest.approx({"0.02": 2 / 3, "0.05": 2 / 3})
    assert found["wrong"] == {"0.02": 0.25, "0.05": 0.5}
    assert found["thresholds"] == {"0.02": 0.75, "0.05": 0.65}


def test_sets_are_compared_pair_by_pair_text_by_text_and_as_wholes() -> None:
    found = set_scores([{"a", "b"}, {"a"}, set(), {"c"}], [{"a", "c"}, {"a"}, set(), set()])
    # two of four that were read, two of three that were meant
    assert found["precision"] == 2 / 4
    assert found["recall"] == 2 / 3
    assert found["f1"] == 4 / 7
    assert found["exact"] == 2 / 4
    assert found["f1_by_text"] == (0.5 + 1 + 1 + 0) / 4


def test_nothing_read_where_nothing_is_meant_is_right_but_earns_no_pair() -> None:
    assert set_scores([set()], [set()]) == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "exact": 1.0, "f1_by_text": 1.0}

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intent.fit_classifiers import Example, fit_classifiers
from intent.heads import MAX_LEAD, Heads, lead_of
from intent.prior import PRIOR
from tests.intent.labelled import sentences, vectors_of

ROWS = sentences(("parcel", "invoice"))
VECTORS = vectors_of(row.text for row in ROWS)
HEADS = fit_classifiers(ROWS[:120], VECTORS, 0)
ALL = np.ones(len(HEADS.labels), dtype=np.bool_)


def test_both_read_what_they_were_not_fitted_on() -> None:
    n_right = 0
    for text, intent in ROWS[120:]:
        scores = HEADS.lexical.score(text.casefold())
        lexical, both = HEADS.by_lexical(scores, ALL, 3), HEADS.by_both(scores, VECTORS[text], ALL, 3)
        n_right += HEADS.labels[lexical.places[0]] == HEADS.labels[both.places[0]] == intent
    assert n_right >= 0.97 * len(ROWS[120:])


@given(st.text(max_size=40), st.lists(st.booleans(), min_size=8, max_size=8).filter(any), st.integers(1, 10))
def test_only_allowed_labels_are_read_and_confidences_add_up(text: str, mask: list[bool], n: int) -> None:
    allowed = np.array(mask)
    scores = HEADS.lexical.score(text.casefold())
    vector = VECTORS[ROWS[0].text]
    for ranked in (HEADS.by_lexical(scores, allowed, n), HEADS.by_both(scores, vector, allowed, n)):
        assert len(ranked.places) == len(ranked.confidences) == min(n, sum(mask))
        assert all(mask[place] for place in ranked.places)
        assert all(0 <= each <= 1 for each in ranked.confidences)
        assert sum(ranked.confidences) <= 1 + 1e-9
        assert ranked.confidences[1:] == sorted(ranked.confidences[1:], reverse=True)


def test_the_best_is_second_where_the_first_is_not_allowed() -> None:
    text = "please check the parcel"
    scores = HEADS.lexical.score(text)
    first, second = HEADS.by_both(scores, vectors_of([text])[text], ALL, 2).places
    allowed = ALL.copy()
    allowed[first] = False
    assert HEADS.by_both(scores, vectors_of([text])[text], allowed, 1).places == [second]


def test_words_of_no_example_get_less_confidence() -> None:
    known = HEADS.by_lexical(HEADS.lexical.score("please check the parcel"), ALL, 1).confidences[0]
    unknown = HEADS.by_lexical(HEADS.lexical.score("xyzzy plugh quux"), ALL, 1).confidences[0]
    assert known > 0.7 > 0.4 > unknown


def test_another_stage_may_judge() -> None:
    scores = HEADS.lexical.score("please check the parcel")
    own = HEADS.by_lexical(scores, ALL, 1)
    other = HEADS.by_lexical(scores, ALL, 1, PRIOR.foreign_stage)
    assert own.places == other.places
    assert own.confidences != other.confidences


def test_the_lexical_weight_counts() -> None:
    rows = [Example("open the door", "open"), Example("shut the window", "shut")]
    heads = fit_classifiers(rows, vectors_of(row.text for row in rows), 0)
    scores, vector = heads.lexical.score("open the door"), vectors_of(["shut the window"])["shut the window"]
    allowed = np.ones(2, dtype=np.bool_)

    def best(weight: float) -> str:
        weighed: Heads = replace(heads, lexical_weight=weight)
        return heads.labels[weighed.by_both(scores, vector, allowed, 1).places[0]]

    assert (best(0.0), best(100.0)) == ("shut", "open")


@pytest.mark.parametrize(
    ("fused", "lead"), [([1.0, 3.5, 2.0], 1.5), ([1.0, -np.inf], MAX_LEAD), ([2.0], MAX_LEAD), ([1.0, 1.0], 0.0)]
)
def test_the_lead_is_over_the_next_finite_one(fused: list[float], lead: float) -> None:
    assert lead_of(np.array(fused)) == lead

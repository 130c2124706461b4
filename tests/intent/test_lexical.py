from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_union
from sklearn.svm import LinearSVC

from intent.fit_classifiers import LEXICAL_C, Example, fit_classifiers
from intent.grams import WORD_MARK, grams
from intent.lexical import inverse_document_frequencies, placed, weighted
from tests.intent.labelled import sentences

ROWS = sentences(("parcel", "invoice"))
HEADS = fit_classifiers(ROWS[:120], {}, 0)


def _characters(text: str) -> list[str]:
    return [gram for gram in grams(text) if not gram.startswith(WORD_MARK)]


def _words(text: str) -> list[str]:
    return [gram for gram in grams(text) if gram.startswith(WORD_MARK)]


def test_scores_are_those_of_scikit_learn() -> None:
    texts, labels = [row.text.casefold() for row in ROWS[:120]], [row.intent for row in ROWS[:120]]
    vectorizers = [TfidfVectorizer(analyzer=cut, sublinear_tf=True) for cut in (_characters, _words)]
    features = make_union(*vectorizers)
    machine = LinearSVC(C=LEXICAL_C, random_state=0).fit(features.fit_transform(texts), labels)
    others = [row.text.casefold() for row in ROWS[120:]]
    expected = machine.decision_function(features.transform(others))
    assert list(HEADS.labels) == list(machine.classes_)
    found = np.stack([HEADS.lexical.score(text).scores for text in others])
    np.testing.assert_allclose(found, expected, atol=0.05)
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_coverage_is_one_for_known_words_and_nothing_for_unknown_ones() -> None:
    assert HEADS.lexical.score(ROWS[0].text.casefold()).coverage == pytest.approx(1.0)
    assert HEADS.lexical.score("xyzzy").coverage == 0.0
    assert 0 < HEADS.lexical.score("check the xyzzy").coverage < 1


def test_a_text_without_grams_scores_the_bias() -> None:
    scores = HEADS.lexical.score("?!")
    assert scores.coverage == 0.0
    np.testing.assert_array_equal(scores.scores, HEADS.lexical.bias)


def test_characters_and_words_have_unit_length_each() -> None:
    lexical = HEADS.lexical
    document = placed(grams("check the parcel"), lexical.vocabulary)
    rows, values, _ = weighted(document, lexical.idf, 5.0, lexical.is_word)
    names = {row: gram for gram, row in HEADS.lexical.vocabulary.items()}
    is_word = np.array([names[row].startswith(WORD_MARK) for row in rows])
    assert float((values[is_word] ** 2).sum()) == pytest.approx(1.0, abs=1e-5)
    assert float((values[~is_word] ** 2).sum()) == pytest.approx(1.0, abs=1e-5)


def test_idf_is_smoothed() -> None:
    frequency, idf = inverse_document_frequencies([["a", "a", "b"], ["a"]])
    assert frequency == {"a": 2, "b": 1}
    np.testing.assert_allclose(idf, [1.0, np.log(3 / 2) + 1], rtol=1e-6)  # log(3 / (1 + df)) + 1


def test_two_labels_have_opposite_scores() -> None:
    rows = [Example("open the door", "open"), Example("shut the door", "shut")]
    scores = fit_classifiers(rows, {}, 0).lexical.score("open the door").scores
    assert scores[0] > 0 > scores[1]
    assert scores[0] == pytest.approx(-scores[1], abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "check the parcel",
        "where is the parcel, the parcel",
        "查一下快递 parcel",
        "p" * 40 + " parcel",
        "?!",
        "xyzzy xyzzy",
    ],
)
def test_a_text_weighs_the_same_however_often_its_words_came_before(text: str) -> None:
    lexical = HEADS.lexical
    rows, values, coverage = weighted(
        placed(grams(text), lexical.vocabulary), lexical.idf, lexical.unseen_idf, lexical.is_word
    )
    for _ in range(2):
        scores = lexical.score(text)
        assert (scores.rows.tolist(), scores.values.tolist(), scores.coverage) == (
            rows.tolist(),
            values.tolist(),
            coverage,
        )
    assert lexical.rows_in(text) == list(dict.fromkeys(rows.tolist()))


def test_long_words_are_not_kept() -> None:
    lexical = fit_classifiers([Example("open the door", "open"), Example("shut the door", "shut")], {}, 0).lexical
    n_before = lexical.rows_of.cache_info().currsize  # type: ignore[attr-defined]
    lexical.score("door " + "x" * 2000)
    assert lexical.rows_of.cache_info().currsize == n_before + 1  # type: ignore[attr-defined]

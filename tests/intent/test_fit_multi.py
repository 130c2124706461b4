from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from intent.exam import set_scores
from intent.fit import fit, fit_and_judge
from intent.fit_classifiers import MAX_LEXICAL_BYTES, Example, kept_grams
from intent.fit_multi import ALWAYS_ENCODED, PRIOR_LEAST, PRIOR_RELEVANCE
from intent.fit_relevance import with_relevance
from intent.grams import grams
from intent.heads import Heads
from intent.model_arrays import bytes_of
from intent.multi import Multi, MultiExample
from intent.normalize import match_form
from tests.intent.labelled import sentences, vectors_of
from tests.intent.several import ROWS, VECTORS, multi, nothing, single

TRAIN, TEST = ROWS[:260], ROWS[260:]


def read_set(heads: Heads, text: str, *, with_vector: bool = True) -> set[str]:
    """The best intent, where it is more likely than not, and all that is meant besides."""
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    scores, vector = heads.lexical.score(match_form(text)), vectors_of([text])[text] if with_vector else None
    ranked = heads.by_lexical(scores, allowed, 1) if vector is None else heads.by_both(scores, vector, allowed, 1)
    if ranked.confidences[0] < 0.5:
        return set()
    return {
        heads.labels[place]
        for place in (*ranked.places, *heads.further(scores, vector, allowed, ranked.places[0]).places)
    }


@pytest.fixture(scope="module")
def heads() -> Heads:
    return fit(single(TRAIN), VECTORS, out_of_scope=nothing(TRAIN), multi=multi(TRAIN))


def test_all_that_a_text_means_is_read(heads: Heads) -> None:
    found = set_scores([read_set(heads, text) for text, _ in TEST], [meant for _, meant in TEST])
    assert found["f1"] > 0.97
    assert found["exact"] > 0.9


def test_what_is_read_besides_is_probable_and_comes_best_first(heads: Heads) -> None:
    text = "please cancel the parcel right away"
    allowed, scores = np.ones(len(heads.labels), dtype=np.bool_), heads.lexical.score(text)
    best = heads.labels.index("cancel")
    further = heads.further(scores, vectors_of([text])[text], allowed, best)
    assert {heads.labels[place] for place in further.places} == {"parcel", "urgent"}
    assert further.confidences == sorted(further.confidences, reverse=True)
    assert heads.relevance is not None
    assert min(further.confidences) >= heads.relevance.least
    allowed[heads.labels.index("urgent")] = False
    only = heads.further(scores, vectors_of([text])[text], allowed, best)
    assert [heads.labels[place] for place in only.places] == ["parcel"]


def test_texts_without_a_vector_are_read_by_words_alone() -> None:
    heads = fit(single(TRAIN), {}, out_of_scope=nothing(TRAIN), multi=multi(TRAIN))
    assert heads.semantic is None
    assert heads.relevance is not None
    assert heads.relevance.centre.size == 0
    found = set_scores([read_set(heads, text, with_vector=False) for text, _ in TEST], [meant for _, meant in TEST])
    assert found["f1"] > 0.95


def test_chinese_means_several_intents_too() -> None:
    acts, subjects = {"取消": "cancel", "查询": "check"}, {"快递": "parcel", "发票": "invoice", "订单": "order"}
    examples = tuple(
        MultiExample(f"{opening}{act}{subject}{end}", (acts[act], subjects[subject]))
        for opening in ("请", "帮我", "我要")
        for act in acts
        for subject in subjects
        for end in ("", "吧")
    )
    singles = [Example(f"{act}一下", intent) for act, intent in acts.items()]
    heads = fit(singles, {}, multi=Multi(examples))
    scores = heads.lexical.score("麻烦取消发票")
    ranked = heads.by_lexical(scores, np.ones(5, dtype=np.bool_), 1)
    further = heads.further(scores, None, np.ones(5, dtype=np.bool_), ranked.places[0])
    assert {heads.labels[place] for place in (*ranked.places, *further.places)} == {"cancel", "invoice"}


def test_words_alone_never_stand_for_all_that_is_meant(heads: Heads) -> None:
    assert heads.early == ALWAYS_ENCODED
    scores = heads.lexical.score("please cancel the parcel right away")
    assert heads.by_lexical(scores, np.ones(len(heads.labels), dtype=np.bool_), 1).confidences[0] < heads.early


def test_probabilities_are_fitted_on_texts_that_were_held_out(heads: Heads) -> None:
    fitted = fit_and_judge(single(TRAIN), VECTORS, out_of_scope=nothing(TRAIN), multi=multi(TRAIN))
    assert fitted.judged is None  # fewer texts than confidences are fitted on
    assert fitted.heads.relevance is not None
    assert fitted.heads.relevance.confidence == PRIOR_RELEVANCE
    given = multi(TRAIN)
    held = replace(given, held_out=multi(TEST).examples)
    outside = [*nothing(TRAIN), *nothing(TEST)]
    judged = fit_and_judge(single(TRAIN), VECTORS, held_out=single(TEST), out_of_scope=outside, multi=held).judged
    assert judged is not None
    # the texts that were fitted on as meaning nothing are not held out
    assert len(judged.confidences) == len(TEST)
    assert judged.is_right[judged.in_scope].mean() > 0.95
    assert not judged.is_right[~judged.in_scope].any()


def test_cross_validation_says_from_when_on_an_intent_counts() -> None:
    heads, judged = fit_and_judge(single(ROWS), VECTORS, out_of_scope=nothing(ROWS), multi=multi(ROWS))
    assert judged is not None
    assert judged.set_f1 is not None
    assert judged.set_f1 > 0.97
    assert len(judged.confidences) == len(ROWS)
    assert heads.relevance is not None
    assert heads.relevance.confidence != PRIOR_RELEVANCE
    assert heads.relevance.confidence.weights[0] > 0


def test_few_texts_keep_the_shipped_probabilities() -> None:
    heads = fit(single(ROWS[:60]), VECTORS, multi=multi(ROWS[:60]))
    assert heads.relevance is not None
    assert (heads.relevance.confidence, heads.relevance.least) == (PRIOR_RELEVANCE, PRIOR_LEAST)
    assert with_relevance(heads, []) == (heads, None)


def test_one_text_of_several_intents_beside_many_of_one_can_be_held_out() -> None:
    rows = sentences()[:400]
    one = Multi((MultiExample("please cancel the parcel and send the invoice", ("cancel_parcel", "send_invoice")),))
    vectors = vectors_of([*(row.text for row in rows), one.examples[0].text])
    heads, judged = fit_and_judge(rows, vectors, multi=one)
    assert judged is not None
    # intents are withheld as they are without it
    assert 0 < (~judged.in_scope).sum() < judged.in_scope.sum()
    assert heads.relevance is not None


def test_intents_that_only_texts_of_several_have_are_known() -> None:
    heads = fit([Example("cancel it", "cancel")], {}, multi=Multi((MultiExample("send it now", ("send", "urgent")),)))
    assert heads.labels == ("cancel", "send", "urgent")


def test_an_intent_that_every_text_means_does_not_break_it() -> None:
    both = (MultiExample("send it now", ("send", "urgent")), MultiExample("cancel it now", ("cancel", "urgent")))
    heads = fit([], {}, multi=Multi(both))
    assert heads.relevance is not None
    scores = heads.relevance.scores(heads.lexical.score("anything at all"), None)
    assert scores[heads.labels.index("urgent")] == 1.0
    assert heads.relevance.probabilities(scores)[heads.labels.index("urgent")] > 0.9


def test_texts_of_one_intent_are_fitted_as_ever_whatever_means_nothing() -> None:
    rows = sentences()[:400]
    vectors = vectors_of(row.text for row in rows)
    plain = fit(rows, vectors, out_of_scope=["birds sing", "rivers run"])
    assert plain.relevance is None
    told = fit(rows, vectors, out_of_scope=["birds sing", "rivers run"], multi=Multi(none=("birds sing",)))
    assert bytes_of(told) == bytes_of(plain)


def test_both_matrices_together_keep_to_the_limit() -> None:
    forms = [text for text, _ in ROWS[:50]]
    documents, n_labels = [grams(form) for form in forms], MAX_LEXICAL_BYTES // (4 * 100)
    assert len(kept_grams(forms, documents, n_labels)[0]) == 100
    assert len(kept_grams(forms, documents, n_labels, n_matrices=2)[0]) == 50

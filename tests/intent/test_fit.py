from __future__ import annotations

import numpy as np
import pytest

from intent.fit import Example, fit, fit_and_judge
from intent.fit_classifiers import MANY, fit_classifiers
from intent.fit_stages import EARLY_WITHHELD, LEAST_HELD_OUT, early_from, judge, read_held_out, with_stages
from intent.heads import Heads
from intent.model_arrays import bytes_of
from intent.prior import PRIOR
from tests.intent.labelled import OUTSIDE, sentences, vectors_of

ROWS = sentences()
VECTORS = vectors_of([*(row.text for row in ROWS), *OUTSIDE])
SMALL = [row for row in ROWS if row.intent.endswith(("parcel", "invoice"))][:150]


def reads(heads: Heads, text: str) -> str:
    allowed = np.ones(len(heads.labels), dtype=np.bool_)
    scores = heads.lexical.score(text.casefold())
    if heads.semantic is None:
        return heads.labels[heads.by_lexical(scores, allowed, 1).places[0]]
    return heads.labels[heads.by_both(scores, vectors_of([text])[text], allowed, 1).places[0]]


def test_one_example_an_intent_is_enough() -> None:
    rows = [
        Example("where is my parcel", "track"),
        Example("cancel my order", "cancel"),
        Example("opening hours", "open"),
    ]
    heads = fit(rows, vectors_of(row.text for row in rows))
    assert [reads(heads, row.text) for row in rows] == ["track", "cancel", "open"]
    assert reads(heads, "Where is that parcel of mine") == "track"
    assert heads.full_stage is PRIOR.full_stage


def test_descriptions_alone_are_enough() -> None:
    rows = [
        Example("Tells where a parcel is and when it will arrive.", "track"),
        Example("Cancels an order that has not been shipped yet.", "cancel"),
    ]
    heads = fit(rows, vectors_of(row.text for row in rows))
    assert reads(heads, "when will my parcel arrive") == "track"
    assert reads(heads, "cancel the order please") == "cancel"


def test_one_intent_is_refused_with_the_number() -> None:
    with pytest.raises(ValueError, match="at least 2 intents, the examples have 1"):
        fit([Example("a b c", "x"), Example("d e f", "x")], {})


def test_examples_without_words_in_the_vocabulary_do_not_break_it() -> None:
    heads = fit([Example("?", "ask"), Example("!", "tell")], {})
    assert heads.lexical.score("anything").scores.shape == (2,)


def test_without_vectors_words_carry_it() -> None:
    heads = fit([Example("我的快递到哪了", "track"), Example("我要取消订单", "cancel")], {})
    assert heads.semantic is None
    assert reads(heads, "快递到哪里了") == "track"
    assert reads(heads, "帮我取消订单") == "cancel"


def test_the_same_seed_gives_the_same_heads() -> None:
    assert bytes_of(fit(ROWS[:400], VECTORS, seed=3)) == bytes_of(fit(ROWS[:400], VECTORS, seed=3))


def test_few_examples_keep_the_shipped_confidences() -> None:
    fitted = fit_and_judge(SMALL, VECTORS)
    assert fitted.judged is None
    assert (fitted.heads.lexical_stage, fitted.heads.early) == (PRIOR.lexical_stage, PRIOR.early)


def test_cross_validation_fits_confidences_with_some_intents_withheld() -> None:
    heads, judged = fit_and_judge(ROWS[:500], VECTORS)
    assert judged is not None
    assert heads.full_stage is not PRIOR.full_stage
    assert 0 < (~judged.in_scope).sum() < judged.in_scope.sum()
    assert not (judged.is_right & ~judged.in_scope).any()
    assert len(heads.full_stage.risk.confidences) == len(judged.confidences)


def test_held_out_texts_are_read_by_heads_that_do_not_know_them() -> None:
    heads, judged = fit_and_judge(ROWS[:300], VECTORS, held_out=ROWS[300:], out_of_scope=OUTSIDE)
    assert judged is not None
    assert len(judged.confidences) == len(ROWS[300:]) + len(OUTSIDE)
    assert judged.is_right[judged.in_scope].mean() > 0.95
    inside, outside = judged.confidences[judged.in_scope], judged.confidences[~judged.in_scope]
    assert np.quantile(inside, 0.1) > np.median(outside)
    assert len(heads.labels) == 32


def test_slopes_of_fitted_stages_are_never_negative() -> None:
    heads = fit(ROWS[:500], VECTORS)
    for stage in (heads.lexical_stage, heads.full_stage):
        assert min(*stage.in_scope.weights, *stage.is_right.weights) >= 0


def test_fewer_readings_than_needed_change_nothing() -> None:
    heads = fit_classifiers(SMALL, VECTORS, 0)
    texts = [(row.text, row.intent) for row in SMALL][: LEAST_HELD_OUT // 3]
    assert with_stages(heads, read_held_out(heads, texts, VECTORS), has_out_of_scope=False) is heads


def test_readings_without_vectors_fit_the_lexical_stage_alone() -> None:
    heads, judged = fit_and_judge(ROWS[:500], {})
    assert heads.semantic is None
    assert heads.lexical_stage is not PRIOR.lexical_stage
    assert heads.full_stage is PRIOR.full_stage
    assert judged is not None


def test_early_readings_lose_next_to_nothing() -> None:
    heads = fit_classifiers(ROWS[:300], VECTORS, 0)
    texts = [*((row.text, row.intent) for row in ROWS[300:]), *((text, None) for text in OUTSIDE)]
    readings = read_held_out(heads, texts, VECTORS)
    heads = with_stages(heads, readings, has_out_of_scope=True)
    judged = judge(heads, readings)
    always = [reading.by_both == reading.intent for reading in readings if reading.intent]
    assert judged.is_right[judged.in_scope].mean() >= np.mean(always) - 0.002
    assert judged.is_early.any()
    assert early_from(heads.lexical_stage, readings, EARLY_WITHHELD) >= heads.early


def test_rare_grams_are_dropped_from_many_examples_only() -> None:
    rows = [Example(f"{row.text} {number}", row.intent) for number, row in enumerate(ROWS)]
    assert "\x0117" in fit_classifiers(rows, {}, 0).lexical.vocabulary
    many = [Example(f"{row.text} x{number}", row.intent) for number in range(7) for row in ROWS]
    assert len(many) >= MANY
    kept = fit_classifiers([*many, Example("unique zebra", ROWS[0].intent)], {}, 0).lexical.vocabulary
    assert "\x01zebra" not in kept
    assert "\x01parcel" in kept


def test_an_intent_without_a_vector_is_left_to_the_words() -> None:
    rows = [*ROWS[:200], Example("查一下我的快递", "check_parcel_zh"), Example("我的包裹在哪里", "check_parcel_zh")]
    heads = fit(rows, vectors_of(row.text for row in ROWS[:200]))
    assert heads.semantic is not None
    assert [reads(heads, row.text) == row.intent for row in ROWS[:50]].count(False) <= 1
    place, allowed = heads.labels.index("check_parcel_zh"), np.ones(len(heads.labels), dtype=np.bool_)
    scores = heads.lexical.score("我的快递在哪里")
    assert heads.by_lexical(scores, allowed, 1).places == [place]
    ranked = heads.by_both(scores, vectors_of(["any text"])["any text"], allowed, len(heads.labels))
    assert ranked.confidences[ranked.places.index(place)] < 1e-6
    only = np.arange(len(heads.labels)) == place
    assert heads.by_both(scores, vectors_of(["any text"])["any text"], only, 1).confidences[0] < 1e-6


@pytest.mark.parametrize("heavier", ["track", "cancel"])
@pytest.mark.parametrize("has_vectors", [True, False])
def test_of_two_examples_that_disagree_the_one_that_counts_more_is_read(heavier: str, has_vectors: bool) -> None:
    lighter = "cancel" if heavier == "track" else "track"
    rows = [
        Example("where is my parcel", "track"),
        Example("stop my order", "cancel"),
        Example("the thing with the box", lighter),
        Example("the thing with the box", heavier),
    ]
    vectors = vectors_of(row.text for row in rows) if has_vectors else {}
    heads = fit_classifiers(rows, vectors, 0, {rows[2]: 0.1})
    assert (heads.semantic is not None) == has_vectors
    assert reads(heads, "the thing with the box") == heavier


def test_confidences_are_not_fitted_on_examples_that_count_for_less() -> None:
    light = dict.fromkeys(ROWS[400:600], 0.25)
    judged = fit_and_judge(ROWS[:600], VECTORS, weights=light).judged
    assert judged is not None
    assert len(judged.confidences) <= 400
    unweighted = fit_and_judge(ROWS[:600], VECTORS).judged
    assert unweighted is not None
    assert len(unweighted.confidences) > 500

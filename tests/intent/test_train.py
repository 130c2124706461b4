from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.fit_classifiers import Example
from intent.model_arrays import bytes_of
from intent.multi import Multi, MultiExample
from intent.train import train
from intent.vector_cache import VectorCache
from models.errors import ModelError
from tests.intent.labelled import OUTSIDE, sentences
from tests.intent.several import ROWS as SEVERAL
from tests.intent.several import multi, nothing, single

ROWS = sentences()
CACHE = VectorCache(DummyEmbedder())


def test_held_out_texts_examine() -> None:
    found = train(ROWS[:300], CACHE, held_out=ROWS[300:], out_of_scope=OUTSIDE)
    metrics = found.metrics
    assert metrics["measured_on"] == "held-out texts"
    assert (metrics["n_labels"], metrics["n_held_out"], metrics["n_out_of_scope"]) == (
        32,
        len(ROWS[300:]),
        len(OUTSIDE),
    )
    assert metrics["accuracy"] > 0.95
    assert metrics["oos_auroc"] > 0.9
    assert set(metrics["coverage_at_risk"]) == {"0.01", "0.02", "0.05"}
    assert found.n_examples == 300 + 32  # each intent's name is one more


def test_without_them_it_cross_validates() -> None:
    metrics = train(ROWS[:500], CACHE).metrics
    assert metrics["measured_on"] == "cross-validation"
    assert metrics["n_held_out"] == 0
    assert 0.8 < metrics["accuracy"] <= 1
    assert 0 <= metrics["ece"] < 0.3


def test_too_few_examples_have_no_exam() -> None:
    found = train([Example("where is my parcel", "track"), Example("stop the order", "cancel")], CACHE)
    assert "accuracy" not in found.metrics
    assert found.metrics["has_semantic_head"]
    assert found.heads.labels == ("cancel", "track")


def test_repeated_and_differently_written_examples_count_once() -> None:
    rows = [
        Example("Where is  my parcel", "track"),
        Example("Ｗhere is my parcel", "track"),
        Example("stop it", "cancel"),
    ]
    assert train(rows, CACHE).n_examples == 2 + 2


def test_held_out_texts_of_unknown_intents_are_out_of_scope() -> None:
    held_out = [*ROWS[300:], Example("sing me a song", "sing")]
    metrics = train(ROWS[:300], CACHE, held_out=held_out).metrics
    assert (metrics["n_held_out"], metrics["n_out_of_scope"]) == (len(ROWS[300:]), 1)


def test_languages_the_encoder_does_not_know_are_carried_by_words() -> None:
    rows = [Example("我的快递到哪了", "快递查询"), Example("我要取消订单", "取消订单")]
    found = train(rows, CACHE)
    assert not found.metrics["has_semantic_head"]
    assert found.heads.labels[int(found.heads.lexical.score("快递到哪里了").scores.argmax())] == "快递查询"


class English(DummyEmbedder):
    """Was made for one language."""

    languages = frozenset({"en"})  # type: ignore[assignment]


def test_examples_in_languages_that_the_encoder_was_not_made_for_get_no_vectors() -> None:
    rows = [
        Example("wo ist denn mein Paket", "paket"),
        Example("wann kommt die Lieferung an", "paket"),
        Example("ich möchte meine Bestellung stornieren", "storno"),
        Example("bitte den Auftrag zurückziehen", "storno"),
    ]
    assert not train(rows, VectorCache(English())).metrics["has_semantic_head"]
    assert train(rows, CACHE).metrics["has_semantic_head"]
    assert train([*rows, *ROWS[:50]], VectorCache(English())).metrics["has_semantic_head"]


def test_one_intent_is_refused() -> None:
    with pytest.raises(ModelError, match=r"have 1 intent\(s\), classifiers need at least 2"):
        train([Example("a b", "x"), Example("c d", "x")], CACHE)


def test_the_seed_decides_and_the_order_of_repeats_does_not() -> None:
    one = train(ROWS[:400], CACHE, seed=1)
    again = train([*ROWS[:400], *ROWS[:50]], CACHE, seed=1)
    assert bytes_of(one.heads) == bytes_of(again.heads)
    other = train(ROWS[:400], CACHE, seed=2)
    assert not np.array_equal(other.heads.full_stage.risk.confidences, one.heads.full_stage.risk.confidences)


def test_progress_of_embedding_is_told() -> None:
    told: list[tuple[int, int]] = []
    train(ROWS[:100], VectorCache(DummyEmbedder()), progress=lambda n_done, n: told.append((n_done, n)))
    assert told[-1][0] == told[-1][1] >= 100


def test_texts_of_several_intents_are_counted_and_examined() -> None:
    given = multi(SEVERAL)
    found = train(single(SEVERAL), CACHE, out_of_scope=nothing(SEVERAL), multi=given)
    metrics = found.metrics
    assert metrics["n_multi"] == len(given.examples)
    assert metrics["set_f1"] > 0.95
    assert metrics["measured_on"] == "cross-validation"
    assert found.heads.relevance is not None
    assert found.n_examples == metrics["n_examples"] + len(given.examples)
    plain = train(ROWS[:300], CACHE)
    assert plain.heads.relevance is None
    assert not {"n_multi", "set_f1"} & plain.metrics.keys()


def test_held_out_texts_of_several_intents_examine_too() -> None:
    some, rest = SEVERAL[:200], SEVERAL[200:]
    strange = MultiExample("sing and dance", ("sing", "dance"))
    held = replace(multi(some), held_out=(*multi(rest).examples, strange))
    metrics = train(
        single(some), CACHE, held_out=single(rest), out_of_scope=[*nothing(some), *nothing(rest)], multi=held
    ).metrics
    assert metrics["measured_on"] == "held-out texts"
    # one that means nothing that is known is out of scope
    assert metrics["n_out_of_scope"] == len(nothing(some)) + len(nothing(rest)) + 1
    assert metrics["accuracy"] > 0.95


def test_names_of_intents_that_only_several_mean_are_examples_too() -> None:
    both = Multi((MultiExample("stop it and ship it", ("cancel_order", "ship_order")),))
    found = train([Example("where is it", "track_order")], CACHE, multi=both)
    assert found.heads.labels == ("cancel_order", "ship_order", "track_order")
    assert found.metrics["n_examples"] == 1 + 3

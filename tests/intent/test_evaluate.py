from __future__ import annotations

from dataclasses import replace

import pytest

from intent.dummy_embedder import DummyEmbedder
from intent.evaluate import Read, figures, figures_of_sets, read_all, unknown_labels
from intent.fit_classifiers import Example
from intent.heads import Heads
from intent.train import train
from intent.vector_cache import VectorCache
from models.ports import Embedded
from tests.intent.labelled import OUTSIDE, sentences
from tests.intent.several import ROWS as SEVERAL
from tests.intent.several import multi, nothing, single

ROWS = sentences()
HEADS = train(ROWS[:300], VectorCache(DummyEmbedder()), held_out=ROWS[300:600], out_of_scope=OUTSIDE).heads
TEST = [*ROWS[600:], *((text, None) for text in OUTSIDE)]


class Watched:
    """An encoder that counts."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, text: str) -> Embedded:
        self.n += 1
        return DummyEmbedder().embed(text)


def with_early(early: float) -> Heads:
    return replace(HEADS, early=early)


def test_the_encoder_is_asked_only_where_words_are_not_enough() -> None:
    for early, n in ((0.0, 0), (1.01, len(TEST))):
        embed = Watched()
        readings = read_all(with_early(early), embed, TEST)
        assert embed.n == n
        assert [each.is_early for each in readings] == [n == 0] * len(TEST)
        assert [each.expected for each in readings] == [intent for _, intent in TEST]


def test_figures_are_complete_and_good_on_easy_texts() -> None:
    found = figures(HEADS, read_all(HEADS, Watched(), TEST))
    assert (found["n"], found["n_out_of_scope"], found["n_labels"]) == (len(ROWS[600:]), len(OUTSIDE), 32)
    assert found["accuracy"] > 0.97
    assert found["macro_f1"] > 0.9
    assert found["oos_auroc"] > 0.95
    assert 0 < found["p50_ms"] <= found["p95_ms"] <= found["p99_ms"]
    coverage = found["coverage_at_risk"]
    assert list(coverage) == ["0.01", "0.02", "0.05"]
    assert coverage["0.01"] <= coverage["0.02"] <= coverage["0.05"]
    assert found["wrong_at_risk"]["0.05"] <= 0.1


def test_accuracy_is_forced_whatever_the_confidence() -> None:
    readings = [Read("a", "a", 0.01, False, 1.0), Read("a", "b", 0.9, True, 1.0), Read(None, "a", 0.5, False, 1.0)]
    found = figures(HEADS, readings)
    assert found["accuracy"] == 0.5
    assert found["lexical_share"] == 0.5
    assert found["lexical_accuracy"] == 0.0
    assert found["oos_auroc"] == 0.5


def test_without_out_of_scope_texts_their_figures_are_none() -> None:
    found = figures(HEADS, read_all(HEADS, Watched(), ROWS[600:610]))
    assert found["oos_auroc"] is None
    assert found["oos_fpr95"] is None


def test_texts_of_another_script_are_read_by_words() -> None:
    rows = [*ROWS[:300], Example("查一下我的快递", "check_parcel"), Example("取消我的合同", "cancel_contract")]
    heads = train(rows, VectorCache(DummyEmbedder())).heads
    assert heads.semantic is not None
    (read,) = read_all(replace(heads, early=1.01), Watched(), [("查查我的快递", "check_parcel")])
    assert (read.intent, read.is_early) == ("check_parcel", False)


def test_texts_in_languages_that_the_encoder_was_not_made_for_are_read_by_words() -> None:
    heads, german = with_early(1.01), ("Wo bleibt mein Paket denn nur?", None)
    for languages, n_asked in ((None, 2), (frozenset({"en"}), 1), (frozenset({"en", "de"}), 2)):
        embed = Watched()
        read_all(heads, embed, [german, ("where is my parcel now", None)], languages=languages)
        assert embed.n == n_asked


def test_intents_that_the_heads_do_not_know_are_counted() -> None:
    texts = [("a", "sing"), ("b", "sing"), ("c", None), ("d", ROWS[0].intent)]
    assert unknown_labels(HEADS, texts) == {"sing": 2}


@pytest.mark.parametrize("n", [1, 64, 65])
def test_progress_is_told_to_the_end(n: int) -> None:
    told: list[tuple[int, int]] = []
    read_all(HEADS, Watched(), ROWS[:n], lambda n_done, total: told.append((n_done, total)))
    assert told[-1] == (n, n)


def test_texts_of_several_intents_are_right_if_the_best_reading_is_one_of_them() -> None:
    readings = [
        Read(frozenset("ab"), "b", 0.9, False, 1.0, (("a", 0.6), ("c", 0.4))),
        Read(frozenset("ab"), "c", 0.4, False, 1.0),
        Read("a", "a", 0.9, False, 1.0),
        Read(None, "a", 0.2, False, 1.0),
    ]
    assert [each.is_right for each in readings] == [True, False, True, False]
    assert figures(HEADS, readings)["accuracy"] == 2 / 3
    assert [each.named(0.5) for each in readings] == [{"a", "b"}, set(), {"a"}, set()]
    assert [each.named(0.3) for each in readings] == [{"a", "b", "c"}, {"c"}, {"a"}, set()]
    found = figures_of_sets(readings)
    assert (found["n_multi"], found["set_named"]["exact"], found["set_acted_on"]["exact"]) == (2, 0.5, 0.75)
    assert found["set_named"]["recall"] == 3 / 5


def test_heads_that_know_several_intents_read_them_all() -> None:
    rows, rest = SEVERAL[:260], SEVERAL[260:]
    outside = nothing(rows)
    heads = train(single(rows), VectorCache(DummyEmbedder()), out_of_scope=outside, multi=multi(rows)).heads
    embed = Watched()
    readings = read_all(heads, embed, rest)
    assert embed.n == len(rest)
    assert figures_of_sets(readings)["set_named"]["f1"] > 0.95
    assert figures(heads, readings)["accuracy"] > 0.95


def test_unknown_labels_are_counted_in_sets_too() -> None:
    texts = [("a", frozenset(("check_parcel", "fly"))), ("b", frozenset(("fly", "swim"))), ("c", None)]
    assert unknown_labels(HEADS, texts) == {"fly": 2, "swim": 1}

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intent.calibrate import Calibration
from intent.cascade import Cascade, Seen, Verdict
from intent.confidence import RiskTable
from intent.dummy_embedder import DummyEmbedder
from intent.heads import Heads
from intent.prior import PRIOR
from intent.semantic import SemanticScores
from models.policy import Confidence
from models.ports import Embedded
from models.reading import Alternative, Neighbour
from tests.builders import capability, card
from tests.intent.fitted import BOTH, Source, heads_of

INTENTS = ("cancel_order", "refund_status", "track_parcel")
SHIPPED = Confidence()
PARAPHRASES = ["cancel order", "where did my parcel go", "money back please", "who composed this", "zzz", "我的退款呢"]
FAR = [Neighbour("track_parcel", 0.2), Neighbour("cancel_order", 0.1)]


@pytest.fixture(scope="module")
def heads() -> Heads:
    return heads_of(BOTH)


def cascade_of(heads: Heads | None) -> Cascade:
    cascade = Cascade(Calibration())
    cascade.use(heads)
    return cascade


def source_of(intents: Iterable[str] = INTENTS) -> Source:
    return Source(intents=tuple(intents))


def by_vector(
    cascade: Cascade,
    text: str,
    neighbours: Iterable[Neighbour] = (),
    source: Source | None = None,
    thresholds: Confidence = SHIPPED,
) -> Verdict:
    embedded = DummyEmbedder().embed(text)
    return cascade.by_vector(text, embedded, list(neighbours), source or source_of(), thresholds)


def table() -> RiskTable:
    """Of 200 held-out readings; the least sure quarter is wrong."""
    confidences = np.linspace(1, 0, 200)
    return RiskTable.of(confidences, confidences < 0.25)


def names(verdict: Verdict) -> list[str]:
    return [alternative.intent for alternative in verdict.found]


def test_without_heads_words_say_nothing_and_the_neighbours_decide() -> None:
    cascade, source = Cascade(Calibration()), source_of()
    assert cascade.wants_neighbours(source)
    for alone in (True, False):
        nothing = cascade.by_words("cancel order", source, SHIPPED, alone=alone)
        assert (nothing.found, nothing.confidence, nothing.is_sure) == ((), 0.0, False)
    found = [Neighbour("track_parcel", 0.8), Neighbour("cancel_order", 0.5)]
    verdict = by_vector(cascade, "cancel order", found)
    first, second = Calibration().confidences([0.8, 0.5])
    assert verdict.found == (Alternative("track_parcel", first), Alternative("cancel_order", second))
    assert (verdict.accept, verdict.is_sure) == (SHIPPED.accept, True)
    assert not by_vector(cascade, "cancel order").found


def test_words_are_sure_only_from_early_on(heads: Heads) -> None:
    confidence = cascade_of(heads).by_words("cancel order", source_of(), SHIPPED, alone=False).confidence
    at = cascade_of(replace(heads, early=confidence)).by_words("cancel order", source_of(), SHIPPED, alone=False)
    assert (names(at)[0], at.is_sure) == ("cancel_order", True)
    above = replace(heads, early=math.nextafter(confidence, 1))
    assert not cascade_of(above).by_words("cancel order", source_of(), SHIPPED, alone=False).is_sure
    # where the encoder does not know the language there is nothing to wait for
    assert cascade_of(above).by_words("cancel order", source_of(), SHIPPED, alone=True).is_sure


def test_a_policy_that_asks_for_more_than_early_gets_it(heads: Heads) -> None:
    cascade = cascade_of(replace(heads, early=0.1))
    asked = cascade.by_words("cancel order", source_of(), Confidence(accept=0.999), alone=False)
    assert (asked.accept, asked.is_sure) == (0.999, False)


def test_words_and_vector_decide_together(heads: Heads) -> None:
    # by its words it is nearer to another intent than by its vector
    text = "the order i placed"
    allowed = np.ones(3, dtype=np.bool_)
    verdict = by_vector(cascade_of(heads), text)
    ranked = heads.by_both(heads.lexical.score(text), DummyEmbedder().embed(text).vector, allowed, 6)
    assert names(verdict) == [heads.labels[place] for place in ranked.places]
    assert [each.confidence for each in verdict.found] == ranked.confidences
    assert names(verdict)[0] == "cancel_order"
    # the vector counts: the same words with that of another text are read otherwise
    turned = cascade_of(heads).by_vector(
        "please", DummyEmbedder().embed("has my refund arrived"), FAR, source_of(), SHIPPED
    )
    assert names(turned)[0] == "refund_status"
    assert names(by_vector(cascade_of(heads), "please"))[0] == "cancel_order"


def test_what_was_seen_of_the_vector_beforehand_changes_nothing_and_that_of_other_heads_is_left(heads: Heads) -> None:
    text, cascade = "the order i placed", cascade_of(heads)
    vector = DummyEmbedder().embed(text)
    seen = cascade.seen(vector)
    assert seen is not None
    expected = by_vector(cascade, text)
    assert cascade.by_vector(text, vector, FAR, source_of(), SHIPPED, seen=seen) == expected
    others = heads_of(BOTH)
    wrong = Seen(SemanticScores(-seen.scores.logits, seen.scores.nearness), others)
    assert cascade.by_vector(text, vector, FAR, source_of(), SHIPPED, seen=wrong) == expected
    assert cascade.by_vector(text, vector, FAR, source_of(), SHIPPED, seen=wrong._replace(by=heads)) != expected


def test_there_is_nothing_to_see_without_a_semantic_head_or_a_vector_to_trust(heads: Heads) -> None:
    vector = DummyEmbedder().embed("cancel order")
    assert Cascade(Calibration()).seen(vector) is None
    assert cascade_of(replace(heads, semantic=None)).seen(vector) is None
    assert cascade_of(heads).seen(Embedded(vector.vector, unknown_share=0.9)) is None


def test_known_intents_leave_nothing_to_the_index(heads: Heads) -> None:
    cascade = cascade_of(heads)
    assert not cascade.wants_neighbours(source_of())
    assert not cascade.wants_neighbours(source_of(INTENTS[:1]))
    assert cascade.wants_neighbours(source_of((*INTENTS, "gift_card")))


@pytest.mark.parametrize(
    ("similarities", "found"),
    [
        ([("gift_card", 0.95), ("cancel_order", 0.3)], "gift_card"),
        # less sure than the heads
        ([("gift_card", 0.4), ("cancel_order", 0.3)], "cancel_order"),
        # the heads know it: they judge it themselves
        ([("track_parcel", 0.99), ("gift_card", 0.5)], "cancel_order"),
        ([], "cancel_order"),
    ],
)
def test_an_intent_that_the_heads_do_not_know_is_reached_where_its_texts_are_surer(
    heads: Heads, similarities: list[tuple[str, float]], found: str
) -> None:
    source = source_of((*INTENTS, "gift_card"))
    verdict = by_vector(cascade_of(heads), "my order", [Neighbour(*each) for each in similarities], source)
    assert names(verdict)[0] == found


def test_where_the_heads_know_none_of_the_intents_the_neighbours_decide(heads: Heads) -> None:
    cascade, source = cascade_of(heads), source_of(["gift_card", "loyalty"])
    assert cascade.by_words("please cancel my order", source, SHIPPED, alone=False) == Verdict()
    verdict = by_vector(cascade, "please cancel my order", [Neighbour("loyalty", 0.4)], source)
    assert names(verdict) == ["loyalty"]


scopes = st.sets(st.sampled_from((*INTENTS, "gift_card")), min_size=1)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(scopes=st.lists(scopes, min_size=1, max_size=4), text=st.sampled_from(PARAPHRASES))
def test_only_intents_of_the_source_are_ever_named(heads: Heads, scopes: list[set[str]], text: str) -> None:
    cascade = cascade_of(heads)
    for scope in (*scopes, *scopes):
        source = source_of(sorted(scope))
        near = [Neighbour(intent, 0.5) for intent in sorted(scope)]
        verdicts = [cascade.by_words(text, source, SHIPPED, alone=alone) for alone in (True, False)]
        verdicts.append(by_vector(cascade, text, near, source))
        for verdict in verdicts:
            confidences = [each.confidence for each in verdict.found]
            assert set(names(verdict)) <= scope
            assert len(set(names(verdict))) == len(confidences)
            assert confidences == sorted(confidences, reverse=True)
            assert all(0 <= confidence <= 1 for confidence in confidences)
            if verdict is not verdicts[-1]:
                assert sum(confidences) <= 1 + 1e-9
        assert bool(verdicts[0].found) is bool(scope & {*INTENTS})


def test_using_other_heads_swaps_them_and_raises_the_generation(heads: Heads) -> None:
    cascade = Cascade(Calibration())
    assert cascade.generation == 0
    cascade.use(heads)
    source = source_of((*INTENTS, "gift_card"))
    assert "gift_card" not in names(cascade.by_words("buy a gift card", source, SHIPPED, alone=True))
    cascade.use(heads_of(BOTH, card("gifts", capability("gift_card", ["buy a gift card", "a voucher for my friend"]))))
    # the masks of the heads before do not fit these
    assert names(cascade.by_words("a gift card", source, SHIPPED, alone=True))[0] == "gift_card"
    cascade.use(None)
    assert cascade.by_words("a gift card", source, SHIPPED, alone=True) == Verdict()
    assert cascade.generation == 3


def test_a_stated_risk_takes_the_threshold_of_the_held_out_readings(heads: Heads) -> None:
    wrong = table()
    judged = replace(
        heads,
        full_stage=replace(heads.full_stage, risk=wrong),
        lexical_stage=replace(heads.lexical_stage, risk=wrong),
        early=0.1,
    )
    cascade, stated = cascade_of(judged), Confidence(accept=0.9, risk=0.05)
    assert 0.1 < wrong.threshold(0.05) < 0.9
    assert by_vector(cascade, "cancel order", thresholds=stated).accept == wrong.threshold(0.05)
    words = cascade.by_words("cancel order", source_of(), stated, alone=False)
    assert words.accept == wrong.threshold(0.05)
    later = cascade_of(replace(judged, early=0.8)).by_words("cancel order", source_of(), stated, alone=False)
    assert later.accept == 0.8


def test_a_stated_risk_without_held_out_readings_is_one_minus_risk(heads: Heads) -> None:
    stated = Confidence(accept=0.1, risk=0.02)
    assert by_vector(cascade_of(heads), "cancel order", thresholds=stated).accept == 0.98
    assert by_vector(Cascade(Calibration()), "cancel order", FAR, thresholds=stated).accept == 0.98
    assert cascade_of(heads).by_words("取消订单", source_of(), stated, alone=True).accept == 0.98


def test_a_risk_that_no_reading_keeps_is_never_acted_on(heads: Heads) -> None:
    wrong = RiskTable.of(np.linspace(1, 0, 50), np.ones(50, dtype=np.bool_))
    cascade = cascade_of(replace(heads, full_stage=replace(heads.full_stage, risk=wrong)))
    assert not by_vector(cascade, "please cancel my order", thresholds=Confidence(risk=0.01)).is_sure


def test_a_text_whose_vector_is_not_trusted_is_judged_by_a_stage_for_words_alone(heads: Heads) -> None:
    text, allowed = "帮我取消订单", np.ones(3, dtype=np.bool_)
    verdict = cascade_of(heads).by_words(text, source_of(), SHIPPED, alone=True)
    ranked = heads.by_lexical(heads.lexical.score(text), allowed, 6, PRIOR.foreign_stage)
    assert [each.confidence for each in verdict.found] == ranked.confidences
    assert (names(verdict)[0], verdict.is_sure) == ("cancel_order", True)


def test_heads_without_vectors_leave_what_has_one_to_the_neighbours(heads: Heads) -> None:
    cascade = cascade_of(replace(heads, semantic=None))
    assert cascade.wants_neighbours(source_of())
    assert names(by_vector(cascade, "cancel order", FAR)) == ["track_parcel", "cancel_order"]
    # their lexical stage judged all there is, and so what has no vector too
    allowed = np.ones(3, dtype=np.bool_)
    verdict = cascade.by_words("帮我取消订单", source_of(), SHIPPED, alone=True)
    ranked = heads.by_lexical(heads.lexical.score("帮我取消订单"), allowed, 6)
    assert [each.confidence for each in verdict.found] == ranked.confidences


def test_traditional_and_upper_case_texts_get_the_same_verdict(heads: Heads) -> None:
    cascade = cascade_of(heads)
    for one, other in (("帮我取消订单", "幫我取消訂單"), ("cancel order", "CANCEL Order")):
        verdicts = [cascade.by_words(text, source_of(), SHIPPED, alone=True) for text in (one, other)]
        assert verdicts[0] == verdicts[1]


def test_an_embedding_is_compared_as_it_is_given(heads: Heads) -> None:
    # the caller answers for the trust: a vector is not looked into twice
    vector = DummyEmbedder().embed("where is my parcel").vector
    verdicts = [
        cascade_of(heads).by_vector("parcel", Embedded(vector, share), FAR, source_of(), SHIPPED)
        for share in (0.0, 1.0)
    ]
    assert verdicts[0] == verdicts[1]

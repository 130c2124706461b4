from __future__ import annotations

import time

import numpy as np
import pytest

from intent.fit_classifiers import fit_classifiers
from intent.seam import Sides, seam
from tests.intent.fitted import BOTH, heads_of
from tests.intent.labelled import sentences, vectors_of

ROWS = sentences()
HEADS = fit_classifiers(ROWS, vectors_of(row.text for row in ROWS), 0)
ALL = np.ones(len(HEADS.labels), dtype=np.bool_)


def test_a_sentence_is_cut_where_both_sides_speak_for_intents_of_their_own() -> None:
    sides = seam("please cancel the parcel now send the invoice", HEADS.lexical, ALL)
    assert sides == Sides("please cancel the parcel", "now send the invoice")


@pytest.mark.parametrize(
    "text",
    [
        "please cancel the parcel for me right away",
        "cancel parcel",
        "",
        "word",
        "these words mean nothing that is known here",
        "帮我取消订单查一下快递",
    ],
)
def test_a_sentence_of_one_wish_has_no_seam(text: str) -> None:
    assert seam(text, HEADS.lexical, ALL) is None


def test_only_allowed_labels_speak() -> None:
    text, allowed = "please cancel the parcel now send the invoice", ALL.copy()
    allowed[[place for place, label in enumerate(HEADS.labels) if label.endswith("invoice")]] = False
    assert seam(text, HEADS.lexical, allowed) is None
    only = np.zeros_like(ALL)
    only[0] = True
    assert seam(text, HEADS.lexical, only) is None


def test_few_labels_and_long_texts_are_no_trouble() -> None:
    lexical = heads_of(BOTH).lexical
    allowed = np.ones(3, dtype=np.bool_)
    assert seam("please cancel my order has my refund arrived", lexical, allowed) is not None
    started = time.process_time()
    for n in (2, 60, 5000):
        seam("please cancel my order " * n, lexical, allowed)
    assert time.process_time() - started < 1

from __future__ import annotations

import time

import pytest

from intent.expressed import in_order
from intent.fit import fit
from intent.fit_classifiers import Example
from intent.multi import Multi, MultiExample
from intent.normalize import match_form
from tests.intent.several import ROWS, VECTORS, multi, nothing, single

HEADS = fit(single(ROWS), VECTORS, out_of_scope=nothing(ROWS), multi=multi(ROWS))
CHINESE = fit(
    [Example("取消订单", "cancel"), Example("查询快递", "check"), Example("开发票", "invoice")],
    {},
    multi=Multi(
        (MultiExample("取消订单开发票", ("cancel", "invoice")), MultiExample("查询快递开发票", ("check", "invoice")))
    ),
)


def order(text: str, *labels: str) -> list[str]:
    heads = HEADS if text.isascii() else CHINESE
    assert heads.relevance is not None
    form, places = match_form(text), [heads.labels.index(label) for label in labels]
    found = in_order(form, heads.lexical.score(form), heads.lexical, heads.relevance.lexical, places)
    return [heads.labels[place] for place in found]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("please cancel the parcel right away", ["cancel", "parcel", "urgent"]),
        ("right away cancel the parcel", ["urgent", "cancel", "parcel"]),
        ("the INVOICE, send it next week", ["invoice", "send", "later"]),
        ("取消订单开发票", ["cancel", "invoice"]),
        ("开发票,取消訂單", ["invoice", "cancel"]),
        ("请问查询快递", ["check"]),
    ],
)
def test_intents_come_in_the_order_of_their_words(text: str, labels: list[str]) -> None:
    assert order(text, *labels) == labels
    assert order(text, *reversed(labels)) == labels


def test_intents_without_a_word_come_last_in_the_order_given() -> None:
    assert order("cancel it", "urgent", "invoice", "cancel") == ["cancel", "urgent", "invoice"]
    assert order("zzz qqq", "urgent", "invoice") == ["urgent", "invoice"]
    assert order("invoice", "urgent", "invoice") == ["urgent", "invoice"]


def test_a_long_text_costs_no_time() -> None:
    started = time.process_time()
    for text in ("please cancel the parcel " * 5000, "取消订单" * 20_000):
        order(text, *(HEADS if text.isascii() else CHINESE).labels[:5])
    assert time.process_time() - started < 2

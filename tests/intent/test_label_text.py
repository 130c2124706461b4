from __future__ import annotations

import pytest

from intent.label_text import label_text, with_label_texts


@pytest.mark.parametrize(
    ("intent", "text"),
    [
        ("exchange_rate", "exchange rate"),
        ("reverted_card_payment?", "reverted card payment"),
        ("orders.trackParcel", "orders track Parcel"),
        ("alarm/set-alarm", "alarm set alarm"),
        ("退款", "退款"),
        ("yes", "yes"),
        ("i17", None),
        ("42", None),
        ("", None),
        ("q_1", None),
    ],
)
def test_names_become_words_and_codes_nothing(intent: str, text: str | None) -> None:
    assert label_text(intent) == text


def test_each_intent_gets_its_name_once_after_the_examples() -> None:
    examples = [("where is it", "track"), ("where is it", "track"), ("stop it", "stop now"), ("stop now", "stop now")]
    assert with_label_texts(examples) == [
        ("where is it", "track"),
        ("stop it", "stop now"),
        ("stop now", "stop now"),
        ("track", "track"),
    ]


def test_a_text_of_two_intents_stays_with_both() -> None:
    assert with_label_texts([("x y z", "i1"), ("x y z", "i2")]) == [("x y z", "i1"), ("x y z", "i2")]

from __future__ import annotations

import doctest
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import intent.language as module
from intent.language import UNDETERMINED, are_mostly_others, language_of, languages_of, may_be_in
from intent.normalize import normalize
from models.request import MAX_UTTERANCE_CHARS

ENGLISH = frozenset({"en"})


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我的快递到哪了", "zh"),
        ("订单5521到哪了?", "zh"),
        ("荷物はどこですか", "ja"),
        ("ニモツ", "ja"),
        ("내 소포는 어디에 있나요", "ko"),
        ("帮我 cancel 掉这个订单吧我不想要了", "zh"),
        ("我的 iPhone 14 Pro Max 屏幕坏了", "zh"),
        ("在 Spotify 上播放 The Kleptones 的前 20 首歌曲", "zh"),
        ("秋刀鱼の味电话给我一下，周边有哪些餐馆吗？", "zh"),
        ("私の iPhone はどこですか", "ja"),
        ("東京駅までの経路検索", "ja"),
        ("내 iPhone 14 Pro 어디 있어", "ko"),
        ("where is my parcel", "en"),
        ("WHERE IS MY PARCEL", "en"),
        ("please refund 988 USD for order A-1042", "en"),
        ("wo ist mein Paket", "de"),
        ("Où est mon colis", "fr"),
        ("¿Dónde está mi paquete?", "es"),
        ("dov'è il mio pacco", "it"),
        ("waar is mijn pakket gebleven", "nl"),
        ("где моя посылка", "ru"),
        ("موقع الطرد", "ar"),
        ("Γεια σου, πού είναι το δέμα μου", "el"),
        ("kargom nerede kaldı", "tr"),
    ],
)
def test_what_can_be_told_is_told(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4711",
        "😀",
        "ok",
        "no",
        "stop",
        "cancel",
        "A-1042",
        "我要 order the oak desk",
        "qwrt zxcv bnm",
        "отмени",
        "USB",
    ],
)
def test_what_cannot_be_told_is_undetermined(text: str) -> None:
    assert language_of(text) == UNDETERMINED


@pytest.mark.parametrize("word", ["chaise longue", "déjà vu", "croissant", "schadenfreude", "zeitgeist", "tsunami"])
def test_a_loan_word_does_not_turn_an_english_sentence(word: str) -> None:
    assert language_of(f"please order a {word} for my office") == "en"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where is my parcel", True),
        ("ok", True),
        ("4711", True),
        ("", True),
        ("naïve café", True),
        ("wo ist mein Paket", False),
        ("我的快递到哪了", False),
        # too short to be told, but English it is not
        ("отмени", False),
        ("مرحبا", False),
        ("สวัสดี", False),
    ],
)
def test_an_english_encoder_is_for_what_may_be_english(text: str, expected: bool) -> None:
    assert may_be_in(text, ENGLISH) is expected
    assert may_be_in(text, None)


def test_a_short_text_in_other_letters_may_be_in_the_language_it_looks_like() -> None:
    assert may_be_in("отмени", frozenset({"en", "ru"}))
    assert not may_be_in("отмени", frozenset({"el"}))


def test_examples_are_mostly_others_below_a_quarter() -> None:
    german, english = (
        ["wo ist mein Paket", "ich möchte eine Lampe bestellen", "das Geld ist noch nicht da"],
        ["where is it"],
    )
    assert are_mostly_others(german, ENGLISH)
    assert not are_mostly_others(german + english, ENGLISH)
    assert are_mostly_others([*german, *german, *english], ENGLISH)
    assert not are_mostly_others(german, None)
    assert not are_mostly_others([], ENGLISH)
    # names of intents often tell nothing
    assert are_mostly_others([*german, "paket", "storno", "erstattung"], ENGLISH)
    assert not are_mostly_others(["ok", "paket"], ENGLISH)


def test_the_languages_of_texts_are_those_of_a_part_of_them() -> None:
    english = ["where is my parcel", "please cancel my order", "ok", "4711"]
    assert languages_of(english) == {"en"}
    assert languages_of([*english, "wo ist mein Paket", "我的包裹在哪里"]) == {"en", "de", "zh"}
    assert languages_of([*english * 10, "wo ist mein Paket"]) == {"en"}
    assert languages_of(["ok", "4711"]) == languages_of([]) == frozenset()


@given(st.text(max_size=300))
def test_any_text_has_a_tag(text: str) -> None:
    tag = language_of(text)
    assert tag == UNDETERMINED or (len(tag) == 2 and tag.isascii() and tag.islower())
    assert language_of(normalize(text)) is not None
    assert may_be_in(text, ENGLISH) in (True, False)


@pytest.mark.parametrize("unit", ["a", "ab ", "我", "é ", "\ud800", "\x00a", "😀", "е"])
def test_the_longest_text_takes_a_moment(unit: str) -> None:
    text = unit * (MAX_UTTERANCE_CHARS // len(unit))
    started = time.process_time()
    language_of(text)
    may_be_in(text, ENGLISH)
    assert time.process_time() - started < 0.5


def test_only_the_beginning_counts_and_is_kept() -> None:
    text = "wo ist mein Paket geblieben und wann kommt es an " * 50
    assert language_of(text + "where is my parcel now " * 100) == "de"
    before = module._told.cache_info().currsize
    language_of(text + "x")
    assert module._told.cache_info().currsize == before


def test_the_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(module) == (0, 2)


def test_where_only_letters_tell_latin_texts_count_as_the_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_identifier", None)
    module._told.cache_clear()
    texts = ["I want to cancel my bike rental", "我不租了请退订", "我想租一辆山地车"]
    assert not are_mostly_others(texts, ["en"])
    assert are_mostly_others(texts[1:], ["en"])
    module._told.cache_clear()

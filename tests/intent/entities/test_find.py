from __future__ import annotations

import doctest
import json
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.bench_entities import read_labels, score
from intent.entities import find, ids, numbers, numerals
from intent.entities.find import MAX_CHARS, MAX_FOUND, find_entities
from intent.entities.fold import fold
from models.entity import Found

NOW = datetime(2026, 3, 11, 10, 30, tzinfo=timezone(timedelta(hours=8)))
MIN_PRECISION = MIN_RECALL = 0.96
_PIECES = """
A-1042 #8841 订单号 order 988 块 元 $ € ¥ 1,5 2.1 v2 24/7 - : / . @ x@y.io https://a.b +86 138 0013 8000 昨天 明天
下周二 三天前 半小时后 3月5日 15号 两百三十 两个 一 二 十 万 点 半 tomorrow at 5pm next may I 99999999 in days ago
twenty-five a hundred dollars kg % 百分之 ００ ü 2024-13-45 31/12/2024 99:99 half past six to the 31st of February
"""
PIECES = [*_PIECES.split(), "\ud800", "\x00", "\n", " "]


def found(text: str, language: str = "und") -> list[tuple[str, object, str, str | None]]:
    return [(each.kind, each.value, each.text, each.unit) for each in find_entities(text, now=NOW, language=language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it was $49.99", [("amount", 49.99, "$49.99", "USD")]),
        ("it was 20 bucks", [("amount", 20, "20 bucks", "USD")]),
        ("1,500 euros", [("amount", 1500, "1,500 euros", "EUR")]),
        ("USD 30k", [("amount", 30000, "USD 30k", "USD")]),
        ("£5 or 5£", [("amount", 5, "£5", "GBP"), ("amount", 5, "5£", "GBP")]),
        ("988 块", [("amount", 988, "988 块", "CNY")]),
        ("两百三十块", [("amount", 230, "两百三十块", "CNY")]),
        ("三块五", [("amount", 3.5, "三块五", "CNY")]),
        ("人民币500", [("amount", 500, "人民币500", "CNY")]),
        ("3.5万美元", [("amount", 35000, "3.5万美元", "USD")]),
        ("５００元", [("amount", 500, "５００元", "CNY")]),
        ("兩百塊", [("amount", 200, "兩百塊", "CNY")]),
        ("20-30 dollars", [("amount", 20, "20", "USD"), ("amount", 30, "30 dollars", "USD")]),
        ("50 cents", [("amount", 0.5, "50 cents", "USD")]),
        ("3 bags", [("quantity", 3, "3 bags", "bag")]),
        ("两个杯子", [("quantity", 2, "两个", "个")]),
        ("5 kg", [("quantity", 5, "5 kg", "kg")]),
        ("切成八块", [("quantity", 8, "八块", "块")]),
        ("5 pounds of apples", [("quantity", 5, "5 pounds", "lb")]),
        ("百分之二十", [("quantity", 20, "百分之二十", "%")]),
        ("order A-1042", [("id", "A-1042", "A-1042", None)]),
        ("see #8841", [("id", "8841", "#8841", None)]),
        ("ORD-2024-17 is late", [("id", "ORD-2024-17", "ORD-2024-17", None)]),
        ("订单号 20260305123456", [("id", "20260305123456", "20260305123456", None)]),
        ("订单号13812345678", [("id", "13812345678", "13812345678", None)]),
        ("手机13812345678", [("phone", "13812345678", "13812345678", None)]),
        ("call +1 415 555 2671", [("phone", "+14155552671", "+1 415 555 2671", None)]),
        ("mail a.b+c@d.co.uk.", [("email", "a.b+c@d.co.uk", "a.b+c@d.co.uk", None)]),
        ("(see www.a.com/b_(c)).", [("url", "www.a.com/b_(c)", "www.a.com/b_(c)", None)]),
        ("I have -5 and 3", [("number", -5, "-5", None), ("number", 3, "3", None)]),
    ],
)
def test_values_words_and_units_are_told(text: str, expected: list[object]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "version v2.1",
        "version 3.2.1 please",
        "open 24/7",
        "May I ask",
        "just a second",
        "the second item",
        "3/4 of it",
        "COVID-19",
        "one of them",
        "第二个",
        "等一下",
        "我有一个问题",
        "千万别忘了",
        "统一回复",
        "3号线",
        "my 401k",
        "",
        "🙂",
    ],
)
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert found(text) == []


def test_an_overlap_goes_to_the_higher_kind() -> None:
    assert [kind for kind, *_ in found("https://x.io/2024-03-05?mail=a@b.io")] == ["url"]
    assert [kind for kind, *_ in found("in 3 days")] == ["date"]
    assert [kind for kind, *_ in found("订单号 2024")] == ["id"]


def test_the_yen_sign_is_yen_in_japanese_and_yuan_elsewhere() -> None:
    assert found("¥500")[0][3] == "CNY"
    assert found("¥500", "ja")[0][3] == "JPY"


def test_a_naive_now_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        find_entities("today", now=datetime(2024, 1, 1))


def test_words_are_those_of_the_given_text() -> None:
    (one,) = find_entities("　９８８　塊", now=NOW)
    assert (one.text, one.value, one.start, one.end) == ("９８８　塊", 988, 1, 6)


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert found("x " * MAX_CHARS + "$5") == []
    assert found(" " * (MAX_CHARS - 3) + "$123456") == []
    assert len(found("$5 " * 1000)) == MAX_FOUND


@pytest.mark.parametrize(
    "piece", ["1", "a", "一", "$1 ", "a@", "1-", "1 to ", "at 3 ", "三点", "A-1-", "http://", "in a ", "x.com/"]
)
def test_time_is_bounded_however_long_the_text(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    find_entities(text, now=NOW)
    assert time.process_time() - start < 1


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from(PIECES), max_size=12).flatmap(
            lambda parts: st.sampled_from(["", " "]).map(lambda gap: gap.join(parts))
        ),
    )
)
def test_any_text_gets_an_answer_with_right_offsets(text: str) -> None:
    answer = find_entities(text, now=NOW)
    ends = [0]
    for each in answer:
        assert text[each.start : each.end] == each.text != ""
        assert each.start >= ends[-1]
        ends.append(each.end)
        assert json.loads(json.dumps(each.value)) == each.value
        assert isinstance(each.value, str | int | float)
    assert answer == find_entities(text, now=NOW)


@given(st.text())
def test_folding_keeps_the_length(text: str) -> None:
    assert len(fold(text)) == len(text)


def test_the_labelled_sentences_are_read_as_labelled() -> None:
    sentences = read_labels()
    total = score(sentences)
    n_chinese = sum(sentence.is_chinese for sentence in sentences)
    assert len(sentences) >= 200
    assert 0.4 <= n_chinese / len(sentences) <= 0.6
    assert total.precision() >= MIN_PRECISION
    assert total.recall() >= MIN_RECALL


def test_every_label_stands_in_its_sentence() -> None:
    for sentence in read_labels():
        assert all(text in sentence.text for _, text, _ in sentence.labels), sentence.text


def test_found_is_a_value() -> None:
    one = find_entities("$5", now=datetime(2024, 1, 1, tzinfo=UTC))
    assert one == [Found("amount", 5, "$5", 0, 2, "USD")]


def test_the_examples_of_the_docstrings_hold() -> None:

    for module in (find, ids, numbers, numerals):
        assert doctest.testmod(module).failed == 0

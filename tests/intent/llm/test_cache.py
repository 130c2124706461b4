from __future__ import annotations

from intent.llm.cache import AnswerCache, question_key
from intent.llm.prompt import IntentText

A, B = IntentText("a", "first", ("one", "two")), IntentText("b", "second")
ALL_MS = 1e9


def test_a_key_is_of_all_that_decides() -> None:
    questions = [
        ("m", "text", [A, B]),
        ("n", "text", [A, B]),
        ("m", "other", [A, B]),
        ("m", "text", [A]),
        ("m", "text", [IntentText("a", "changed", A.examples), B]),
        ("m", "text", [IntentText("a", "first", ("one",)), B]),
        ("m", "text", [IntentText("c", "first", A.examples), B]),
        ("m", "text", [IntentText("a", "first one", ("two",)), B]),
    ]
    assert len({question_key(*question) for question in questions}) == len(questions)


def test_a_key_is_the_same_in_any_order_and_whatever_is_cut_off() -> None:
    assert question_key("m", "text", [A, B]) == question_key("m", "text", [B, A])
    long = IntentText("a", "first", ("one", "two", "three", "never shown"))
    longer = IntentText("a", "first", ("one", "two", "three", "not shown either"))
    assert question_key("m", "text", [long]) == question_key("m", "text", [longer])


def test_any_text_has_a_key() -> None:
    assert question_key("m", "\ud800", [IntentText("\udfff", "\x00")])


def test_the_least_recently_used_goes_first() -> None:
    cache = AnswerCache()
    for key in (b"a", b"b"):
        cache.put(key, key.decode(), 0.0, 2)
    assert cache.get(b"a", 1.0, ALL_MS) == ("a",)
    cache.put(b"c", None, 1.0, 2)
    assert cache.get(b"b", 1.0, ALL_MS) is None
    assert (cache.get(b"a", 1.0, ALL_MS), cache.get(b"c", 1.0, ALL_MS)) == (("a",), (None,))
    assert len(cache) == 2


def test_an_answer_is_gone_when_its_time_is_over() -> None:
    cache = AnswerCache()
    cache.put(b"a", "a", 0.0, 2)
    assert cache.get(b"a", 9.0, 10.0) == ("a",)
    assert cache.get(b"a", 10.0, 10.0) is None
    assert len(cache) == 0


def test_no_entries_keep_nothing() -> None:
    cache = AnswerCache()
    cache.put(b"a", "a", 0.0, 0)
    assert cache.get(b"a", 0.0, ALL_MS) is None

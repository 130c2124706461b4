from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intent.grams import MAX_CHARS, WORD_MARK, grams, is_ideographic


def test_words_are_padded_and_cut_into_three_and_four() -> None:
    assert grams("cash") == [" ca", "cas", "ash", "sh ", " cas", "cash", "ash ", f"{WORD_MARK}cash"]


def test_words_come_singly_in_pairs_and_with_one_between() -> None:
    found = [gram[1:] for gram in grams("a bc d") if gram.startswith(WORD_MARK)]
    assert found == ["a", "bc", "d", "a bc", "bc d", f"a{WORD_MARK}d"]


def test_undivided_text_is_cut_into_one_to_three_and_is_a_word_only_when_short() -> None:
    assert grams("查快递") == ["查", "快", "递", "查快", "快递", "查快递", f"{WORD_MARK}查快递"]
    assert not [gram for gram in grams("我的快递到哪了") if gram.startswith(WORD_MARK)]


def test_marks_count_for_nothing_and_blanks_in_a_run_neither() -> None:
    assert grams("where, is it?!") == grams("where is  it")
    assert grams("?!") == grams("") == []


def test_long_texts_are_cut() -> None:
    assert grams("ab " * MAX_CHARS) == grams(("ab " * MAX_CHARS)[:MAX_CHARS])


def test_scripts_without_blanks_are_known() -> None:
    assert [is_ideographic(text) for text in ("退款", "ありがとう", "환불", "remboursé", "")] == [True] * 3 + [
        False
    ] * 2


@given(st.text(max_size=60))
def test_any_text_has_grams_that_fit_a_line(text: str) -> None:
    for gram in grams(text):
        assert gram
        assert "\n" not in gram
        assert gram.encode()

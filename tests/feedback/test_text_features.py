from __future__ import annotations

from math import expm1

import pytest

from feedback.text_features import NAMES, text_features


def counted(text: str, name: str) -> int:
    """How many of something a text has."""
    return round(expm1(dict(zip(NAMES, text_features(text), strict=True))[name]))


@pytest.mark.parametrize(
    ("text", "name", "n"),
    [
        ("What's that? WHAT?! somewhat, what_so_ever, what2", "what", 2),
        ("which of the following", "which", 2),
        ("Who and whose, and whoever", "who", 2),
        ("When, and where; nowhere", "when_where", 2),
        ("Why? And how? Howdy", "why_how", 2),
        ("how many, How much, how  old, show far, how longer", "how_many", 2),
        ("I cannot, don't, DON'T; not now, nothing, n't", "negations", 4),
        ("if all must, unless allowed", "conditions", 4),
        ("5% of $3 per half, averaged", "quantities", 4),
        ("sin and cosine, a = 3, b(c), \\frac", "formulas", 4),
        ("def f(x): return {}", "code", 5),
        ("import, Import, select, SELECT", "code", 2),
        ("1,000.5 and 12:30, x2", "numbers", 3),
        ("1 - 2, 3-4, a-b, 5 -x", "math_signs", 2),
        ("x+y >= 2", "math_signs", 3),
        ('"ab", "a", “cd”, 「ef」', "quoted", 3),
        ("Step 3, steps (4, case1, i. and iv., hi.\n- one\n  * two", "statements", 7),
        ("___ and ... and … but _ and ..", "gaps", 3),
        ("One. Two?! 3.5 four...five. Six", "sentences", 3),
        ("Wait..", "sentences", 1),
        ("为什么不在这里？多少钱", "why_how", 1),
        ("为什么不在这里？多少钱", "what", 1),
        ("为什么不在这里？多少钱", "how_many", 1),
        ("为什么不在这里？多少钱", "negations", 1),
        ("如果每个都…", "conditions", 1),
        ("A. red\n (b) green\nC: blue\nA: d\nI. none\n9. no", "options", 4),
    ],
)
def test_words_and_signs_are_counted(text: str, name: str, n: int) -> None:
    assert counted(text, name) == n


def test_shares_are_of_all_letters() -> None:
    found = dict(zip(NAMES, text_features("AB 12 éÉ"), strict=True))
    assert (found["capitals"], found["digits"], found["foreign"]) == (3 / 8, 2 / 8, 2 / 8)
    assert found["word_length"] == 2
    assert dict(zip(NAMES, text_features("wonderful night"), strict=True))["long_words"] == 0.5


def test_only_the_beginning_of_a_long_text_counts() -> None:
    assert text_features("?" * 8192 + "who!") == text_features("?" * 8192)

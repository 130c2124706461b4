from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from intent.rules import Rules, compile_pattern
from models.policy import Rule
from models.reading import Alternative
from models.request import Preference


def rules(*patterns: tuple[str, Preference] | tuple[str, Preference, str]) -> Rules:
    """Rules of (pattern, preference[, namespace])."""
    return Rules(
        [Rule(pattern=each[0], preference=each[1], namespace=each[2] if len(each) > 2 else None) for each in patterns]
    )


def test_a_sentence_that_matches_nothing_asks_for_nothing() -> None:
    assert rules(("in depth", "best")).preference("where is my parcel", "default") is None
    assert Rules([]).preference("in depth", "default") is None


def test_a_pattern_matches_anywhere_and_ignores_case() -> None:
    one = rules(("in depth|详细", "best"))
    assert one.preference("Explain it IN DEPTH, please", "default") == "best"
    assert one.preference("请详细分析", "default") == "best"
    assert rules(("straße|Ärger", "cheapest")).preference("viel ÄRGER", "default") == "cheapest"


def test_the_first_rule_that_matches_wins() -> None:
    ordered = rules(("quick", "cheapest"), ("quick and thorough", "best"))
    assert ordered.preference("quick and thorough", "default") == "cheapest"
    turned = rules(("quick and thorough", "best"), ("quick", "cheapest"))
    assert turned.preference("quick and thorough", "default") == "best"


def test_a_rule_with_a_namespace_holds_only_there() -> None:
    scoped = rules(("thorough", "best", "prod/shop"), ("thorough", "cheapest"))
    assert scoped.preference("thorough", "prod/shop") == "best"
    assert scoped.preference("thorough", "default") == "cheapest"
    assert scoped.preference("thorough", "prod") == "cheapest"


@pytest.mark.parametrize("pattern", ["(", "a{2000}", r"(?=x)", r"(a)\1", "[z-a]"])
def test_what_is_no_pattern_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compile_pattern(pattern)


def test_a_pattern_that_explodes_elsewhere_matches_in_linear_time() -> None:
    one = rules(("(a+)+$", "best"))
    start = time.process_time()
    assert one.preference("a" * 100_000 + "!", "default") is None
    assert time.process_time() - start < 2


def intent_of(text: str, *made: Rule, namespace: str = "default", among: Sequence[str] = ("a", "b")) -> str | None:
    found = Rules(made).intent(text, namespace, among)
    return None if found is None else found.intent


@pytest.mark.parametrize(
    ("keyword", "text", "fits"),
    [
        ("pay", "I want to pay", True),
        ("pay", "PAY!", True),
        ("pay", "repay or paying", False),
        ("in depth", "explain it in depth, please", True),
        ("in depth", "within depths", False),
        ("in   depth", "explain it in depth", True),
        ("a.c", "abc", False),
        ("a.c", "see a.c here", True),
        ("c++", "is it c++?", True),
        ("(why|how)*", "why", False),
        ("(why|how)*", "the (why|how)* of it", True),
        (r"\bpay\b", "pay", False),
        ("$5", "for $5 only", True),
        ("退款", "我要退款了", True),
        ("退款", "退还货款", False),
        ("退貨", "我要退货", True),
        ("退货", "我要退貨", True),
        ("用pay付", "我用PAY付钱", True),
        ("ＶＩＰ", "a vip asks", True),
        ("don’t know", "I don't know", True),
        ("Straße", "in der STRASSE", True),
    ],
)
def test_a_keyword_is_found_word_for_word(keyword: str, text: str, fits: bool) -> None:
    assert (intent_of(text, Rule(keywords=[keyword], intent="a")) == "a") is fits


@pytest.mark.parametrize("keyword", [" ", "\u200b", "\u3000\u200d"])
def test_a_keyword_that_holds_nothing_is_found_nowhere(keyword: str) -> None:
    for text in ("", "hello there", " "):
        assert intent_of(text, Rule(keywords=[keyword], intent="a")) is None
    assert intent_of("hello there", Rule(keywords=[keyword, "there"], intent="a")) == "a"


def test_a_pattern_and_keywords_are_alternatives() -> None:
    rule = Rule(pattern="re?fund|^money", keywords=["cash", "give back"], intent="a")
    for text in ("my refund", "money please", "cash!", "please give back all"):
        assert intent_of(text, rule) == "a"
    assert intent_of("no money here", rule) is None


def test_a_pattern_that_quotes_to_its_end_stays_by_itself() -> None:
    assert intent_of("say (a+ aloud", Rule(pattern=r"\Q(a+", keywords=["never"], intent="a")) == "a"


def test_the_highest_priority_counts_then_the_first() -> None:
    low, high = Rule(pattern="x", intent="a"), Rule(pattern="x", intent="b", priority=1)
    assert intent_of("x", low, high) == "b"
    assert intent_of("x", low, Rule(pattern="x", intent="b")) == "a"
    assert intent_of("x", Rule(pattern="x", intent="b", priority=-1), low) == "a"
    # one that does not match is passed over
    assert intent_of("x", low, Rule(pattern="y", intent="b", priority=9)) == "a"


def test_a_rule_for_an_intent_holds_in_its_namespace() -> None:
    here = Rule(keywords=["x"], intent="a", namespace="prod/shop", priority=5)
    anywhere = Rule(keywords=["x"], intent="b")
    assert intent_of("x", here, anywhere, namespace="prod/shop") == "a"
    assert intent_of("x", here, anywhere, namespace="prod") == "b"
    assert intent_of("x", here, namespace="prod") is None


def test_an_intent_that_cannot_be_read_leaves_it_to_the_next_rule() -> None:
    made = (Rule(pattern="x", intent="a", priority=3), Rule(pattern="x", intent="b"))
    assert intent_of("x", *made, among=["b"]) == "b"
    assert intent_of("x", *made, among=[]) is None


def test_intents_and_preferences_are_told_apart() -> None:
    made = Rules(
        [
            Rule(pattern="x", preference="best", priority=9),
            Rule(pattern="x", intent="a", confidence=0.6, priority=1),
            Rule(pattern="x", intent="b", preference="cheapest", priority=2),
        ]
    )
    assert made.preference("x", "default") == "best"
    assert made.intent("x", "default", {"a", "b"}) == Alternative("b", 0.95)
    assert made.intent("x", "default", {"a"}) == Alternative("a", 0.6)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "(.*a){20}$", "(?:a?){50}a{50}b"])
def test_no_pattern_takes_long_over_a_long_text(pattern: str) -> None:
    made = Rule(pattern=pattern, intent="a")
    start = time.process_time()
    for text in ("a" * 50_000 + "!", "a" * 50_000, "aab" * 17_000 + "c"):
        intent_of(text, made)
    assert time.process_time() - start < 3


def test_many_long_keywords_are_compiled_and_found_fast() -> None:
    words = [f"{number:03} {'long ' * 39}".strip() for number in range(1000)]
    start = time.process_time()
    assert intent_of("so it goes: " + "x " * 20_000 + words[-1].upper(), Rule(keywords=words, intent="a")) == "a"
    assert time.process_time() - start < 5

from __future__ import annotations

import time

import pytest

from intent.rules import Rules, compile_pattern
from models.policy import Rule
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

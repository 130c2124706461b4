from __future__ import annotations

from dataclasses import replace

import pytest

from intent.parts import FAIRLY_SURE, LEAST_OF_PART, NEARLY_CERTAIN, joined, rivalled, with_wishes
from models.reading import Alternative, Certainty, Reading

SURE, UNSURE, OUTSIDE = Certainty.SURE, Certainty.AMBIGUOUS, Certainty.OUT_OF_SCOPE


def reading(intent: str | None, confidence: float, certainty: Certainty = SURE, source: str = "semantic") -> Reading:
    one = Reading(f"text of {intent}", "en", certainty, intent, confidence, "rule" if source == "rule" else "semantic")
    return replace(one, preference="best" if intent == "whole" else None)


def named(found: Reading) -> list[str | None]:
    return [found.intent, *(part.intent for part in found.parts)]


@pytest.mark.parametrize(
    ("whole", "pieces", "intents"),
    [
        (reading("a", 0.6), [reading("a", 0.9), reading("b", 0.9)], ["a", "b"]),
        (reading("a", 0.6), [reading("b", 0.9), reading("a", 0.9)], ["b", "a"]),
        (reading("a", 0.6), [reading("a", 0.9), reading("b", 0.3, UNSURE)], ["a", "b"]),
        (reading("a", 0.6), [reading("b", 0.3, UNSURE), reading("a", 0.9)], ["b", "a"]),
        (reading("a", 0.6), [reading("a", 0.9), reading("b", 0.2, OUTSIDE)], ["a"]),
        (reading("a", 0.6), [reading("a", 0.9), reading(None, 0.0, OUTSIDE)], ["a"]),
        (reading("a", 0.6), [reading("a", 0.9), reading("a", 0.9)], ["a"]),
        (reading("a", 0.6), [reading("a", 0.9), reading("b", 0.9), reading("a", 0.8)], ["a", "b"]),
        # no piece is sure enough beside a whole that is sure
        (reading("a", 0.6), [reading("b", LEAST_OF_PART - 0.01), reading("c", LEAST_OF_PART - 0.01)], ["a"]),
        (reading("a", 0.4, UNSURE), [reading("b", 0.5), reading("c", 0.3, UNSURE)], ["b", "c"]),
        (reading("a", 0.4, UNSURE), [reading("b", 0.45, UNSURE), reading("c", 0.4, UNSURE)], ["a"]),
        # a whole that is nearly certain gives way to pieces only that are all sure
        (reading("a", NEARLY_CERTAIN), [reading("a", 0.99), reading("b", 0.6)], ["a"]),
        (reading("a", NEARLY_CERTAIN), [reading("a", 0.99), reading("b", LEAST_OF_PART)], ["a", "b"]),
        # a rule knows of what it looks for only
        (reading("a", 1.0, source="rule"), [reading("a", 1.0, source="rule"), reading("b", 0.4, UNSURE)], ["a", "b"]),
        (reading("a", 1.0, source="rule"), [reading("b", 1.0), reading("c", 1.0)], ["a"]),
    ],
)
def test_pieces_are_wishes_where_they_are_surer_than_the_whole(
    whole: Reading, pieces: list[Reading], intents: list[str]
) -> None:
    found = joined(whole, pieces)
    assert named(found) == intents
    assert found.text == whole.text
    if len(intents) == 1:
        assert found is whole


def test_a_piece_of_several_wishes_brings_them_all() -> None:
    several = replace(reading("b", 0.9), parts=(reading("c", 0.9),))
    found = joined(reading("whole", 0.6), [reading("a", 0.9), several])
    assert named(found) == ["a", "b", "c"]
    assert all(part.parts == () for part in found.parts)
    assert found.preference == "best"


def test_all_that_is_meant_is_read_in_the_order_given_each_as_surely_as_it_is() -> None:
    best = replace(reading("a", 0.9), alternatives=(Alternative("b", 0.05), Alternative("z", 0.01)))
    wishes = [Alternative("b", 0.6), Alternative("a", 0.9), Alternative("c", 0.4), Alternative("d", 0.29)]
    found = with_wishes(best, wishes, accept=0.5, plausible=0.3)
    assert [(each.intent, each.confidence, each.certainty) for each in (found, *found.parts)] == [
        ("b", 0.6, SURE),
        ("a", 0.9, SURE),
        ("c", 0.4, UNSURE),
    ]
    assert found.alternatives == (Alternative("z", 0.01),)
    assert {each.text for each in (found, *found.parts)} == {best.text}


@pytest.mark.parametrize(
    ("best", "wishes"),
    [
        (reading("a", 0.2, OUTSIDE), [Alternative("a", 0.2), Alternative("b", 0.9)]),
        (reading("a", 0.9), [Alternative("a", 0.9), Alternative("b", 0.2)]),
        (reading("a", 0.9), []),
    ],
)
def test_without_a_second_plausible_wish_the_best_stands(best: Reading, wishes: list[Alternative]) -> None:
    assert with_wishes(best, wishes, accept=0.5, plausible=0.3) is best


def test_a_sentence_whose_sides_are_sure_of_different_intents_is_ambiguous_between_them() -> None:
    whole = replace(reading("a", 0.7), alternatives=(Alternative("b", 0.1), Alternative("c", 0.1)))
    found = rivalled(whole, [reading("a", 0.9), reading("b", FAIRLY_SURE)])
    assert (found.intent, found.confidence, found.certainty) == ("a", 0.7, UNSURE)
    assert found.alternatives == (Alternative("b", FAIRLY_SURE), Alternative("c", 0.1))
    others = rivalled(whole, [reading("b", 0.9), reading("c", 0.95)])
    assert others.alternatives == (Alternative("c", 0.95), Alternative("b", 0.9))


@pytest.mark.parametrize(
    "sides",
    [
        [reading("a", 0.9), reading("a", 0.9)],
        [reading("a", 0.9), reading("b", FAIRLY_SURE - 0.01)],
        [reading("a", 0.9), reading("b", 0.9, UNSURE)],
        [reading("a", 0.9), reading(None, 0.0, OUTSIDE)],
    ],
)
def test_sides_that_are_less_sure_change_nothing(sides: list[Reading]) -> None:
    whole = reading("a", 0.7)
    assert rivalled(whole, sides) is whole

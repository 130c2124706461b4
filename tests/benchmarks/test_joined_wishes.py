from __future__ import annotations

import asyncio

import pytest

from benchmarks.joined_wishes import Joined, Told, precision_of, recall_of, sentences, told_of


@pytest.fixture(scope="module")
def told() -> list[Told]:
    """What the service with the bundled example set makes of all sentences, with the real encoder."""
    return asyncio.run(told_of(sentences()))


def test_there_are_enough_sentences_half_of_them_of_one_wish() -> None:
    found = sentences()
    assert len(found) == len({each.text for each in found}) >= 60
    for lang in ("en", "zh"):
        of_several = [each.is_several for each in found if each.lang == lang]
        assert len(of_several) >= 30
        assert 0.4 < sum(of_several) / len(of_several) < 0.6


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_several_wishes_are_detected_and_one_is_left_whole(told: list[Told], lang: str) -> None:
    some = [each for each in told if each.sentence.lang == lang]
    assert precision_of(some) >= 0.92
    assert recall_of(some) >= 0.92


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_wishes_come_out_right_and_in_order(told: list[Told], lang: str) -> None:
    several = [each for each in told if each.sentence.lang == lang and each.sentence.is_several]
    assert sum(each.named == each.sentence.intents for each in several) / len(several) >= 0.75


def test_hardly_ever_one_of_several_wishes_is_acted_on_and_nothing_said_of_the_rest(told: list[Told]) -> None:
    silent = [each.sentence.text for each in told if each.is_silent_pick]
    assert len(silent) <= 1, silent


def test_precision_and_recall_count_sentences(told: list[Told]) -> None:
    apart = next(each for each in told if each.is_apart)
    whole = next(each for each in told if not each.is_apart)
    several, one = Joined("x", ("a", "b"), "en"), Joined("x", ("a",), "en")
    found = [Told(several, apart.decision), Told(one, apart.decision), Told(several, whole.decision)]
    assert (precision_of(found), recall_of(found)) == (0.5, 0.5)
    assert precision_of([Told(several, whole.decision)]) == 1.0
